"""Engines made of the real parts over real Postgres, and chunks for the pure tests."""

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from llama_index.node_parser.webrag import ParentChildNodeParser
from llama_index.postprocessor.webrag import LocalRerank

from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.embedding.bundled import BundledEmbedding
from webrag.embedding.embedder import Embedder
from webrag.ingestion.extract import extract
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig, FetchedPage, NormalizedDocument
from webrag.ingestion.service import IngestionService
from webrag.lexical.analysis import analyze, query_terms
from webrag.orchestration.confidence import LOCAL
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.models import OrchestrationConfig, RankedChunk
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.orchestration.ranking.reranker import ChunkReranker
from webrag.orchestration.steps.research import RunComponents
from webrag.postgres.database import Database
from webrag.retrieval.models import (
    ChildMatch,
    CorpusStats,
    RetrievalConfig,
    RetrievalResult,
    RetrievedChunk,
    TimingInfo,
)
from webrag.retrieval.search import Searcher

ENCODER = BundledEmbedding()


class InProcess:
    """Extracts in a thread: starting worker processes would take longer than these tests."""

    async def extract(self, page: FetchedPage) -> NormalizedDocument:
        return await asyncio.to_thread(extract, page)

    async def aclose(self) -> None:
        pass


class Lab(NamedTuple):
    """The parts an engine is made of, and the way to make one."""

    corpus: Corpus
    acquirer: PageAcquirer
    searcher: Searcher
    engine: Callable[..., OrchestratorEngine]


@pytest.fixture
async def lab(database: Database) -> AsyncIterator[Lab]:
    """Real parts; `lab.engine(config=..., reranker=..., acquirer=...)` composes an engine."""
    await ensure_schema(
        database, embedding_model=ENCODER.model_name, embedding_dimensions=ENCODER.dimensions
    )
    embedder = Embedder(ENCODER, ENCODER.dimensions)
    corpus = Corpus(database)
    fetcher = HttpFetcher(FetchConfig(allowed_hosts=("127.0.0.1",), timeout_s=10))
    service = IngestionService(fetcher, InProcess())
    acquirer = PageAcquirer(
        service, Indexer(corpus, ParentChildNodeParser(), embedder).index, corpus
    )
    searcher = Searcher(database, embedder, RetrievalConfig())

    def engine(**parts: Any) -> OrchestratorEngine:
        chosen = {
            "acquirer": acquirer,
            "corpus": corpus,
            "searcher": searcher,
            "reranker": ChunkReranker(local_rerank(), LOCAL),
            "analyzer": QueryAnalyzer(),
            "encoder": ENCODER,
            "config": OrchestrationConfig(),
        }
        return OrchestratorEngine(RunComponents(**{**chosen, **parts}))

    yield Lab(corpus, acquirer, searcher, engine)
    await service.aclose()


def local_rerank() -> LocalRerank:
    return LocalRerank(encoder=ENCODER, analyze=analyze, analyze_question=query_terms)


@pytest.fixture
def make_chunk() -> Callable[..., RetrievedChunk]:
    """Builds chunks; by default each is a page of its own with one match."""
    return build_chunk


@pytest.fixture
def make_ranked() -> Callable[..., RankedChunk]:
    """Builds ranked chunks out of a score and what `make_chunk` takes."""
    return build_ranked


@pytest.fixture
def make_result() -> Callable[..., RetrievalResult]:
    """Builds retrieval results out of chunks."""
    return build_result


def build_match(text: str = "a passage", **values: Any) -> ChildMatch:
    given = {
        "node_id": str(uuid.uuid4()),
        "char_start": 0,
        "char_end": len(text),
        "text": text,
        "similarity": 0.5,
        "lexical": 1.0,
        "page_lexical": 1.0,
        "fused": 0.5,
    }
    return ChildMatch(**{**given, **values})


