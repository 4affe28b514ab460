"""WebRAG as one object: what the command line, the MCP server and notebooks call."""

import asyncio
import inspect
import logging
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeVar, Unpack
from uuid import UUID

from webrag.argument_checks import (
    LEAST_MAX_TOKENS,
    USUAL_READ_TOKENS,
    check_choice,
    check_text,
    checked_count,
    checked_seconds,
    shown_value,
)
from webrag.concurrency import LoopThread
from webrag.corpus.models import (
    CollectionSize,
    CorpusStatus,
    LinkCandidate,
    PageImage,
    PageListing,
    PageName,
    PageText,
    PassageText,
    SiteSize,
)
from webrag.corpus.schema import (
    collection_sizes,
    corpus_embedding,
    drop_collection,
    ensure_schema,
)
from webrag.errors import ConfigurationError, InputError
from webrag.ingesting import Ingester, IngestReport, PageListener
from webrag.ingestion.addresses import file_path, page_address
from webrag.ingestion.characters import storable
from webrag.ingestion.files.folder import named_urls
from webrag.ingestion.files.source import FileAccess
from webrag.ingestion.versions import checked_version
from webrag.orchestration.models import OrchestrationResult, ProgressCallback
from webrag.postgres.config import check_collection_name
from webrag.postgres.database import Database
from webrag.question import (
    PageFilters,
    Question,
    QuestionOptions,
    ResearchMode,
    check_question,
    keywords_checked,
)
from webrag.retrieval.citation_checks import Citation, CitationCheck
from webrag.retrieval.filters import SearchFilters
from webrag.retrieval.models import RetrievalMode
from webrag.settings import Settings, load_settings
from webrag.settings.variables import nearest
from webrag.wiring.own_parts import OwnParts

if TYPE_CHECKING:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.llms import LLM
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.readers.base import BaseReader
    from llama_index.core.response_synthesizers import ResponseMode
    from llama_index.core.schema import Document

    from webrag.answering.guardrails import Guardrail
    from webrag.answering.models import EventListener, ManagerResult
    from webrag.corpus.maintenance.checking import CorpusCheck
    from webrag.corpus.maintenance.reembedding import ReindexReport
    from webrag.corpus.maintenance.transfer import ExportReport, ImportReport
    from webrag.corpus.writer import ForgetReport
    from webrag.crawling.report import CrawlOptions, CrawlProgressCallback, SiteReport
    from webrag.embedding.embedder import EmbeddingChoice
    from webrag.ingestion.models import PageSource
    from webrag.jobs.models import WorkerOptions
    from webrag.jobs.queue import JobQueue, Turn, TurnEnd
    from webrag.llamaindex.query_engine import WebRAGQueryEngine, WebRAGRetriever
    from webrag.llamaindex.store import CorpusVectorStore
    from webrag.orchestration.engine import OrchestratorEngine
    from webrag.orchestration.models import ScoreProfile
    from webrag.orchestration.steps.research import RunComponents
    from webrag.presentation.brief.models import BriefConfig, EvidenceBlock, Seen
    from webrag.retrieval.reading import PageExcerpt
    from webrag.wiring.components import Components

