"""The parts that a program may give in place of those that the settings name."""

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from webrag.errors import ConfigurationError

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.llms import LLM
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.readers.base import BaseReader

    from webrag.answering.guardrails import Guardrail
    from webrag.ingestion.models import PageSource
    from webrag.orchestration.models import ScoreProfile

# Class of LlamaIndex, what a message calls it, and the setting that does without.
_KINDS: Final = {
    "page_source": ("readers.base:BaseReader", "web reader", "FIRECRAWL_API_KEY"),
    "reranker": (
        "postprocessor.types:BaseNodePostprocessor",
        "postprocessor, such as LocalRerank()",
        "RERANKER_PROVIDER",
    ),
    "embed_model": (
        "base.embeddings.base:BaseEmbedding",
        "embedding, such as OpenAIEmbedding(model='text-embedding-3-small')",
        "EMBEDDING_PROVIDER",
    ),
    "llm": ("llms:LLM", "LLM, such as OpenAI(model='gpt-4o-mini')", "ORCHESTRATION_LLM_API_KEY"),
    "node_parser": (
        "node_parser:NodeParser",
        "node parser, such as ParentChildNodeParser(child_tokens=128)",
        "",
    ),
}


class OwnParts(NamedTuple):
    """Parts of a program's own, as for `WebRAG`."""

    page_source: "PageSource | BaseReader | None" = None
    reranker: "BaseNodePostprocessor | None" = None
    score_profile: "ScoreProfile | str | None" = None
    embed_model: "BaseEmbedding | None" = None
    llm: "LLM | None" = None
    node_parser: "NodeParser | None" = None
    guardrails: "tuple[Guardrail, ...]" = ()

    def check(self) -> None:
        """Refuse what is no part of its kind; imports LlamaIndex where one is given."""
        for name, (kind, example, setting) in _KINDS.items():
            part = getattr(self, name)
            if part is None or (name == "page_source" and hasattr(part, "fetch")):
                continue
            module, _, class_name = kind.partition(":")
            wanted = getattr(import_module(f"llama_index.core.{module}"), class_name)
            if not isinstance(part, wanted):
                without = f", or leave it out and set {setting}" if setting else ""
                raise ConfigurationError(
                    f"{name} is {part!r:.80}; give a LlamaIndex {example}{without}."
                )
