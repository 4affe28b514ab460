"""Research memory for reasoning models: evidence from the web, verbatim, located and linked."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webrag.answering.manager import Manager as Manager
    from webrag.answering.models import ManagerResult as ManagerResult
    from webrag.app import WebRAG as WebRAG
    from webrag.errors import WebRAGError as WebRAGError
    from webrag.ingesting import IngestReport as IngestReport
    from webrag.ingestion.documents import ReaderSource as ReaderSource
    from webrag.ingestion.firecrawl.source import FirecrawlPageReader as FirecrawlPageReader
    from webrag.llamaindex.query_engine import WebRAGQueryEngine as WebRAGQueryEngine
    from webrag.llamaindex.query_engine import WebRAGRetriever as WebRAGRetriever
    from webrag.llamaindex.store import CorpusVectorStore as CorpusVectorStore
    from webrag.orchestration.engine import OrchestratorEngine as OrchestratorEngine
    from webrag.orchestration.models import OrchestrationResult as OrchestrationResult
    from webrag.orchestration.workflow import WebRAGWorkflow as WebRAGWorkflow
    from webrag.question import Question as Question
    from webrag.retrieval.citation_checks import Citation as Citation
    from webrag.settings import Settings as Settings
    from webrag.settings import load_settings as load_settings
    from webrag.tool_spec import WebRAGToolSpec as WebRAGToolSpec

# ONNX Runtime, which fastembed and markitdown load, reports each process to its maker (from 1.29
# on) unless this is set before; a value of the user's own stays. Here, as every import of ours
# begins here.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"

# Loaded on first use: LlamaIndex takes more than a second to import, and most commands and the
# MCP server's first answers do not need it.
_HOMES = {
    "Citation": "webrag.retrieval.citation_checks",
    "CorpusVectorStore": "webrag.llamaindex.store",
    "FirecrawlPageReader": "webrag.ingestion.firecrawl.source",
    "IngestReport": "webrag.ingesting",
    "Manager": "webrag.answering.manager",
    "ManagerResult": "webrag.answering.models",
    "OrchestrationResult": "webrag.orchestration.models",
    "OrchestratorEngine": "webrag.orchestration.engine",
    "Question": "webrag.question",
    "ReaderSource": "webrag.ingestion.documents",
    "Settings": "webrag.settings",
    "WebRAG": "webrag.app",
    "WebRAGError": "webrag.errors",
    "WebRAGQueryEngine": "webrag.llamaindex.query_engine",
    "WebRAGRetriever": "webrag.llamaindex.query_engine",
    "WebRAGToolSpec": "webrag.tool_spec",
    "WebRAGWorkflow": "webrag.orchestration.workflow",
    "load_settings": "webrag.settings",
}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'webrag' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
