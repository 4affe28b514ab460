"""The one place that chooses concrete classes and puts them together for a set of settings."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.bulk_load import finish_interrupted_load
from webrag.corpus.pages import Corpus
from webrag.corpus.posting_blocks import compact_postings
from webrag.corpus.schema import corpus_embedding, ensure_schema
from webrag.embedding.bundled_model import BundledModel
from webrag.embedding.embedder import Embedder
from webrag.embedding.known_models import EmbeddingChoice
from webrag.ingestion.extraction_pool import ExtractionPool
from webrag.ingestion.files.access import FileAccess
from webrag.ingestion.files.source import FileSource
from webrag.ingestion.git.clone import GitClones
from webrag.ingestion.git.source import GitSource
from webrag.ingestion.service import IngestionService, SourceByAddress
from webrag.postgres.database import Database
from webrag.process_pool.pool import WorkerPool
from webrag.settings import Settings
from webrag.wiring.embeddings import as_llamaindex, choose_embedding, load_embedder
from webrag.wiring.jobs import open_queue
from webrag.wiring.language_models import choose_answer_llm, choose_orchestration_llm
from webrag.wiring.page_sources import (
    BuiltinSource,
    PageSourceChoice,
    choose_logins,
    choose_page_source,
    choose_renderer,
)
from webrag.wiring.rerankers import (
    as_postprocessor,
    choose_fallback,
    choose_reranker,
    map_scorer,
    missing_key,
)
from webrag.wiring.tokenizer import portable_tokenizer
from webrag.wiring.tracing import choose_tracer

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.llms import LLM
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.readers.base import BaseReader
    from llama_index.node_parser.webrag import ParentChildNodeParser

    from webrag.answering.guardrails import Guardrail
    from webrag.answering.manager import Manager
    from webrag.corpus.indexer import Indexer
    from webrag.corpus.models import AcquiredPage
    from webrag.corpus.page_cutter import WorkerCutter
    from webrag.crawling.crawl import SiteCrawler
    from webrag.ingestion.http.fetcher import SharedManners
    from webrag.ingestion.models import NormalizedDocument, PageSource
    from webrag.jobs.queue import JobQueue
    from webrag.orchestration.engine import OrchestratorEngine
    from webrag.orchestration.links.discovery import LinkDiscovery
    from webrag.orchestration.links.site_maps import SiteMaps
    from webrag.orchestration.models import ScoreProfile
    from webrag.orchestration.question.analyzer import QueryAnalyzer
    from webrag.orchestration.ranking.reranker import ChunkReranker
    from webrag.retrieval.quotes import Encode
    from webrag.retrieval.search import Searcher
    from webrag.retrieval.verification import Verifier

_EXTRACTION_WORKERS = 2
T = TypeVar("T")


def _once(make: "Callable[[], T]") -> "Callable[[], T]":
    """What is made when it is first asked for, whatever thread asks."""
    made, lock = cache(make), Lock()

    def asked() -> T:
        with lock:
            return made()

    return asked


@dataclass(frozen=True)
class Parts:
    """The concrete objects behind an open WebRAG.

    Attributes:
        crawler: Brings in whole sites. What is callable here is made when it is first asked for, as
            its imports take time; for `node_parser`, `reranker` and `embed_model` they are
            LlamaIndex's and take more than a second.
        jobs: The job queue, where the extra it needs is installed.
        reranker: None when retrieval's order is kept.
        embed_model: The model of `embedder`.
        page_source: Name of where pages come from.
        embedding: What the corpus is used with.
        encode: Compares meanings at once, whatever the corpus is embedded with.
        other_embedding: Name of the model that a new corpus would get, when it is another one.
    """

    database: Database
    corpus: Corpus
    ingestion: IngestionService
    clones: GitSource
    indexer: "Callable[[], Indexer]"
    acquirer: PageAcquirer
    crawler: "Callable[[], SiteCrawler]"
    jobs: "Callable[[], JobQueue]"
    engine: "Callable[[], OrchestratorEngine]"
    searcher: "Callable[[], Searcher]"
    embedder: Embedder
    node_parser: "Callable[[], NodeParser]"
    reranker: "Callable[[], BaseNodePostprocessor | None]"
    embed_model: "Callable[[], BaseEmbedding]"
    manager: "Callable[[], Manager]"
    verifier: "Callable[[], Verifier]"
    page_source: str
    count_tokens: Callable[[str], int]
    encode: "Encode"
    embedding: EmbeddingChoice
    other_embedding: str | None


async def assemble(
    settings: Settings,
    stack: AsyncExitStack,
    *,
    soft_deadline_s: float | None,
    page_source: "PageSource | BaseReader | None" = None,
    reranker: "tuple[BaseNodePostprocessor | None, ScoreProfile | str | None]" = (None, None),
    guardrails: "Sequence[Guardrail]" = (),
    files: FileAccess,
    is_own_user: bool = True,
) -> Parts:
    """Start what needs starting, in the order it is needed; `stack` undoes it.

    The arguments are those of `WebRAG`, a reranker together with its score profile; `files` says
    which files of this machine may be read, `is_own_user` whose logins are used. The stack
    closes everything, the page source included.

    Raises:
        ConfigurationError: Settings contradict each other or the corpus.
        DatabaseUnavailableError: The database cannot be started or reached.
        InputError: A guardrail is for a stage that does not exist.
    """
    bundled = BundledModel()
    storage = await _storage(settings, stack, bundled)
    database, corpus, embedder = storage.database, storage.corpus, storage.embedder
    pool = ExtractionPool(_EXTRACTION_WORKERS, settings.fetch_config().extraction_timeout_s)
    clones = _clones(settings)
    ingestion, fetcher, pages = _ingestion(
        settings, stack, page_source, pool, database, files, clones, is_own_user
    )

    @_once
    def indexer() -> "Indexer":
        from webrag.corpus.indexer import Indexer

        return Indexer(corpus, storage.cutter(pool.workers), embedder)

    async def index(document: "NormalizedDocument", *, depth: int) -> "AcquiredPage":
        return await indexer().index(document, depth=depth)

    acquirer = PageAcquirer(
        ingestion,
        index,
        corpus,
        recrawl_after_s=settings.recrawl_after,
        prepare=lambda: pool.prepare(storage.cutter(pool.workers).job),
    )
    ranks, profile = await asyncio.to_thread(choose_reranker, settings, bundled, *reranker)
    await _entered(stack, ranks)
    llm = await asyncio.to_thread(choose_answer_llm, settings)
    splitting_llm = await asyncio.to_thread(_splitting_llm, settings)
    tracer = choose_tracer(settings, stack)
    _check_guardrails(guardrails)
    runs = await stack.enter_async_context(AsyncExitStack())

    @_once
    def analyzer() -> "QueryAnalyzer":
        from webrag.orchestration.question.analyzer import QueryAnalyzer

        return QueryAnalyzer(mode=settings.decomposition_mode, llm=splitting_llm)

    @_once
    def searcher() -> "Searcher":
        from webrag.retrieval.search import Searcher

        return Searcher(
            database,
            embedder,
            settings.retrieval_config(),
            # A tokenizer keeps a token for each word that is often written.
            is_common=lambda word: storage.count_tokens(f" {word}") == 1,
        )

    @_once
    def chunk_reranker() -> "ChunkReranker":
        from webrag.orchestration.ranking.reranker import ChunkReranker

        fallback, fallback_profile = choose_fallback(ranks, bundled)
        return ChunkReranker(
            ranks,
            settings.thresholds(profile),
            fallback=fallback,
            fallback_profile=fallback_profile,
            top_n=settings.orchestration.reranker_top_n,
            missing=missing_key(settings) if ranks is None else None,
        )

    @_once
    def engine() -> "OrchestratorEngine":
        from webrag.orchestration.engine import OrchestratorEngine

        made = OrchestratorEngine(
            acquirer=acquirer,
            corpus=corpus,
            searcher=searcher(),
            reranker=chunk_reranker(),
            analyzer=analyzer(),
            encoder=bundled,
            config=settings.orchestration_config(soft_deadline_s=soft_deadline_s),
            discovery=lambda: _discovery(settings, database, pages),
            site_maps=lambda: (
                None if pages.is_own else _site_maps(settings, fetcher, pool.workers, database)
            ),
            scorer=lambda: map_scorer(ranks, bundled),
        )
        runs.push_async_callback(made.aclose)
        return made

    @_once
    def verifier() -> "Verifier":
        from webrag.retrieval.verification import Verifier

        return Verifier(corpus, database, ingestion)

    @_once
    def manager() -> "Manager":
        from webrag.wiring.answers import make_manager

        return make_manager(
            settings,
            analyzer=analyzer(),
            acquirer=acquirer,
            engine=engine(),
            searcher=searcher(),
            reranker=chunk_reranker(),
            corpus=corpus,
            encoder=bundled,
            llm=llm,
            tracer=tracer,
            guardrails=guardrails,
        )

    @_once
    def crawler() -> "SiteCrawler":
        from webrag.crawling.crawl import SiteCrawler
        from webrag.crawling.queue import CrawlState
        from webrag.crawling.sitemap import SitemapReader

        site_list = SitemapReader(fetcher.fetch_bytes, fetcher.declared_sitemaps)
        return SiteCrawler(acquirer, CrawlState(database), site_list)

    return Parts(
        database=database,
        corpus=corpus,
        ingestion=ingestion,
        clones=clones,
        indexer=indexer,
        acquirer=acquirer,
        crawler=crawler,
        jobs=_once(partial(open_queue, database)),
        engine=engine,
        searcher=searcher,
        embedder=embedder,
        node_parser=storage.node_parser,
        reranker=lambda: as_postprocessor(ranks),
        embed_model=lambda: as_llamaindex(embedder.model),
        manager=manager,
        verifier=verifier,
        page_source=pages.source.name,
        count_tokens=storage.count_tokens,
        encode=bundled.encode,
        embedding=storage.embedding,
        other_embedding=storage.other_embedding,
    )


@dataclass(frozen=True)
class _Storage:
    """The collection and what pages are cut and embedded with."""

    database: Database
    corpus: Corpus
    embedder: Embedder
    node_parser: "Callable[[], ParentChildNodeParser]"
    cutter: "Callable[[WorkerPool], WorkerCutter]"
    count_tokens: Callable[[str], int]
    embedding: EmbeddingChoice
    other_embedding: str | None


async def _storage(settings: Settings, stack: AsyncExitStack, bundled: BundledModel) -> _Storage:
    database = Database(settings.database_config())
    stack.push_async_callback(database.retire)
    await database.open()
    choice, other = await _open_corpus(settings, database, bundled)
    embedder, tokenize = await load_embedder(settings, choice, stack)
    portable = await asyncio.to_thread(portable_tokenizer, settings)

    @_once
    def parser() -> "ParentChildNodeParser":
        from llama_index.node_parser.webrag import ChunkSizes, ParentChildNodeParser

        sizes = ChunkSizes()
        return ParentChildNodeParser(
            tokenizer=tokenize, parent_tokens=sizes.parent_tokens, child_tokens=sizes.child_tokens
        )

    @cache
    def cutter(workers: WorkerPool) -> "WorkerCutter":
        from llama_index.node_parser.webrag import ChunkSizes

        from webrag.corpus.page_cutter import WorkerCutter
        from webrag.corpus.page_worker import CutSetup

        sizes = ChunkSizes()
        setup = CutSetup(*portable, sizes.parent_tokens, sizes.child_tokens)
        return WorkerCutter(workers, parser, setup)

    def count_tokens(text: str) -> int:
        return len(tokenize(text))

    return _Storage(
        database=database,
        corpus=Corpus(
            database,
            embedding=(choice.name, choice.dimensions),
            keep_versions=settings.keep_versions,
        ),
        embedder=embedder,
        node_parser=parser,
        cutter=cutter,
        count_tokens=count_tokens,
        embedding=choice,
        other_embedding=other,
    )


async def _entered(stack: AsyncExitStack, client: object) -> None:
    """Keep the connections of a service open until the end; other objects have none."""
    if isinstance(client, AbstractAsyncContextManager):
        await stack.enter_async_context(client)


async def _open_corpus(
    settings: Settings, database: Database, bundled: BundledModel
) -> tuple[EmbeddingChoice, str | None]:
    existing = await corpus_embedding(database)
    choice = await asyncio.to_thread(choose_embedding, settings, existing, bundled)
    await ensure_schema(
        database, embedding_model=choice.name, embedding_dimensions=choice.dimensions
    )
    await finish_interrupted_load(database)
    await compact_postings(database)
    if settings.embedding_provider != "auto":
        return choice, None
    fresh = choose_embedding(settings, None, bundled).name
    return choice, fresh if fresh != choice.name else None


def _ingestion(
    settings: Settings,
    stack: AsyncExitStack,
    own: "PageSource | BaseReader | None",
    pool: ExtractionPool,
    database: Database,
    files: FileAccess,
    clones: GitSource,
    is_own_user: bool,
) -> tuple[IngestionService, BuiltinSource, PageSourceChoice]:
    config = settings.fetch_config()

    def shared() -> "SharedManners":
        from webrag.corpus.host_turns import HostTurns

        return HostTurns(database)

    fetcher = BuiltinSource(
        config, shared, partial(choose_logins, settings, is_own_user=is_own_user)
    )
    # What sites list of themselves is always read by it; closing it twice does no harm.
    stack.push_async_callback(fetcher.aclose)
    pages = choose_page_source(settings, fetcher, own)
    local = FileSource(
        files, max_bytes=config.max_decoded_bytes, max_document_bytes=config.max_pdf_bytes
    )
    service = IngestionService(
        SourceByAddress(pages.source, local, clones),
        pool,
        prefer_markdown=config.prefer_markdown,
        renderer=choose_renderer(settings, fetcher),
        render_always=settings.browser == "always",
    )
    stack.push_async_callback(service.aclose)
    return service, fetcher, pages


def _clones(settings: Settings) -> GitSource:
    config = settings.fetch_config()
    clones = GitClones(
        settings.data_dir / "repositories",
        allowed_hosts=config.allowed_hosts,
        keep_s=settings.recrawl_after,
    )
    return GitSource(
        clones, max_bytes=config.max_decoded_bytes, max_document_bytes=config.max_pdf_bytes
    )


def _splitting_llm(settings: Settings) -> "LLM | None":
    # Loading a model's package takes a second, which patterns do not need.
    return choose_orchestration_llm(settings) if settings.decomposition_mode == "llm" else None


def _check_guardrails(guardrails: "Sequence[Guardrail]") -> None:
    """Refuse at once what the manager, made for the first answer, would refuse."""
    if guardrails:
        from webrag.answering.guardrails import with_defaults

        with_defaults(guardrails)


def _discovery(
    settings: Settings, database: Database, pages: PageSourceChoice
) -> "LinkDiscovery | None":
    if pages.mapper is None:
        return None
    from webrag.corpus.mapped_links import MappedLinks
    from webrag.orchestration.links.discovery import LinkDiscovery

    return LinkDiscovery(
        pages.mapper, MappedLinks(database), limit=settings.expansion_config().map_limit
    )


def _site_maps(
    settings: Settings, fetcher: BuiltinSource, workers: WorkerPool, database: Database
) -> "SiteMaps | None":
    config = settings.expansion_config().site_map
    if not config.enabled:
        return None
    from webrag.corpus.site_maps import SiteMapStore
    from webrag.orchestration.links.site_maps import SiteMaps

    store = SiteMapStore(database)
    return SiteMaps(fetcher.fetch_bytes, fetcher.declared_sitemaps, workers, store, config)