def build_chunk(
    text: str = "a passage about nothing in particular", *, tokens: int = 100, **values: Any
) -> RetrievedChunk:
    url = values.get("source_url", "https://docs.test/page")
    given = {
        "chunk_id": uuid.uuid4(),
        "document_id": uuid.uuid5(uuid.NAMESPACE_URL, url),
        "source_url": url,
        "site": "docs.test",
        "title": "Page",
        "text": text,
        "section_heading": None,
        "chunk_index": 0,
        "char_start": 0,
        "char_end": len(text),
        "token_start": 0,
        "token_end": tokens,
        "score": 0.5,
        "raw_similarity": 0.5,
        "depth": 0,
        "fetched_at": datetime(2026, 1, 1, tzinfo=UTC),
        "matches": (build_match(text),),
    }
    return RetrievedChunk(**{**given, **values})


def build_ranked(score: float, text: str | None = None, **values: Any) -> RankedChunk:
    own = {
        key: values.pop(key)
        for key in ("confidence", "is_locality_expanded", "source_sub_query")
        if key in values
    }
    chunk = values.pop("chunk", None) or build_chunk(text or f"text {uuid.uuid4().hex}", **values)
    return RankedChunk(chunk=chunk, reranked_score=score, **own)


def build_result(*chunks: RetrievedChunk, **values: Any) -> RetrievalResult:
    given = {
        "mode": "chunk",
        "chunks": chunks,
        "corpus_stats": CorpusStats(total_documents=1, total_parent_chunks=1, total_tokens=100),
        "timing": TimingInfo(),
    }
    return RetrievalResult(**{**given, **values})


def html(title: str, *paragraphs: str, links: tuple[tuple[str, str, str], ...] = ()) -> str:
    """A small page: paragraphs and a list of (address, anchor, what is said about it)."""
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    items = "".join(f'<li><a href="{url}">{anchor}</a>: {said}</li>' for url, anchor, said in links)
    return (
        f"<html><head><title>{title}</title></head>"
        f"<body><main><h1>{title}</h1>{body}<ul>{items}</ul></main></body></html>"
    )


MANUAL = {
    "/": html(
        "Turnip manual",
        "Welcome to the manual of the Turnip message queue. It explains how the broker is"
        " installed, configured and operated day by day. The broker listens on TCP port 7411"
        " unless another port is configured.",
        links=(
            ("/install.html", "Installation", "how to install the broker on a server"),
            ("/operations.html", "Operations", "replication and recovery of the broker"),
            ("/questions.html", "Questions", "what people ask about colours and logos"),
        ),
    ),
    "/install.html": html(
        "Installation",
        "Unpack the archive and run the setup program. The installer creates a system account"
        " called turnip and a folder for its data on the local disk.",
    ),
    "/questions.html": html(
        "Questions", "The mascot is called Rupert and was drawn by a friend in one afternoon."
    ),
    "/operations.html": html(
        "Operations",
        "The broker is operated with the control program. Each task has a page of its own.",
        links=(
            ("/replication.html", "Replication lag", "how far replicas may fall behind"),
            ("/backup.html", "Backups", "saving and restoring data"),
        ),
    ),
    "/replication.html": html(
        "Replication lag",
        "A replica that falls more than 512 megabytes behind the leader is expelled from the"
        " cluster and has to be rebuilt from a snapshot.",
    ),
    "/backup.html": html(
        "Backups", "Backups are written every night and kept for thirty days by default."
    ),
}
AT_SEED = "Which TCP port does the broker listen on?"
ONE_LINK_AWAY = "What does the installer create on the local disk?"
TWO_LINKS_AWAY = "How far may a replica fall behind the leader before it is expelled?"


@pytest.fixture
def manual(static_site: Any) -> Any:
    return static_site(dict(MANUAL))


@pytest.fixture
def gate() -> Any:
    """Holds requests until the test ends."""
    event = threading.Event()
    yield event
    event.set()


def held(gate: threading.Event) -> Any:
    def route(_request: Any) -> Any:
        gate.wait(20)
        return 200, {"Content-Type": "text/html"}, html("Late", "It came too late to be read.")

    return route


def failing(_request: Any) -> Any:
    return 500, {"Content-Type": "text/html"}, "<h1>Broken</h1>"


def texts(result: Any) -> str:
    return "\n".join(item.chunk.text for item in result.chunks)
