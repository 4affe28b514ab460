"""The one place that chooses concrete classes and puts them together for a set of settings."""

import asyncio
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.indexes import finish_interrupted_load
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import corpus_embedding, ensure_schema
from webrag.embedding.bundled_model import BundledModel
from webrag.embedding.embedder import EmbeddingChoice
from webrag.errors import ConfigurationError, how_to_install
from webrag.ingestion.files.source import FileAccess, FileSource
from webrag.ingestion.git import GitClones, GitSource
from webrag.ingestion.service import ExtractionPool, IngestionService, SourceByAddress
from webrag.postgres.database import Database
from webrag.settings import Settings
from webrag.wiring.embeddings import (
    as_llamaindex,
    choose_embedding,
    load_embedder,
    portable_tokenizer,
)
from webrag.wiring.language_models import choose_language_model
from webrag.wiring.own_parts import OwnParts
from webrag.wiring.page_sources import (
    PageSourceChoice,
    builtin_source,
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    from webrag.answering.manager import Manager
    from webrag.corpus.indexer import Indexer, PageWorkers
    from webrag.corpus.models import AcquiredPage
    from webrag.crawling.crawl import SiteCrawler
    from webrag.embedding.embedder import Embedder
    from webrag.ingestion.http.fetcher import HttpFetcher, SharedManners
    from webrag.ingestion.models import FetchConfig, NormalizedDocument
    from webrag.jobs.models import WorkerOptions
    from webrag.jobs.queue import JobQueue, Turn, TurnEnd
    from webrag.jobs.worker import JobWorker
    from webrag.orchestration.engine import OrchestratorEngine
    from webrag.orchestration.links.expander import LinkDiscovery
    from webrag.orchestration.links.site_maps import SiteMaps
    from webrag.orchestration.question.analyzer import QueryAnalyzer
    from webrag.orchestration.ranking.reranker import ChunkReranker
    from webrag.retrieval.citation_checks import Verifier
    from webrag.retrieval.search import Searcher

_EXTRACTION_WORKERS = 2
T = TypeVar("T")


class part(cached_property[T]):
    """A property that is made once, when it is first asked for, whatever thread asks."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> T:  # type: ignore[override]
        with instance.lock:
            made: T = super().__get__(instance, owner)
            return made


@dataclass(eq=False, repr=False)
class Components:
    """The concrete objects behind an open WebRAG, which its arguments describe.

    What is a `part` is made when it is first asked for, as its imports take time: those of
    `node_parser`, `reranker` and `embed_model` are LlamaIndex's and take more than a second. So
    these are asked for in a thread.

    The `stack` undoes what `start` starts, the page source included; a new corpus would get the
    model `other_embedding`, when that is another one.
    """

    settings: Settings
    stack: AsyncExitStack
    own: OwnParts
    files: FileAccess
    soft_deadline_s: float | None
    is_own_user: bool
    lock: AbstractContextManager[object] = field(default_factory=RLock, init=False)
    database: Database = field(init=False)
    embedder: "Embedder" = field(init=False)
    embedding: EmbeddingChoice = field(init=False)
    other_embedding: str | None = field(init=False)

    async def start(self) -> Self:
        """Start what needs starting, in the order it is needed."""
        settings, stack = self.settings, self.stack
        await asyncio.to_thread(self.own.check)
        self.database = Database(settings.database_config())
        stack.push_async_callback(self.database.retire)
        await self.database.open()
        self.embedding, self.other_embedding = await self._open_corpus()
        self.embedder, self._tokenize = await load_embedder(settings, self.embedding, stack)
        self._portable_tokenizer = await asyncio.to_thread(portable_tokenizer, settings)
        # What sites list of themselves is always read by it; closing it twice does no harm.
        stack.push_async_callback(self._fetcher.aclose)
        stack.push_async_callback(self.ingestion.aclose)
        self._ranks, self._profile = await asyncio.to_thread(
            choose_reranker, settings, self._bundled, self.own.reranker, self.own.score_profile
        )
        if isinstance(self._ranks, AbstractAsyncContextManager):
            await stack.enter_async_context(self._ranks)
        self._llm = self.own.llm
        if self._llm is None:
            self._llm = await asyncio.to_thread(choose_language_model, settings)
        start_tracing(settings, stack)
        if self.own.guardrails:
            # Refuses at once what the manager, made for the first answer, would refuse.
            from webrag.answering.guardrails import with_defaults

            with_defaults(self.own.guardrails)
        self._runs = await stack.enter_async_context(AsyncExitStack())
        return self

    async def _open_corpus(self) -> tuple[EmbeddingChoice, str | None]:
        settings, database = self.settings, self.database
        existing = await corpus_embedding(database)
        own = self.own.embed_model
        choice = await asyncio.to_thread(choose_embedding, settings, existing, self._bundled, own)
        await ensure_schema(
            database, embedding_model=choice.name, embedding_dimensions=choice.dimensions
        )
        await finish_interrupted_load(database)
        if own is not None or settings.embedding_provider != "auto":
            return choice, None
        fresh = choose_embedding(settings, None, self._bundled).name
        return choice, fresh if fresh != choice.name else None

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, as budgets do."""
        return len(self._tokenize(text))

    # Pages: where they come from, and how they are stored.

    @part
    def corpus(self) -> Corpus:
        """The stored pages."""
        return Corpus(
            self.database,
            embedding=(self.embedding.name, self.embedding.dimensions),
            keep_versions=self.settings.keep_versions,
        )

    @part
    def _bundled(self) -> BundledModel:
        return BundledModel()

    @part
    def _fetching(self) -> "FetchConfig":
        return self.settings.fetch_config()

    @part
    def _pool(self) -> ExtractionPool:
        return ExtractionPool(_EXTRACTION_WORKERS, self._fetching.extraction_timeout_s)

    @part
    def _fetcher(self) -> "HttpFetcher":
        def shared() -> "SharedManners":
            from webrag.corpus.host_turns import HostTurns

            return HostTurns(self.database)

        load_logins = partial(choose_logins, self.settings, is_own_user=self.is_own_user)
        return builtin_source(self._fetching, shared, load_logins)

    @part
    def page_source(self) -> PageSourceChoice:
        """The source of pages."""
        return choose_page_source(self.settings, self._fetcher, self.own.page_source)

    @part
    def clones(self) -> GitSource:
        """The files of repositories."""
        clones = GitClones(
            self.settings.data_dir / "repositories",
            allowed_hosts=self._fetching.allowed_hosts,
            keep_s=self.settings.recrawl_after,
        )
        return GitSource(
            clones,
            max_bytes=self._fetching.max_decoded_bytes,
            max_document_bytes=self._fetching.max_pdf_bytes,
        )

    @part
    def ingestion(self) -> IngestionService:
        """Gets pages and makes documents of them."""
        local = FileSource(
            self.files,
            max_bytes=self._fetching.max_decoded_bytes,
            max_document_bytes=self._fetching.max_pdf_bytes,
        )
        return IngestionService(
            SourceByAddress(self.page_source.source, local, self.clones),
            self._pool,
            prefer_markdown=self._fetching.prefer_markdown,
            renderer=choose_renderer(self.settings, self._fetcher),
            render_always=self.settings.browser == "always",
        )

    @part
    def node_parser(self) -> "NodeParser":
        """Cuts pages into parents and children."""
        if self.own.node_parser is not None:
            return self.own.node_parser
        from llama_index.node_parser.webrag import ParentChildNodeParser

        return ParentChildNodeParser(tokenizer=self._tokenize)

    @part
    def _page_workers(self) -> "PageWorkers":
        from llama_index.node_parser.webrag import ChunkSizes

        from webrag.corpus.indexer import PageWorkers
        from webrag.corpus.page_worker import CutSetup

        sizes = ChunkSizes()
        setup = CutSetup(*self._portable_tokenizer, sizes.parent_tokens, sizes.child_tokens)
        return PageWorkers(self._pool, setup)

    @part
    def indexer(self) -> "Indexer":
        """Stores documents, cut and embedded."""
        from webrag.corpus.indexer import Indexer

        parser = self.own.node_parser or self._page_workers
        return Indexer(self.corpus, parser, self.embedder)

    @part
    def acquirer(self) -> PageAcquirer:
        """Gets pages into the corpus."""

        async def index(document: "NormalizedDocument", *, depth: int) -> "AcquiredPage":
            return await self.indexer.index(document, depth=depth)

        return PageAcquirer(
            self.ingestion,
            index,
            self.corpus,
            recrawl_after_s=self.settings.recrawl_after,
            prepare=lambda: self._page_workers.prepare(),
            convert=lambda page, known: self._page_workers.convert(page, known),
        )

    @part
    def crawler(self) -> "SiteCrawler":
        """Brings in whole sites."""
        from webrag.crawling.crawl import SiteCrawler
        from webrag.crawling.sitemap import SitemapReader

        site_list = SitemapReader(self._fetcher.fetch_bytes, self._fetcher.declared_sitemaps)
        return SiteCrawler(self.acquirer, self.database, site_list)

    @part
    def jobs(self) -> "JobQueue":
        """The job queue, where the extra it needs is installed."""
        require_workers()
        from webrag.jobs.queue import JobQueue

        return JobQueue(self.database)

    # Questions.

    @part
    def embed_model(self) -> "BaseEmbedding":
        """The model of `embedder`."""
        return as_llamaindex(self.embedder.model)

    @part
    def reranker(self) -> "BaseNodePostprocessor | None":
        """The reranker; None when retrieval's order is kept."""
        return as_postprocessor(self._ranks)

    @part
    def searcher(self) -> "Searcher":
        """Finds passages."""
        from webrag.retrieval.search import Searcher

        return Searcher(
            self.database,
            self.embedder,
            self.settings.retrieval_config(),
            # A tokenizer keeps a token for each word that is often written.
            is_common=lambda word: self.count_tokens(f" {word}") == 1,
            may_name=self._bundled.may_name,
        )

    @part
    def _chunk_reranker(self) -> "ChunkReranker":
        from webrag.orchestration.ranking.reranker import ChunkReranker

        fallback, fallback_profile = choose_fallback(self._ranks, self._bundled)
        return ChunkReranker(
            self._ranks,
            self.settings.thresholds(self._profile),
            fallback=fallback,
            fallback_profile=fallback_profile,
            top_n=self.settings.orchestration.reranker_top_n,
            missing=missing_key(self.settings) if self._ranks is None else None,
        )

    @part
    def _analyzer(self) -> "QueryAnalyzer":
        from webrag.orchestration.question.analyzer import QueryAnalyzer

        return QueryAnalyzer(mode=self.settings.decomposition_mode, llm=self._llm)

    @part
    def engine(self) -> "OrchestratorEngine":
        """Answers questions from passages, following links."""
        from webrag.orchestration.engine import OrchestratorEngine
        from webrag.orchestration.steps.research import RunComponents

        components = RunComponents(
            acquirer=self.acquirer,
            corpus=self.corpus,
            searcher=self.searcher,
            reranker=self._chunk_reranker,
            analyzer=self._analyzer,
            encoder=self._bundled,
            config=self.settings.orchestration_config(soft_deadline_s=self.soft_deadline_s),
            discovery=self._discovery,
            site_maps=self._site_maps,
            scorer=lambda: map_scorer(self._ranks, self._bundled),
        )
        made = OrchestratorEngine(components)
        self._runs.push_async_callback(made.aclose)
        return made

    def _discovery(self) -> "LinkDiscovery | None":
        if self.page_source.mapper is None:
            return None
        from webrag.corpus.site_index import MappedLinks
        from webrag.orchestration.links.expander import LinkDiscovery

        limit = self.settings.expansion_config().map_limit
        return LinkDiscovery(self.page_source.mapper, MappedLinks(self.database), limit=limit)

    def _site_maps(self) -> "SiteMaps | None":
        config = self.settings.expansion_config().site_map
        if self.page_source.is_own or not config.enabled:
            return None
        from webrag.corpus.site_index import SiteMapStore
        from webrag.orchestration.links.site_maps import SiteMaps

        store, fetcher = SiteMapStore(self.database), self._fetcher
        return SiteMaps(
            fetcher.fetch_bytes, fetcher.declared_sitemaps, self._pool.workers, store, config
        )

    @part
    def verifier(self) -> "Verifier":
        """Checks quotations."""
        from webrag.retrieval.citation_checks import Verifier

        return Verifier(self.corpus, self.ingestion)

    @part
    def manager(self) -> "Manager":
        """Writes answers, with a language model where there is one."""
        from webrag.answering.evidence import EvidenceFinder, NamedPages
        from webrag.answering.guardrails import with_defaults
        from webrag.answering.judging import Reflector
        from webrag.answering.manager import Manager
        from webrag.answering.planning import Planner
        from webrag.answering.writing import (
            ExtractiveSynthesizer,
            LanguageModelSynthesizer,
            Synthesizer,
        )

        config, llm = self.settings.answer_config(), self._llm
        synthesizer: Synthesizer = ExtractiveSynthesizer(config)
        if llm is not None:
            synthesizer = LanguageModelSynthesizer(llm, synthesizer, config)
        return Manager(
            planner=Planner(self._analyzer),
            scope=NamedPages(self.acquirer, self.engine),
            finder=EvidenceFinder(
                self.searcher,
                self.corpus,
                self._chunk_reranker,
                self.settings.retrieval_config(),
                config,
                self._bundled.encode,
            ),
            synthesizer=synthesizer,
            reflector=Reflector(llm, config),
            pages=self.corpus,
            encode=self._bundled.encode,
            guardrails=with_defaults(self.own.guardrails),
        )


def start_tracing(settings: Settings, stack: AsyncExitStack) -> None:
    """Send spans where `WEBRAG_TRACING` says; the stack flushes and undoes it."""
    if settings.tracing == "off":
        return
    try:
        from webrag.wiring.open_telemetry import export_spans, listening_spans
    except ImportError as error:
        raise ConfigurationError(
            f"WEBRAG_TRACING={settings.tracing} needs {str(error.name).replace('.', '-')}.",
            hint=how_to_install("tracing"),
        ) from error
    if settings.tracing in ("opentelemetry", "both"):
        endpoint = settings.otel_exporter_otlp_endpoint
        # Without a collector they go to the tracer provider of the program.
        provider = endpoint and export_spans(endpoint, stack, proxy=settings.service_proxy)
        stack.enter_context(listening_spans(provider or None))
    if settings.tracing in ("langsmith", "both"):
        if settings.langsmith_api_key is None:
            raise ConfigurationError(
                f"WEBRAG_TRACING={settings.tracing} needs a key for LangSmith: set"
                " LANGSMITH_API_KEY."
            )
        provider = export_spans(
            f"{settings.langsmith_endpoint}/otel",
            stack,
            proxy=settings.service_proxy,
            headers={
                "x-api-key": settings.langsmith_api_key.get_secret_value(),
                "Langsmith-Project": settings.langsmith_project,
            },
        )
        stack.enter_context(listening_spans(provider, with_inputs=True))


def require_workers() -> None:
    """Refuse what cannot work without the extra `workers`."""
    if find_spec("procrastinate") is None:
        raise ConfigurationError(
            "Jobs need the package procrastinate, which is not installed.",
            hint=how_to_install("workers"),
        )


def make_worker(
    queue: "JobQueue",
    current_parts: "Callable[[], Awaitable[Components]]",
    options: "WorkerOptions | None",
    on_turn: "Callable[[Turn, TurnEnd], None] | None",
) -> "JobWorker":
    """A worker for the collection, which takes the parts that fit it at each turn."""
    from webrag.jobs.models import WorkerOptions
    from webrag.jobs.worker import JobWorker, Tools

    async def tools() -> Tools:
        parts = await current_parts()
        return await asyncio.to_thread(lambda: Tools(parts.crawler, parts.acquirer))

    return JobWorker(queue, tools, options or WorkerOptions(), on_turn=on_turn)
