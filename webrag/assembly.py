"""The one place that chooses concrete classes and puts them together for a set of settings."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass

from llama_index.core.utils import get_tokenizer
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.indexing.acquirer import PageAcquirer
from webrag.indexing.bundled_embedding import BundledEmbedding
from webrag.indexing.corpus import Corpus
from webrag.indexing.database import Database
from webrag.indexing.embedder import Embedder
from webrag.indexing.indexer import Indexer
from webrag.indexing.schema import corpus_embedding, ensure_schema
from webrag.ingestion.extraction_pool import ExtractionPool
from webrag.ingestion.fetcher import HttpFetcher
from webrag.ingestion.service import IngestionService
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.query_analyzer import QueryAnalyzer
from webrag.orchestration.reranker import ChunkReranker
from webrag.providers import EmbeddingChoice, choose_embedding, choose_reranker
from webrag.retrieval.search import Searcher
from webrag.settings import Settings

__all__ = ["Parts", "assemble"]

_EXTRACTION_WORKERS = 2


@dataclass(frozen=True)
class Parts:
    """The concrete objects behind an open WebRAG.

    Attributes:
        embedding: What the corpus is used with.
        other_embedding: Name of the model that a new corpus would get, when it is another one.
    """

    database: Database
    corpus: Corpus
    indexer: Indexer
    acquirer: PageAcquirer
    engine: OrchestratorEngine
    count_tokens: Callable[[str], int]
    embedding: EmbeddingChoice
    other_embedding: str | None


async def assemble(
    settings: Settings, stack: AsyncExitStack, *, soft_deadline_s: float | None
) -> Parts:
    """Start what needs starting, in the order it is needed; `stack` undoes it.

    Raises:
        ConfigurationError: Settings contradict each other or the corpus.
        DatabaseUnavailableError: The database cannot be started or reached.
    """
    bundled = BundledEmbedding()
    database = Database(settings.database_config())
    stack.push_async_callback(database.close)
    await database.open()
    choice, other = await _open_corpus(settings, database, bundled)
    model = await asyncio.to_thread(choice.load)
    embedder = Embedder(model, choice.dimensions)
    corpus = Corpus(database, embedding=(choice.name, choice.dimensions))
    indexer = Indexer(corpus, ParentChildNodeParser(), embedder)
    acquirer = PageAcquirer(
        _ingestion(settings, stack),
        indexer,
        corpus,
        recrawl_after_s=settings.recrawl_after,
    )
    reranker, profile = choose_reranker(settings, bundled)
    if isinstance(reranker, AbstractAsyncContextManager):
        await stack.enter_async_context(reranker)  # keeps its connections open meanwhile
    engine = OrchestratorEngine(
        acquirer=acquirer,
        corpus=corpus,
        searcher=Searcher(database, embedder, settings.retrieval_config()),
        reranker=ChunkReranker(reranker, profile, top_n=settings.reranker_top_n),
        analyzer=QueryAnalyzer(mode=settings.decomposition_mode, llm=None),
        encoder=bundled,
        config=settings.orchestration_config(profile, soft_deadline_s=soft_deadline_s),
    )
    encode = await asyncio.to_thread(get_tokenizer)
    return Parts(
        database=database,
        corpus=corpus,
        indexer=indexer,
        acquirer=acquirer,
        engine=engine,
        count_tokens=lambda text: len(encode(text)),
        embedding=choice,
        other_embedding=other,
    )


async def _open_corpus(
    settings: Settings, database: Database, bundled: BundledEmbedding
) -> tuple[EmbeddingChoice, str | None]:
    existing = await corpus_embedding(database)
    choice = choose_embedding(settings, existing, bundled)
    await ensure_schema(
        database, embedding_model=choice.name, embedding_dimensions=choice.dimensions
    )
    fresh = choose_embedding(settings, None, bundled).name
    return choice, fresh if fresh != choice.name else None


def _ingestion(settings: Settings, stack: AsyncExitStack) -> IngestionService:
    config = settings.fetch_config()
    pool = ExtractionPool(_EXTRACTION_WORKERS, config.extraction_timeout_s)
    service = IngestionService(HttpFetcher(config), pool)
    stack.push_async_callback(service.aclose)
    return service
