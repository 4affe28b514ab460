"""WebRAG as one object: what the command line, the MCP server and notebooks call."""

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from webrag.components import LlamaIndexComponents
from webrag.errors import InputError, WebRAGError
from webrag.indexing.models import AcquiredPage, CorpusStatus, LinkCandidate
from webrag.ingestion.links import canonical_url
from webrag.ingestion.notices import listening
from webrag.operations import CorpusOperations
from webrag.orchestration.crawl_models import CrawlOptions, CrawlProgressCallback, SiteReport
from webrag.orchestration.models import OrchestrationResult, ProgressCallback, QueryType
from webrag.retrieval.citation_checks import Citation, CitationCheck
from webrag.retrieval.filters import NO_FILTERS, ContentKind, SearchFilters
from webrag.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from uuid import UUID

    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.readers.base import BaseReader

    from webrag.answering.models import EventListener, ManagerResult
    from webrag.assembly import Parts
    from webrag.indexing.page_texts import PageText, PassageText
    from webrag.ingestion.models import PageSource
    from webrag.orchestration.engine import OrchestratorEngine
    from webrag.orchestration.models import ScoreProfile
    from webrag.presentation.evidence import EvidenceBlock
    from webrag.presentation.models import BriefConfig

__all__ = ["MAX_QUESTION_CHARS", "IngestReport", "WebRAG", "check_question"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_QUESTION_CHARS = 8_000
_INGEST_CONCURRENCY = 8  # per host the fetcher is stricter


class IngestReport(BaseModel):
    """Outcome of an ingest call.

    Attributes:
        pages: Pages that are in the corpus now, in the order they were asked for.
        failed: URL to the reason it was not obtained.
        degraded: Sentences about page sources that did not work as configured.
    """

    model_config = ConfigDict(frozen=True)

    pages: tuple[AcquiredPage, ...] = ()
    failed: dict[str, str] = Field(default_factory=dict)
    degraded: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<IngestReport {len(self.pages)} pages, {len(self.failed)} failed>"

    def __str__(self) -> str:
        """What became of each page, as `webrag ingest` prints it."""
        from webrag.presentation.status import format_ingest

        return format_ingest(self.pages, self.failed, degraded=self.degraded)


class WebRAG(CorpusOperations, LlamaIndexComponents):
    """Research memory: answers from pages with verbatim, located quotations.

    Use it as an async context manager; opening it starts the embedded Postgres unless a
    server is configured, closing it releases everything. Calls may run concurrently.

        async with WebRAG() as rag:
            result = await rag.answer("https://example.com/docs/", "How do I ...?")
            print(rag.brief(result))

    Args:
        settings: Defaults to what the environment says.
        soft_deadline_s: Seconds after which `answer` returns what it has, marked as partial;
            None to use the whole of `ORCHESTRATION_TIMEOUT`.
        page_source: Where pages come from: a `PageSource`, which is closed with the rest, or a
            LlamaIndex web reader; None for Firecrawl or the built-in fetcher, as the settings say.
            One with a `map` method is asked for more links of a site, too.
        reranker: Any LlamaIndex postprocessor that scores from 0 to 1; None for the one the
            settings name.
        score_profile: Thresholds for its scores, or the name of a scorer it is like; None for
            those of cross-encoders.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        soft_deadline_s: float | None = None,
        page_source: "PageSource | BaseReader | None" = None,
        reranker: "BaseNodePostprocessor | None" = None,
        score_profile: "ScoreProfile | str | None" = None,
    ) -> None:
        self.settings = settings or load_settings()
        self._page_source = page_source
        self._reranker = (reranker, score_profile)
        self._soft_deadline_s = soft_deadline_s
        self._stack: AsyncExitStack | None = None
        self._parts: Parts | None = None
        self._reopening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Start what is needed; does nothing when already open.

        Raises:
            ConfigurationError: Settings contradict each other or the corpus.
            DatabaseUnavailableError: The database cannot be started or reached.
        """
        if self._parts is not None:
            return
        # The imports behind it take more than a second, which would stall the event loop.
        assembly = await asyncio.to_thread(import_module, "webrag.assembly")
        async with AsyncExitStack() as stack:
            self._parts = await assembly.assemble(
                self.settings,
                stack,
                soft_deadline_s=self._soft_deadline_s,
                page_source=self._page_source,
                reranker=self._reranker,
            )
            self._stack = stack.pop_all()
        if "IPython" in sys.modules:
            import_module("webrag.presentation.notebook").register_displays()

    async def close(self) -> None:
        """Release connections, worker processes and the database lease."""
        self._parts = None
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.aclose()

    async def answer(
        self,
        url: str | Sequence[str],
        question: str,
        *,
        intent: QueryType | None = None,
        known_context: str | None = None,
        constraints: Sequence[str] | None = None,
        expansion_budget: int | None = None,
        research_mode: Literal["fast", "deep"] = "fast",
        retrieval_mode: Literal["chunk", "full_context", "auto"] = "chunk",
        on_progress: ProgressCallback | None = None,
    ) -> OrchestrationResult:
        """Find evidence for a question, starting from one or more pages.

        Args:
            url: Page, or pages, to start from; fetched and indexed when the corpus lacks them.
            question: At most `MAX_QUESTION_CHARS` characters.
            intent: Kind of question, when the caller knows it.
            known_context: What the caller knows already.
            constraints: Wishes such as "must include code examples".
            expansion_budget: Rounds of link following at most; 0 for none, None for the
                default of the mode.
            research_mode: `fast` reads the named pages only, `deep` follows their links where
                the evidence is too thin.
            retrieval_mode: `chunk` selects passages, `full_context` returns everything stored
                for the pages, `auto` decides by size.
            on_progress: Told what is being done.

        Raises:
            InputError: The question or a URL cannot be used.
            FetchError: The only page named could not be obtained.
            StorageError: The database failed.
        """
        check_question(question)
        urls = [canonical_url(each) for each in ([url] if isinstance(url, str) else url)]
        if not urls:
            raise InputError("No URL was given: name at least one page to start from.")
        if expansion_budget is not None and expansion_budget < 0:
            raise InputError(f"expansion_budget is {expansion_budget}; it must be 0 or more.")
        parts = await self._current_parts()
        return await parts.engine.run(
            urls,
            question,
            intent=intent,
            known_context=known_context,
            constraints=constraints,
            expansion_budget=expansion_budget,
            research_mode=research_mode,
            retrieval_mode=retrieval_mode,
            on_progress=on_progress,
        )

    async def search(
        self,
        question: str,
        *,
        source_urls: Sequence[str] | None = None,
        sites: Sequence[str] | None = None,
        years: Sequence[int] | None = None,
        fetched_since: datetime | None = None,
        has: Sequence[ContentKind] = (),
        intent: QueryType | None = None,
        top_k: int | None = None,
        retrieval_mode: Literal["chunk", "full_context", "auto"] = "chunk",
        on_progress: ProgressCallback | None = None,
    ) -> OrchestrationResult:
        """Find evidence in what is stored; nothing is fetched.

        Args:
            question: At most `MAX_QUESTION_CHARS` characters.
            source_urls: Only these pages.
            sites: Only pages of these hosts (`host` or `host:port`).
            years: Only pages published in these years; pages without a date are left out.
            fetched_since: Only pages that their site delivered or confirmed then or later; UTC
                without a time zone.
            has: Only passages that hold each of these: `table`, `code`, `math`,
                `definition_list`, `admonition`, `steps`.
            intent: Kind of question, when the caller knows it.
            top_k: Results at most.
            retrieval_mode: `chunk` selects passages, `full_context` returns everything the
                filters leave, up to the context budget, `auto` decides by size.
            on_progress: Told what is being done.

        Raises:
            InputError: The question, a filter or `top_k` cannot be used.
            StorageError: The database failed.
        """
        check_question(question)
        if top_k is not None and top_k < 1:
            raise InputError(f"top_k is {top_k}; it must be 1 or more.")
        filters = SearchFilters.of(
            source_urls=source_urls, sites=sites, years=years, fetched_since=fetched_since, has=has
        )
        parts = await self._current_parts()
        result = await parts.engine.search(
            question,
            filters=filters,
            intent=intent,
            top_k=top_k,
            retrieval_mode=retrieval_mode,
            on_progress=on_progress,
        )
        if result.corpus_stats.total_parent_chunks or filters == NO_FILTERS:
            return result
        warning = f"No stored page matches {filters.description}; `status` lists what is stored."
        return result.model_copy(update={"warnings": (*result.warnings, warning)})

    async def ask(
        self,
        question: str,
        *,
        url: str | Sequence[str] = (),
        years: Sequence[int] = (),
        deep: bool = False,
        on_event: "EventListener | None" = None,
    ) -> "ManagerResult":
        """Answer a question in sentences, each with citations that were checked.

        Written by the language model of `ANSWER_LLM_*` when there is one, else made of the best
        sentences found. Questions that are empty, too long or make no sense end in the state
        `fail` with a polite reply.

        Args:
            question: At most `MAX_QUESTION_CHARS` characters.
            url: Page, or pages, to answer from, fetched when the corpus lacks them; all that is
                stored when there is none.
            years: Only pages published in these years; any when there are none.
            deep: Follow the links of `url` where the evidence is too thin.
            on_event: Told of each step, and of each sentence as soon as it is checked.

        Raises:
            InputError: A URL or a year cannot be used, or `deep` has no URL to start from.
            FetchError: None of the pages could be obtained.
            ProviderError: The question could not be embedded.
            StorageError: The database failed.
        """
        from webrag.answering.request import answer_request

        request = answer_request(question, url=url, years=years, deep=deep)
        manager = (await self._current_parts()).manager
        return await manager.run(request, on_event=on_event)

    async def ingest(
        self,
        urls: str | Sequence[str],
        *,
        refresh: bool = False,
        on_page: Callable[[str, AcquiredPage | WebRAGError], None] | None = None,
    ) -> IngestReport:
        """Fetch and index pages; each is stored completely or not at all.

        Args:
            urls: Pages; a page named twice is fetched once.
            refresh: Ask the site again even when the stored version is fresh.
            on_page: Told each URL and its outcome as soon as it is known.

        Raises:
            InputError: A URL cannot be used; nothing was fetched.
        """
        wanted = [urls] if isinstance(urls, str) else list(urls)
        wanted = list(dict.fromkeys(canonical_url(url) for url in wanted))
        acquirer = (await self._current_parts()).acquirer
        slots = asyncio.Semaphore(_INGEST_CONCURRENCY)

        async def one(url: str) -> AcquiredPage | WebRAGError:
            async with slots:
                try:
                    outcome: AcquiredPage | WebRAGError = await acquirer.acquire(
                        url, refresh=refresh
                    )
                except WebRAGError as error:
                    outcome = error
            if on_page is not None:
                on_page(url, outcome)
            return outcome

        notes: dict[str, None] = {}
        with listening(lambda sentence: notes.update({sentence: None})):
            results = await _gather(one(url) for url in wanted)
        outcomes = list(zip(wanted, results, strict=True))
        return IngestReport(
            pages=tuple(page for _, page in outcomes if isinstance(page, AcquiredPage)),
            failed={url: str(error) for url, error in outcomes if isinstance(error, WebRAGError)},
            degraded=tuple(notes),
        )

    async def ingest_site(
        self,
        url: str,
        options: CrawlOptions | None = None,
        *,
        on_progress: CrawlProgressCallback | None = None,
    ) -> SiteReport:
        """Fetch and index the pages of a site, breadth first from `url`.

        Each page is stored completely or not at all, as soon as it is obtained. Cancelling keeps
        what is stored; the same call then goes on where it was, and a finished crawl that is
        repeated asks only about pages that are due.

        Args:
            url: Start page.
            options: How far to go; at most 500 pages below the start page's folder when None.
            on_progress: Told after each page.

        Raises:
            InputError: The URL or a pattern cannot be used.
            FetchError: The start page could not be obtained.
            ProviderError: The embedding service fails for every page.
            StorageError: The database failed.
        """
        return await (await self._current_parts()).crawler.crawl(
            url, options or CrawlOptions(), on_progress=on_progress
        )

    async def status(
        self, source_url: str | None = None, *, include_urls: bool = True
    ) -> CorpusStatus:
        """Tell what the corpus holds.

        Args:
            source_url: Only this page.
            include_urls: List the pages.

        Raises:
            InputError: The URL cannot be used.
        """
        url = None if source_url is None else canonical_url(source_url)
        parts = self._open_parts
        status = await parts.corpus.status(url, include_urls=include_urls)
        others = await self.collections()
        return status.model_copy(
            update={
                "available_embedding_model": parts.other_embedding,
                "page_source": parts.page_source,
                "other_collections": tuple(e for e in others if e.name != status.collection),
            }
        )

    async def verify(
        self,
        citations: Citation | Sequence[Citation],
        *,
        live: bool = True,
        deadline_s: float | None = None,
        on_checked: Callable[[CitationCheck, int, int], None] | None = None,
    ) -> list[CitationCheck]:
        """Check quotations against the stored pages and the live ones; nothing is stored.

        Args:
            citations: The quotations, each with its page and, if known, its place.
            live: Also fetch the pages as they are now, each once.
            deadline_s: Time for that; what is missing then is reported as unchecked.
            on_checked: Told each result, how many there are now and how many there will be.

        Raises:
            InputError: A URL, a quotation or its offsets cannot be used; nothing was fetched.
            StorageError: The database failed.
        """
        given = [citations] if isinstance(citations, Citation) else list(citations)
        if not given:
            raise InputError("No citation was given: name at least one.")
        verifier = (await self._current_parts()).verifier
        return await verifier.verify(given, live=live, deadline_s=deadline_s, on_checked=on_checked)

    async def page_text(self, document_id: "UUID") -> "PageText | None":
        """A stored page by its stable id; None when it is not stored."""
        from webrag.indexing.page_texts import read_page

        return await read_page(self._open_parts.database, document_id)

    async def passage_text(self, passage_id: "UUID") -> "PassageText | None":
        """A passage of a stored page (its `chunk_id`); None when it is not stored."""
        from webrag.indexing.page_texts import read_passage

        return await read_passage(self._open_parts.database, passage_id)

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, in the unit of every token budget."""
        return self._open_parts.count_tokens(text)

    async def links(self, urls: Sequence[str]) -> list[LinkCandidate]:
        """Links of stored pages, in page order."""
        return await self._open_parts.corpus.links([canonical_url(url) for url in urls])

    async def markdown(self, url: str) -> str | None:
        """Stored text of a page, the string citation offsets refer to; None if not stored."""
        return await self._open_parts.corpus.markdown(canonical_url(url))

    def evidence(
        self, result: OrchestrationResult, *, include_guide: bool = False
    ) -> "list[EvidenceBlock]":
        """The passages that `brief` prints when called with the same arguments, in its order."""
        from webrag.presentation.evidence import evidence_blocks

        config = self._brief_config(include_guide)
        return evidence_blocks(result, config, count_tokens=self._open_parts.count_tokens)

    def brief(
        self, result: OrchestrationResult, *, include_guide: bool = False, nonce: str | None = None
    ) -> str:
        """The result as a readable research brief.

        Args:
            result: What `answer` or `search` returned.
            include_guide: Address a model that will write the answer: begin with directions
                for it and suggest tool calls instead of commands.
            nonce: Unpredictable token that frames page text; no frames when None.
        """
        from webrag.presentation.brief import format_brief

        config = self._brief_config(include_guide)
        return format_brief(result, config, count_tokens=self._open_parts.count_tokens, nonce=nonce)

    async def clear(self) -> None:
        """Delete every page of the collection; it stays open, and empty."""
        from webrag.indexing.schema import drop_collection, ensure_schema

        parts = self._open_parts
        await drop_collection(parts.database)
        await ensure_schema(
            parts.database,
            embedding_model=parts.embedding.name,
            embedding_dimensions=parts.embedding.dimensions,
        )

    def _brief_config(self, include_guide: bool) -> "BriefConfig":
        config = self.settings.brief_config(caller="mcp" if include_guide else "cli")
        return config.model_copy(update={"include_guide": include_guide})

    @property
    def engine(self) -> "OrchestratorEngine":
        """The orchestration engine, for composing it with other LlamaIndex parts."""
        return self._open_parts.engine

    async def _current_parts(self) -> "Parts":
        """The parts that fit the collection, which another process may have reindexed."""
        from webrag.indexing.schema import corpus_embedding

        parts = self._open_parts
        found = await corpus_embedding(parts.database)
        if found in (None, (parts.embedding.name, parts.embedding.dimensions)):
            return parts
        assembly = await asyncio.to_thread(import_module, "webrag.assembly")
        async with self._reopening:
            if self._parts is parts and self._stack is not None:
                _log.info("The collection was reindexed with another model; opening it again.")
                # What calls under way use stays open until the end.
                self._parts = await assembly.assemble(
                    self.settings,
                    self._stack,
                    soft_deadline_s=self._soft_deadline_s,
                    page_source=self._page_source,
                    reranker=self._reranker,
                )
        return self._open_parts


def check_question(question: str) -> None:
    """Refuse what cannot be a question.

    Raises:
        InputError: It is empty, too long or holds a NUL character.
    """
    if not isinstance(question, str):
        raise InputError(f"The question is of type {type(question).__name__}; it must be text.")
    if not question.strip():
        raise InputError("The question is empty: ask something.")
    if "\x00" in question:
        raise InputError("The question holds a NUL character, which no text may contain.")
    if len(question) > MAX_QUESTION_CHARS:
        raise InputError(
            f"The question has {len(question):,} characters; "
            f"at most {MAX_QUESTION_CHARS:,} are allowed."
        )


async def _gather(works: "Iterable[Coroutine[Any, Any, T]]") -> list[T]:
    """Results in order; when one fails the others are cancelled and its own error is raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