__all__ = ["IngestReport", "WebRAG"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

Named = str | Path
"""A URL, or the path of a file or folder of this machine."""

Progress = Callable[[int, int], None]
"""Told what is done, and of how many."""

_SAMPLE = 100  # pages that `check_corpus` verifies, of many
_RETRIEVED = 10  # nodes of a retriever that is not told how many


class WebRAG:
    """Research memory: answers from pages with verbatim, located quotations.

    Opening it starts the embedded Postgres unless a server is configured, closing it releases
    everything. Calls may run concurrently; each raises StorageError when the database fails.

        async with WebRAG() as rag:
            result = await rag.answer("https://example.com/docs/", "How do I ...?")
            print(rag.brief(result))

    In a script without an event loop `with` does the same: `run` waits for one call, and what
    `query_engine` and `retriever` give is called as any other part of LlamaIndex.

        with WebRAG() as rag:
            rag.run(rag.ingest("https://example.com/docs/"))
            print(rag.query_engine().query("How do I ...?"))

    Args:
        settings: Defaults to what the environment says.
        soft_deadline_s: Seconds after which `answer` returns what it has, marked as partial;
            None to use the whole of `ORCHESTRATION_TIMEOUT`.
        page_source: A `PageSource`, closed with the rest and asked for more links of a site where
            it has a method `map`, or a LlamaIndex web reader; None for what the settings say.
        reranker: Any LlamaIndex postprocessor that scores from 0 to 1.
        score_profile: Thresholds for its scores, or the name of a scorer it is like; None for
            those of cross-encoders. Thresholds that the settings name replace them.
        embed_model: Any LlamaIndex embedding. A new collection records its class, its `model_name`
            and its dimensions; a collection that was made with another model is refused.
        llm: Any LlamaIndex LLM, which splits questions and writes the answers of `ask`.
        node_parser: Any LlamaIndex node parser whose nodes are slices of the page's text and say
            where they begin; it cuts pages in this process.
        guardrails: Checks that `ask` makes beside its own; each has a `stage` (`input`, `retrieval`
            or `output`) and a `check` that raises `GuardrailsViolationError` to stop the answer.
        reads_named_files: Naming a file or folder allows it to be read, with all below it; a
            server whose callers are programs says no, and only `WEBRAG_ALLOW_DIRS` are read.
        is_own_user: The caller is the user whose logins are stored on this machine; for others
            only those of `WEBRAG_ALLOW_LOGINS` are used.
        sees_collections: The caller may know which other collections the database has.
        unknown: Takes nothing: a misspelt argument is refused with the name probably meant.

    Raises:
        ConfigurationError: An argument does not exist, or `settings` are none.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        soft_deadline_s: float | None = None,
        page_source: "PageSource | BaseReader | None" = None,
        reranker: "BaseNodePostprocessor | None" = None,
        score_profile: "ScoreProfile | str | None" = None,
        embed_model: "BaseEmbedding | None" = None,
        llm: "LLM | None" = None,
        node_parser: "NodeParser | None" = None,
        guardrails: "Sequence[Guardrail]" = (),
        reads_named_files: bool = True,
        is_own_user: bool = True,
        sees_collections: bool = True,
        **unknown: Never,
    ) -> None:
        _check_construction(settings, unknown)
        self.settings = settings or load_settings()
        self._own = OwnParts(
            page_source, reranker, score_profile, embed_model, llm, node_parser, tuple(guardrails)
        )
        self._files = FileAccess(map(Path, self.settings.allow_dirs), takes_names=reads_named_files)
        self._is_own_user = is_own_user
        self._sees_collections = sees_collections
        self._soft_deadline_s = soft_deadline_s
        self._stack: AsyncExitStack | None = None
        self._parts: Components | None = None
        self._reopening = asyncio.Lock()
        self._thread: LoopThread | None = None
        self._had_thread = False

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._thread = LoopThread()
        else:
            raise InputError(
                "`with WebRAG()` would block the event loop it is used in: write `async with "
                "WebRAG()`, as in a notebook."
            )
        try:
            self.run(self.open())
        except BaseException:
            self._end_thread()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self.close())
        finally:
            self._end_thread()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a call, or for a coroutine of your own, in a `with` block.

        Raises:
            InputError: There is no `with` block around, or it has ended.
        """
        if self._thread is None:
            work.close()
            raise InputError(
                "WebRAG is closed: its `with` block has ended. Call run() inside the block, or "
                "write another."
                if self._had_thread
                else "run() is for `with WebRAG()`; in `async with` await the call."
            )
        return self._thread.run(work)

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._had_thread = True
            thread.close()

    async def open(self) -> None:
        """Start what is needed; does nothing when already open.

        Raises:
            ConfigurationError: Settings contradict each other or the corpus.
            DatabaseUnavailableError: The database cannot be started or reached.
        """
        if self._parts is not None:
            return
        async with AsyncExitStack() as stack:
            self._parts = await self._assembled(stack)
            self._stack = stack.pop_all()
        if "IPython" in sys.modules:
            import_module("webrag.presentation.notebooks").register_displays()

    async def close(self) -> None:
        """Release connections, worker processes and the database lease."""
        self._parts = None
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.aclose()

    # Questions; these need an open WebRAG.

    @keywords_checked
    async def answer(
        self,
        url: Named | Sequence[Named],
        question: str,
        *,
        on_progress: ProgressCallback | None = None,
        **options: Unpack[QuestionOptions],
    ) -> OrchestrationResult:
        """Find evidence for a question, starting from one or more pages.

        Args:
            url: Pages to start from, fetched when the corpus lacks them; files and folders of this
                machine, by their paths, are read with all below them.
            question: At most 8,000 characters.
            on_progress: Told what is being done.
            options: The other fields of a `Question`.

        Raises:
            InputError: Something given cannot be used, or nothing is held as of the moment.
            FetchError: The only page named could not be obtained.
        """
        urls = self._addresses(url)
        if not urls:
            raise InputError("No URL was given: name at least one page to start from.")
        asked = Question.of(question, urls=urls, **options)
        return await self.evidence_for(asked, on_progress=on_progress)

    @keywords_checked
    async def search(
        self,
        question: str,
        *,
        on_progress: ProgressCallback | None = None,
        **options: Unpack[QuestionOptions],
    ) -> OrchestrationResult:
        """Find evidence in what is stored; nothing is fetched.

        A warning of the result says why there was no page to search.

        Args:
            question: At most 8,000 characters.
            on_progress: Told what is being done.
            options: The other fields of a `Question`.

        Raises:
            InputError: Something given cannot be used, or nothing is held as of the moment.
        """
        return await self.evidence_for(Question.of(question, **options), on_progress=on_progress)

    async def evidence_for(
        self, question: Question, *, on_progress: ProgressCallback | None = None
    ) -> OrchestrationResult:
        """Find evidence as `answer` does for a question that names pages, else as `search` does.

        Raises what these raise.
        """
        check_question(question.text)
        from webrag.answering.page_summary import asks_for_summary

        question, missing = await self._located(question, on_progress)
        engine = await self._made(lambda parts: parts.engine)  # reading a folder takes minutes
        is_about_a_page = asks_for_summary(question.text) and question.retrieval_mode == "chunk"
        if is_about_a_page:  # what a page says of itself stands on it: no link is followed
            near = {"research_mode": "fast", "expansion_budget": 0}
            question = question.model_copy(update=near)
        result = await engine.run(question, on_progress=on_progress)
        if is_about_a_page:
            result = await self._summarised(question, result)
        warnings = (*missing, *result.warnings)
        if question.is_search and not result.corpus_stats.total_parent_chunks:
            stored = (await self._open_parts.corpus.status(include_urls=False)).documents
            why = _why_nothing_was_searched(stored, question.filters, self.settings.collection)
            warnings = (*warnings, why)
        return result.model_copy(update={"warnings": warnings})

    async def _located(
        self, question: Question, on_progress: ProgressCallback | None = None
    ) -> tuple[Question, tuple[str, ...]]:
        """As `Ingester.located`, which a question that names nothing does without."""
        if question.is_search and not question.source_urls and question.as_of is None:
            return question, ()
        return await (await self._ingester()).located(question, on_progress)

    async def _summarised(
        self, question: Question, result: OrchestrationResult
    ) -> OrchestrationResult:
        """Put what the one page that is asked about says of itself into the result."""
        from webrag.answering.page_summary import page_summary, summarised

        parts, named = self._open_parts, (*question.urls, *question.stored)
        filters = question.filters
        if named:
            stored = await parts.corpus.pages(named)
            filters = replace(filters, source_urls=tuple(page.url for page in stored.values()))
        summary, _ = await page_summary(parts.searcher, question.text, filters)
        return result if summary is None else summarised(result, summary)

    @keywords_checked
    async def ask(
        self,
        question: str,
        *,
        url: Named | Sequence[Named] = (),
        deep: bool = False,
        on_event: "EventListener | None" = None,
        **options: Unpack[QuestionOptions],
    ) -> "ManagerResult":
        """Answer a question in sentences, each with citations that were checked.

        Written by the language model of `ORCHESTRATION_LLM_*` when there is one, else made of the
        best sentences found. Questions that are empty, too long or make no sense end in the state
        `fail` with a polite reply.

        Args:
            question: At most 8,000 characters.
            url: Pages to answer from, as for `answer`; all that is stored when there is none.
            deep: Follow the links of `url` where the evidence is too thin.
            on_event: Told of each step, and of each sentence as soon as it is checked.
            options: The other fields of a `Question`.

        Raises:
            InputError: Something given cannot be used, or nothing is held as of the moment.
            FetchError: None of the pages could be obtained.
            ProviderError: The question could not be embedded.
        """
        if deep:
            options["research_mode"] = "deep"
        asked = Question.of(question, urls=self._addresses(url), **options)
        return await self.answer_to(asked, on_event=on_event)

    async def answer_to(
        self, question: Question, *, on_event: "EventListener | None" = None
    ) -> "ManagerResult":
        """Answer in sentences, and raise what `ask` raises."""
        from webrag.answering.planning import check_answerable

        check_answerable(question)
        question, missing = await self._located(question)
        manager = await self._made(lambda parts: parts.manager)
        result = await manager.run(question, on_event=on_event)
        return result.model_copy(update={"degraded": (*missing, *result.degraded)})

    def evidence(
        self,
        result: OrchestrationResult,
        *,
        include_guide: bool = False,
        max_tokens: int | None = None,
        detail: Literal["brief", "full"] = "brief",
        every_passage: bool = False,
        seen: "Sequence[Seen]" = (),
    ) -> "list[EvidenceBlock]":
        """The passages that `brief` prints when called with the same arguments, in its order.

        `every_passage` also gives those that `brief` leaves out because others are more relevant,
        as far as `MCP_RESPONSE_TOKEN_BUDGET` goes, and the second with its whole parent chunk too.

        Raises:
            InputError: `max_tokens` or `detail` cannot be used.
        """
        from webrag.presentation.brief.brief import evidence_blocks

        config = self._brief_config(
            result, max_tokens, include_guide=include_guide, detail=detail, seen=seen
        )
        if every_passage:
            budget = self.settings.mcp_response_token_budget
            config = config.model_copy(update={"every_passage": True, "token_budget": budget})
        return evidence_blocks(result, config, count_tokens=self.count_tokens)

    def brief(
        self,
        result: OrchestrationResult,
        *,
        include_guide: bool = False,
        nonce: str | None = None,
        max_tokens: int | None = None,
        detail: Literal["brief", "full"] = "brief",
        seen: "Sequence[Seen]" = (),
    ) -> str:
        """The result of `answer` or `search` as a readable research brief.

        Takes some milliseconds for a passage; a server lets a thread of its own do it.

        Args:
            result: The evidence.
            include_guide: Address a model that will write the answer: begin with directions
                for it and suggest tool calls instead of commands.
            nonce: Unpredictable token that frames page text; no frames when None.
            max_tokens: Tokens of the text at most, never more than `MCP_RESPONSE_TOKEN_BUDGET`;
                None for 4,000, or for that budget where whole pages were asked for.
            detail: `full` adds passages, links to quoted words, decisions and times.
            seen: Passages that the reader has, with their offsets, named and not printed again.

        Raises:
            InputError: `max_tokens` or `detail` cannot be used.
        """
        from webrag.presentation.brief.brief import format_brief

        config = self._brief_config(
            result, max_tokens, include_guide=include_guide, detail=detail, seen=seen
        )
        return format_brief(result, config, count_tokens=self.count_tokens, nonce=nonce)

    def best_passages(
        self, result: OrchestrationResult, *, at_most: int | None = None
    ) -> "list[EvidenceBlock]":
        """The passages worth a person's time, best first, each with its finest quotations.

        They are `at_most` so many; None for one to six, the fewer the weaker the evidence is.
        """
        from webrag.presentation.results import best_passages

        config = self._brief_config(result, None)
        return best_passages(result, config, at_most=at_most)

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, in the unit of every token budget."""
        return self._open_parts.count_tokens(text)

    # Pages and sites without a question; these need an open WebRAG.

    async def ingest(
        self,
        urls: Named | Sequence[Named],
        *,
        refresh: bool = False,
        version: str | None = None,
        on_page: PageListener | None = None,
        on_found: Callable[[int], None] | None = None,
    ) -> IngestReport:
        """Fetch and index pages; each is stored completely or not at all.

        Args:
            urls: Pages, paths of files and folders of this machine, and repositories
                (`git+https://host/owner/repository@ref#folder`); of a folder read before, only
                changed files are read again.
            refresh: Ask the site again even when the stored version is fresh.
            version: Of the library the pages are about, such as "3.2", now and in later states;
                None for what addresses, pages and packages say themselves.
            on_page: Told each URL and its outcome as soon as it is known.
            on_found: Told how many pages there are, before the first.

        Raises:
            InputError: A URL or the version cannot be used; nothing was fetched.
        """
        label = "" if version is None else checked_version(version)
        ingester = await self._ingester()
        return await ingester.ingest(
            self._addresses(urls),
            refresh=refresh,
            version=label,
            on_page=on_page,
            on_found=on_found,
        )

    async def add_documents(self, documents: "Sequence[Document]") -> IngestReport:
        """Index LlamaIndex documents, as pages that nobody has to be asked for.

        A document whose metadata name an address of the web (`source_url`, `url`, `source`) is
        stored under it, every other one under `document:` and its id, in place of the version
        before. Several of one address become one page in the order given, whose citations name each
        `page_label`. Text is read as Markdown. Chunks carry the metadata that all documents of a
        page share, for the filters of `vector_store`; title, description, language and date among
        them are the page's, and a file's name stands for a title.

        Raises:
            InputError: One of them is no document, or has no text; nothing was stored.
        """
        return await (await self._ingester()).documents(documents)

    def _addresses(self, given: Named | Sequence[Named]) -> tuple[str, ...]:
        return named_urls(given, takes_names=self._files.takes_names)

    async def ingest_site(
        self,
        url: str,
        options: "CrawlOptions | None" = None,
        *,
        on_progress: "CrawlProgressCallback | None" = None,
    ) -> "SiteReport":
        """Fetch and index the pages of a site, breadth first from `url`.

        Each page is stored completely or not at all, as soon as it is obtained. A repeated call
        goes on where a cancelled one was; after a finished one it asks about pages that are due.

        Args:
            url: Start page.
            options: How far to go; at most 500 pages below the start page's folder when None.
            on_progress: Told after each page.

        Raises:
            InputError: The URL or a pattern cannot be used.
            FetchError: The start page could not be obtained.
            ProviderError: The embedding service fails for every page.
        """
        from webrag.crawling.report import CrawlOptions

        crawler = await self._made(lambda parts: parts.crawler)
        return await crawler.crawl(url, options or CrawlOptions(), on_progress=on_progress)

    # Jobs, for workers on any machine; these need an open WebRAG and the extra `workers`.

    @property
    def jobs(self) -> "JobQueue":
        """The jobs of the collection: sites, pages and quotations to work on, and schedules.

        Raises:
            ConfigurationError: The extra `workers` is not installed.
        """
        return self._open_parts.jobs

    async def work(
        self,
        options: "WorkerOptions | None" = None,
        *,
        until_empty: bool = False,
        on_turn: "Callable[[Turn, TurnEnd], None] | None" = None,
    ) -> None:
        """Do the collection's jobs until cancelled, or until none waits for a worker.

        `on_turn` is told of each turn that ended: its job and what follows.
        """
        from webrag.wiring.components import make_worker

        await self._current_parts()
        worker = await asyncio.to_thread(
            make_worker, self.jobs, self._current_parts, options, on_turn
        )
        await worker.run(until_empty=until_empty)

    # What is stored; these need an open WebRAG.

    async def status(
        self, source_url: str | None = None, *, include_urls: bool = True
    ) -> CorpusStatus:
        """Tell what the corpus holds, or of one page alone; `include_urls` lists the pages.

        Raises:
            InputError: The URL cannot be used.
        """
        url = None if source_url is None else page_address(source_url)
        parts = self._open_parts
        status = await parts.corpus.status(url, include_urls=include_urls)
        others = await self.collections()
        return status.model_copy(
            update={
                "available_embedding_model": parts.other_embedding,
                "page_source": parts.page_source.source.name,
                "sites": () if url else tuple(await parts.corpus.sites()),
                "other_collections": tuple(e for e in others if e.name != status.collection),
            }
        )

    async def list_pages(
        self, contains: str = "", *, site: str | None = None, limit: int = 50, offset: int = 0
    ) -> PageListing:
        """Some of the stored pages, most recently fetched first, and how many there are.

        Args:
            contains: Only pages whose URL or title holds it, whatever the letter case.
            site: Only pages of this host (`host` or `host:port`).
            limit: Pages at most.
            offset: Pages left out at the beginning.

        Raises:
            InputError: `limit` or `offset` cannot be used.
        """
        checked_count("limit", limit, minimum=1)
        checked_count("offset", offset, minimum=0)
        corpus = self._open_parts.corpus
        of_site = None if site is None else storable(site)
        return await corpus.list_pages(storable(contains), site=of_site, limit=limit, offset=offset)

    async def sites(self) -> list[SiteSize]:
        """The hosts whose pages are stored, those with most pages first."""
        return await self._open_parts.corpus.sites()

    async def years(self) -> dict[int, int]:
        """Stored pages by year of publication, the latest first; undated pages are in none."""
        return await self._open_parts.corpus.years()

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
        """
        given = [citations] if isinstance(citations, Citation) else list(citations)
        if not given:
            raise InputError("No citation was given: name at least one.")
        if deadline_s is not None:
            checked_seconds("deadline_s", deadline_s)
        for citation in given:
            # Naming a file in a citation is naming it; elsewhere only allowed folders are read.
            if live and citation.url and citation.url.startswith("file:"):
                self._files.name(file_path(page_address(citation.url)))
        verifier = (await self._current_parts()).verifier
        return await verifier.verify(given, live=live, deadline_s=deadline_s, on_checked=on_checked)

    async def page_names(self, contains: str = "", *, limit: int = 100) -> list[PageName]:
        """The stored pages last fetched whose URL or title holds some words, in any letter case.

        Args:
            contains: Words that stand together; empty for every page.
            limit: Pages at most, from 1.

        Raises:
            InputError: The words or the limit cannot be used.
        """
        checked_count("limit", limit, minimum=1)
        words = check_text("contains", contains).strip()
        return await self._open_parts.corpus.page_names(words, limit)

    async def page_images(self, document_id: UUID) -> list[PageImage]:
        """Describe the images of a stored page in their order; none is ever fetched."""
        return await self._open_parts.corpus.page_images(_identity(document_id))

    async def page_text(self, document_id: UUID) -> PageText | None:
        """A stored page by its stable id; None when it is not stored."""
        return await self._open_parts.corpus.page_text(_identity(document_id))

    async def read(
        self,
        url: str | None = None,
        *,
        offset: int | None = None,
        heading: str | None = None,
        quote: str | None = None,
        passage_id: UUID | str | None = None,
        max_tokens: int = USUAL_READ_TOKENS,
    ) -> "PageExcerpt":
        """Read a stored page, from the beginning or from a place; nothing is fetched.

        Args:
            url: The page, by any address it is known by; may be left out for a passage.
            offset: Begin at this character, such as the `next_offset` of an excerpt before.
            heading: Begin at the heading with these words.
            quote: Begin a little before this quotation.
            passage_id: Begin with this passage (the `chunk_id` of a result).
            max_tokens: Tokens of the text at most, from 200.

        Raises:
            InputError: The page is not stored or holds no such place, or two places are named.
        """
        from webrag.retrieval.reading import ReadingPlace, read_stored

        parts = self._open_parts
        identity = None if passage_id is None else _identity(passage_id)
        return await read_stored(
            parts.corpus,
            url=url,
            place=ReadingPlace(offset, heading, quote, identity),
            max_tokens=max_tokens,
            count_tokens=parts.count_tokens,
        )

    async def passage_text(self, passage_id: UUID) -> PassageText | None:
        """A passage of a stored page (its `chunk_id`); None when it is not stored."""
        return await self._open_parts.corpus.passage_text(_identity(passage_id))

    async def links(self, urls: Sequence[str]) -> list[LinkCandidate]:
        """Links of stored pages, in page order."""
        return await self._open_parts.corpus.links([page_address(url) for url in urls])

    async def markdown(self, url: str, *, as_of: datetime | None = None) -> str | None:
        """Stored text of a page, the string citation offsets refer to; None if not stored.

        With `as_of` the text that was stored at this moment, in UTC without a time zone, kept as
        `WEBRAG_KEEP_VERSIONS` says.

        Raises:
            InputError: Nothing that old was kept; the message says since when there is a text.
        """
        corpus = self._open_parts.corpus
        address = page_address(url)
        if as_of is None:
            return await corpus.markdown(address)
        return await corpus.markdown_as_of(address, as_of)

    # Looking after what is stored. Only `import_corpus` and `clear` need an open WebRAG; the others
    # also work on one that is not open, or cannot be, as the settings do not fit the collection.

    async def forget(
        self,
        urls: str | Sequence[str] | None = None,
        *,
        site: str | None = None,
        older_than: timedelta | None = None,
        confirm: Callable[[Sequence[str]], bool] | bool | None = None,
        on_progress: Progress | None = None,
    ) -> "ForgetReport":
        """Delete pages with everything made from them; they can be fetched again.

        Args:
            urls: These pages, by any URL they are known by; goes with no other condition.
            site: Pages of this host (`host` or `host:port`).
            older_than: Pages that their site last delivered or confirmed longer ago than this; a
                positive time span.
            confirm: True, or a function that is told the URLs and may say False; without it more
                than 20 pages are refused.
            on_progress: Told how many pages are deleted.

        Raises:
            InputError: Nothing was named, URLs and conditions were, one cannot be used, or more
                than 20 pages would go without a confirmation; nothing was deleted.
        """
        from webrag.corpus.writer import forget

        async with self._some_database() as database:
            return await forget(
                database,
                urls,
                site=site,
                older_than=older_than,
                confirm=confirm,
                on_progress=on_progress,
            )

    async def export_corpus(
        self,
        path: Path,
        *,
        overwrite: bool = False,
        with_logins: bool = False,
        on_progress: Progress | None = None,
    ) -> "ExportReport":
        """Write every page, as of one moment, to a portable file.

        Pages that were read with a login are left out unless `with_logins` asks for them.

        Raises:
            InputError: The file exists, cannot be written, or nothing is stored.
        """
        from webrag.corpus.maintenance.transfer import export_corpus

        async with self._some_database() as database:
            return await export_corpus(
                database,
                path,
                overwrite=overwrite,
                with_logins=with_logins,
                on_progress=on_progress,
            )

    async def import_corpus(
        self, path: Path, *, on_progress: Progress | None = None
    ) -> "ImportReport":
        """Store the pages of a portable file, chunked and embedded here; repeating it is harmless.

        Raises:
            InputError: The file cannot be read or is no export.
            ProviderError: Embedding failed; what was stored before is kept.
        """
        from webrag.corpus.maintenance.transfer import import_corpus

        parts = await self._current_parts()
        return await import_corpus(parts.corpus, parts.indexer, path, on_progress=on_progress)

    async def check_corpus(
        self, *, everything: bool = False, on_progress: Progress | None = None
    ) -> "CorpusCheck":
        """Examine the database and a sample of the pages, or each of them; nothing is changed."""
        from webrag.corpus.maintenance.checking import check_corpus

        async with self._some_database() as database:
            wanted = None
            if self.settings.embedding_provider != "auto":
                choice = await self._chosen_embedding(await corpus_embedding(database))
                wanted = (choice.name, choice.dimensions)
            return await check_corpus(
                database,
                wanted=wanted,
                sample=None if everything else _SAMPLE,
                on_progress=on_progress,
            )

    async def reindex(
        self, *, force: bool = False, on_progress: Progress | None = None
    ) -> "ReindexReport":
        """Embed the stored text again with the model that a new collection would get.

        The old vectors serve until the new ones are complete; a call goes on where one before it
        ended early. With `force` vectors are renewed although the model is the same.

        Raises:
            ConfigurationError: The settings choose no usable model.
            ProviderError: Embedding failed.
            StorageError: Another process is reindexing the collection.
        """
        from webrag.corpus.maintenance.reembedding import reembed
        from webrag.wiring.embeddings import load_embedder

        async with self._some_database() as database, AsyncExitStack() as stack:
            existing = await corpus_embedding(database) if force else None
            choice = await self._chosen_embedding(existing)
            embedder, _ = await load_embedder(self.settings, choice, stack)
            return await reembed(
                database, embedder, choice.name, force=force, on_progress=on_progress
            )

    async def collections(self) -> list[CollectionSize]:
        """Every collection that the caller may know of, with its number of pages, by name."""
        own = None if self._sees_collections else self.settings.collection
        async with self._some_database() as database:
            return await collection_sizes(database, own)

    async def drop_collection(
        self,
        collection: str | None = None,
        *,
        confirm: Callable[[CollectionSize], bool] | None = None,
    ) -> bool:
        """Delete a collection with everything in it; False when there is none, or not confirmed.

        None is the one in use, and closes this WebRAG; `confirm` is told name and size before.
        """
        own = self.settings.collection
        name = own if collection is None else check_collection_name(collection)
        async with self._some_database() as database:
            sizes = {each.name: each for each in await collection_sizes(database)}
            if name not in sizes or (confirm is not None and not confirm(sizes[name])):
                return False
            dropped = await drop_collection(database, name)
        if dropped and name == own:
            await self.close()
        return dropped

    async def clear(self) -> None:
        """Delete every page of the collection; it stays open, and empty."""
        parts = self._open_parts
        await drop_collection(parts.database)
        await ensure_schema(
            parts.database,
            embedding_model=parts.embedding.name,
            embedding_dimensions=parts.embedding.dimensions,
        )

    # The parts as LlamaIndex components. These need an open WebRAG; what they give works as long as
    # that stays open, refuses to read the corpus afterwards, and is not to be closed.

    @keywords_checked
    def retriever(
        self,
        *,
        retrieval_mode: RetrievalMode = "chunk",
        top_k: int | None = None,
        similarity_top_k: int | None = None,
        **filters: Unpack[PageFilters],
    ) -> "WebRAGRetriever":
        """Retrieval without reranking: both legs, fused, children merged into their parents.

        Gives `top_k` nodes at most, which stock retrievers call `similarity_top_k`; None for ten,
        and for all where pages are read whole. Modes and filters are the fields of a `Question`.

        Raises:
            InputError: A filter, the mode or `top_k` cannot be used, or both names of it are given.
        """
        from webrag.llamaindex.query_engine import WebRAGRetriever

        if similarity_top_k is not None:
            if top_k is not None:
                raise InputError("top_k and similarity_top_k are two names of one; give either.")
            top_k = similarity_top_k
        if top_k is None and retrieval_mode == "chunk":
            top_k = _RETRIEVED
        return WebRAGRetriever(
            self._open_parts.searcher,
            filters=SearchFilters.of(**filters),
            mode=retrieval_mode,
            top_k=top_k,
        )

    @keywords_checked
    def query_engine(
        self,
        url: str | Sequence[str] | None = None,
        *,
        research_mode: ResearchMode = "fast",
        expansion_budget: int | None = None,
        similarity_top_k: int | None = None,
        node_postprocessors: "Sequence[BaseNodePostprocessor]" = (),
        max_quotes: int = 3,
        llm: "LLM | None" = None,
        response_mode: "ResponseMode | str" = "compact",
        streaming: bool = False,
        callback_manager: "CallbackManager | None" = None,
        **filters: Unpack[PageFilters],
    ) -> "WebRAGQueryEngine":
        """The whole loop: retrieval, reranking, link following, verbatim quotations.

        Args:
            url: Pages to start every query from; None searches what is stored.
            research_mode: As in a `Question`.
            expansion_budget: As in a `Question`.
            similarity_top_k: Source nodes at most; None for all evidence.
            node_postprocessors: Applied to the source nodes, as in stock engines.
            max_quotes: Quotations in the response text at most.
            llm: Writes the response text from the evidence, as in stock engines; None to quote.
            response_mode: As in stock engines.
            streaming: Give the text in pieces.
            callback_manager: LlamaIndex's own.
            filters: As in a `Question`, for what is searched where no URL is given.

        Raises:
            InputError: A URL, a filter, a mode or a number cannot be used.
        """
        from webrag.llamaindex.query_engine import WebRAGQueryEngine

        return WebRAGQueryEngine(
            self._open_parts.engine,
            urls=url,
            research_mode=research_mode,
            expansion_budget=expansion_budget,
            filters=SearchFilters.of(**filters),
            similarity_top_k=similarity_top_k,
            node_postprocessors=node_postprocessors,
            max_quotes=max_quotes,
            llm=llm,
            response_mode=response_mode,
            streaming=streaming,
            loop=None if self._thread is None else self._thread.loop,
            # A page source of a program's own works in the loop that it was made in.
            elsewhere=self._engine_elsewhere if self._own.page_source is None else None,
            callback_manager=callback_manager,
        )

    @asynccontextmanager
    async def _engine_elsewhere(self) -> "AsyncIterator[OrchestratorEngine]":
        """Make an engine for another event loop: connections serve the one they were made in."""
        async with WebRAG(
            self.settings.model_copy(update={"tracing": "off"}),  # spans are exported already
            soft_deadline_s=self._soft_deadline_s,
            reads_named_files=self._files.takes_names,
            is_own_user=self._is_own_user,
            **self._own._asdict(),
        ) as other:
            yield other.engine

    def vector_store(self) -> "CorpusVectorStore":
        """The searched chunks, for LlamaIndex's own indexes and pipelines."""
        from webrag.llamaindex.store import CorpusVectorStore

        parts = self._open_parts
        return CorpusVectorStore(
            database=parts.database,
            embed_dim=parts.embedding.dimensions,
            embedding_model=parts.embedding.name,
        )

    def vector_index(self) -> "VectorStoreIndex":
        """An index over `vector_store` with `embed_model`; nothing is embedded.

        Its document store gives the stored chunks and their parents by id, so that
        `AutoMergingRetriever(index.as_retriever(), index.storage_context)` works.
        """
        from llama_index.core import StorageContext, VectorStoreIndex

        from webrag.llamaindex.store import CorpusDocumentStore

        store = self.vector_store()
        storage = StorageContext.from_defaults(
            docstore=CorpusDocumentStore(store), vector_store=store
        )
        return VectorStoreIndex(nodes=[], storage_context=storage, embed_model=self.embed_model())

    def embed_model(self) -> "BaseEmbedding":
        """The embedding model the corpus is made with."""
        return self._open_parts.embed_model

    def node_parser(self) -> "NodeParser":
        """The node parser that cuts pages into parents and children."""
        return self._open_parts.node_parser

    def reranker(self) -> "BaseNodePostprocessor | None":
        """The reranker in use, as a node postprocessor; None without one or without its key."""
        return self._open_parts.reranker

    @property
    def engine(self) -> "OrchestratorEngine":
        """The orchestration engine, for composing it with other LlamaIndex parts."""
        return self._open_parts.engine

    def components(self) -> "RunComponents":
        """The parts a `WebRAGWorkflow` works with; `dataclasses.replace` exchanges some of them."""
        return self._open_parts.engine.components

    @property
    def _open_parts(self) -> "Components":
        if self._parts is None:
            raise InputError("WebRAG is not open: use it in an `async with` block, or call open().")
        return self._parts

    async def _current_parts(self) -> "Components":
        """The parts that fit the collection, which another process may have reindexed."""
        parts = self._open_parts
        found = await corpus_embedding(parts.database)
        if found in (None, (parts.embedding.name, parts.embedding.dimensions)):
            return parts
        async with self._reopening:
            if self._parts is parts and self._stack is not None:
                logger.info("The collection was reindexed with another model; opening it again.")
                # What calls under way use stays open until the end.
                self._parts = await self._assembled(self._stack)
        return self._open_parts

    async def _made(self, pick: "Callable[[Components], T]") -> T:
        """Pick parts that fit the collection; a thread makes them, as their imports take time."""
        return await asyncio.to_thread(pick, await self._current_parts())

    async def _ingester(self) -> Ingester:
        limit = self.settings.fetching.max_decoded_bytes
        return Ingester(await self._current_parts(), self._files, limit)

    async def _assembled(self, stack: AsyncExitStack) -> "Components":
        # The imports behind it take more than a second, which would stall the event loop.
        wiring = await asyncio.to_thread(import_module, "webrag.wiring.components")
        parts: Components = wiring.Components(
            self.settings, stack, self._own, self._files, self._soft_deadline_s, self._is_own_user
        )
        return await parts.start()

    async def _chosen_embedding(self, existing: tuple[str, int] | None) -> "EmbeddingChoice":
        from webrag.wiring.embeddings import choose_embedding

        await asyncio.to_thread(self._own.check)
        return await asyncio.to_thread(
            choose_embedding, self.settings, existing, own=self._own.embed_model
        )

    @asynccontextmanager
    async def _some_database(self) -> AsyncIterator[Database]:
        """The open one, or one for this piece of work."""
        if self._parts is not None:
            yield self._parts.database
            return
        database = Database(self.settings.database_config())
        try:
            yield database
        finally:
            await database.close()

    def _brief_config(
        self,
        result: OrchestrationResult,
        max_tokens: int | None,
        *,
        include_guide: bool = False,
        detail: Literal["brief", "full"] = "brief",
        seen: "Sequence[Seen]" = (),
    ) -> "BriefConfig":
        from webrag.presentation.brief.models import DEFAULT_MAX_TOKENS

        check_choice("detail", detail, ("brief", "full"))
        config = self.settings.brief_config(caller="mcp" if include_guide else "cli")
        wanted = DEFAULT_MAX_TOKENS if result.mode == "chunk" else config.token_budget
        if max_tokens is not None:
            checked_count("max_tokens", max_tokens, minimum=LEAST_MAX_TOKENS)
            wanted = max_tokens
        budget = min(wanted, config.token_budget)
        return config.model_copy(
            update={
                "detail": detail,
                "seen": tuple(seen),
                "token_budget": budget,
                "ceiling": config.token_budget,
            }
        )


def _check_construction(settings: object, unknown: Iterable[str]) -> None:
    for name in unknown:
        own = [each for each in inspect.signature(WebRAG).parameters if each != "unknown"]
        said = f"WebRAG has no argument {name!r}"
        meant = nearest(name, [*own, *Settings.model_fields])
        if meant is None:
            raise ConfigurationError(f"{said}; it takes {', '.join(own)}.")
        if meant in own:
            raise ConfigurationError(f"{said}; did you mean {meant}?")
        raise ConfigurationError(
            f"{said}; {meant} is a setting: write WebRAG(load_settings({meant}=...))."
        )
    if settings is not None and not isinstance(settings, Settings):
        raise ConfigurationError(
            f"settings is of type {type(settings).__name__}; give what load_settings returns, as "
            "in WebRAG(load_settings(collection=...))."
        )


def _why_nothing_was_searched(stored: int, filters: SearchFilters, collection: str) -> str:
    if not stored:
        return f"Nothing is stored in the collection {collection!r} yet: fetch a page first."
    if not filters.description:
        # The first page was stored between the search and the count.
        return "No stored page could be searched; `status` lists what is stored."
    since = filters.fetched_since
    is_to_come = since is not None and since > datetime.now(UTC)
    remark = ", which is still to come" if is_to_come else ""
    return f"No stored page matches {filters.description}{remark}; `status` lists what is stored."


def _identity(value: UUID | str) -> UUID:
    """The id, also where a caller holds it as text."""
    try:
        return UUID(str(value))
    except ValueError:
        raise InputError(f"The id {shown_value(value)} is none; give a UUID.") from None
