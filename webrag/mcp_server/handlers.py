"""What each tool does with its arguments: reads them, asks the memory, words the answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from webrag.argument_checks import FORGOTTEN_UNASKED, LEAST_MAX_TOKENS, LEAST_READ_TOKENS
from webrag.concurrency import in_background
from webrag.corpus.models import AcquiredPage
from webrag.crawling.report import CrawlOptions, CrawlProgress
from webrag.errors import InputError, WebRAGError
from webrag.ingestion.addresses import page_address
from webrag.ingestion.versions import checked_version
from webrag.mcp_server.arguments import Arguments
from webrag.mcp_server.replies import Reply, brief_reply, new_nonce, within_budget
from webrag.mcp_server.runtime import ProgressReporter, Runtime
from webrag.mcp_server.schemas import (
    DETAILS,
    MAX_CITATIONS,
    MAX_FORGET_URLS,
    MAX_INGEST_URLS,
)
from webrag.presentation.reports import (
    SHOWN_CHARS,
    STATUS_PAGES,
    format_excerpt,
    format_forget,
    format_ingest,
    format_site,
    format_status,
    format_unfinished_site,
    format_verification,
    pages_with,
)
from webrag.presentation.untrusted import one_line
from webrag.question import INTENTS, RESEARCH_MODES, Question
from webrag.retrieval.citation_checks import Citation, CitationCheck, check_citation
from webrag.retrieval.filters import CONTENT_KINDS
from webrag.retrieval.models import RETRIEVAL_MODES

if TYPE_CHECKING:
    from webrag.app import IngestReport, WebRAG
    from webrag.retrieval.reading import PageExcerpt

logger = logging.getLogger(__name__)

AskUser = Callable[[str], Awaitable[bool | None]]
"""Puts a yes-or-no question to the user; None when the client cannot."""

# Searches keep the processor busy, so more at once only wait for the 10 database connections, and
# fail after 10 s: with 64 clients on a busy machine 4 of 93 did.
SEARCHES_AT_ONCE = 5
_READ_TOKENS = 4_000
_CITATION_FIELDS = tuple(Citation.model_fields)


class Handlers:
    """One method per tool, over one memory.

    Args:
        runtime: Gives the open memory.
        searches: Held during a search; all callers share it.
        soft_deadline_s: After it `ingest` and `verify` report what is done; the memory keeps its
            own for `answer`.
        structured: Also prepare the answers as JSON.
        token_budget: Tokens of a reply at most; briefs keep to it themselves.
        ask: Puts a question to the user of this call's client.
    """

    def __init__(
        self,
        runtime: Runtime,
        searches: asyncio.Semaphore,
        *,
        soft_deadline_s: float,
        structured: bool,
        token_budget: int,
        ask: AskUser,
    ) -> None:
        self._token_budget = token_budget
        self._ask = ask
        self._runtime = runtime
        self._soft_deadline_s = soft_deadline_s
        self._structured = structured
        self._searches = searches

    async def answer(self, arguments: Arguments, progress: ProgressReporter) -> Reply:
        """Fetch, index, and find evidence."""
        question = _question(arguments, urls=arguments.texts("url", required=True))
        return await self._evidence(arguments, question, progress)

    async def search(self, arguments: Arguments, progress: ProgressReporter) -> Reply:
        """Find evidence in what is stored."""
        return await self._evidence(arguments, _question(arguments), progress)

    async def _evidence(
        self, arguments: Arguments, question: Question, progress: ProgressReporter
    ) -> Reply:
        max_tokens = arguments.integer("max_tokens", minimum=LEAST_MAX_TOKENS)
        detail = arguments.choice("detail", DETAILS) or "brief"
        memory = await self._memory(progress)
        async with self._searches if question.is_search else nullcontext():
            result = await memory.evidence_for(question, on_progress=progress)
        return await in_background(
            brief_reply,
            memory,
            result,
            structured=self._structured,
            max_tokens=max_tokens,
            detail=detail,
        )

    async def read(self, arguments: Arguments, progress: ProgressReporter) -> Reply:
        """Give a part of a stored page."""
        max_tokens = arguments.integer("max_tokens", minimum=LEAST_READ_TOKENS)
        memory = await self._memory(progress)
        budget = min(max_tokens or _READ_TOKENS, self._token_budget)
        excerpt = await memory.read(
            arguments.optional_text("url"),
            offset=arguments.integer("offset", minimum=0),
            heading=arguments.optional_text("heading"),
            quote=arguments.optional_text("quote"),
            passage_id=arguments.identity("passage_id"),
            max_tokens=max(budget, LEAST_READ_TOKENS),
        )
        return await in_background(_page_reply, memory, excerpt, budget)

    async def status(self, arguments: Arguments, progress: ProgressReporter) -> Reply:
        """Tell what is stored."""
        source_url = arguments.optional_text("source_url")
        include_urls = arguments.flag("include_urls", default=True)
        contains = arguments.optional_text("contains")
        page = arguments.integer("page", minimum=1) or 1
        memory = await self._memory(progress)
        status = await memory.status(source_url, include_urls=include_urls)
        status = pages_with(status, contains)
        shown = partial(format_status, status, max_pages=STATUS_PAGES, page=page)
        text = within_budget(
            await in_background(shown),
            self._token_budget,
            memory.count_tokens,
            hint="`contains` lists fewer pages",
        )
        listed = max(len(status.pages), len(status.failures))
        if listed > page * STATUS_PAGES:
            text = f"{text}\nNext: page={page + 1}"
        if contains and not listed:
            text = f"{text}\n\nNo page has {one_line(contains)!r} in its URL or title."
        portion = slice((page - 1) * STATUS_PAGES, page * STATUS_PAGES)
        shares = {"pages": status.pages[portion], "failures": status.failures[portion]}
        return Reply(text, data=status.model_copy(update=shares).model_dump(mode="json"))

    async def ingest(self, arguments: Arguments, progress: ProgressReporter) -> Reply:
        """Fetch and index pages."""
        deadline = time.monotonic() + self._soft_deadline_s
        named = arguments.texts("url", required=True) or []
        urls, refused = _usable("url", named, MAX_INGEST_URLS)
        refresh = arguments.flag("refresh", default=False)
        named_version = arguments.optional_text("version")
        version = None if named_version is None else checked_version(named_version)
        crawl = _crawl_options(arguments, urls, refresh=refresh, version=version)
        memory = await self._memory(progress)
        if arguments.flag("queue", default=False):
            if version and crawl is None:
                raise InputError("version goes with queue only where max_pages is given.")
            return await _enqueued(memory, urls, crawl, refused, refresh=refresh)
        if crawl is not None:
            return await self._ingest_site(memory, urls[0], crawl, deadline, progress)
        outcomes: dict[str, AcquiredPage | WebRAGError] = {}
        report: IngestReport | None = None
        found = len(urls)

        def on_found(count: int) -> None:
            nonlocal found
            found = count

        def on_page(url: str, outcome: AcquiredPage | WebRAGError) -> None:
            outcomes[url] = outcome
            progress.note(_page_progress(url, outcome, len(outcomes), found))

        await progress("ingest", f"Fetching and indexing {len(urls)} pages...")
        limit = asyncio.timeout(max(deadline - time.monotonic(), 0))
        try:
            async with limit:
                report = await memory.ingest(
                    urls, refresh=refresh, version=version, on_page=on_page, on_found=on_found
                )
        except TimeoutError:
            if not limit.expired():
                raise
            logger.warning("Time ran out after %d of %d pages", len(outcomes), found)
        await progress.flush()
        reply = _ingest_reply(urls, outcomes, refused, report)
        text = within_budget(
            reply.text, self._token_budget, memory.count_tokens, hint="`status` lists the pages"
        )
        return replace(reply, text=text)

    async def _ingest_site(
        self,
        memory: "WebRAG",
        url: str,
        options: CrawlOptions,
        deadline: float,
        progress: ProgressReporter,
    ) -> Reply:
        """Crawl until the time is over; the crawl is kept, and the same call goes on with it."""
        latest: list[CrawlProgress] = []

        def on_progress(now: CrawlProgress) -> None:
            latest[:] = [now]
            progress.note(f"Visited {now.done:,} pages, {now.queued:,} wait ({now.failed} failed)")

        await progress("ingest", f"Crawling from {one_line(url)}...")
        limit = asyncio.timeout(max(deadline - time.monotonic(), 0))
        try:
            async with limit:
                report = await memory.ingest_site(url, options, on_progress=on_progress)
        except TimeoutError:
            if not limit.expired():
                raise
            await progress.flush()
            now = latest[0] if latest else None
            return Reply(
                format_unfinished_site(url, now), data=_unfinished(url, now), changes_pages=True
            )
        await progress.flush()
        data = report.model_dump(mode="json")
        return Reply(
            format_site(report, caller="mcp"),
            is_error=not report.obtained,
            data=data,
            changes_pages=True,
        )

    async def verify(self, arguments: Arguments, progress: ProgressReporter) -> Reply:
        """Check quotations against the stored and the live pages."""
        deadline = time.monotonic() + self._soft_deadline_s
        entries = arguments.objects("citations", known=_CITATION_FIELDS, at_most=MAX_CITATIONS)
        citations, refused = _usable_citations(entries)
        live = arguments.flag("live", default=True)
        memory = await self._memory(progress)

        def on_checked(check: CitationCheck, done: int, total: int) -> None:
            progress.note(f"Checked: {one_line(check.url)} ({done}/{total})")

        await progress("verify", f"Checking {len(citations)} quotations...")
        checks = await memory.verify(
            citations,
            live=live,
            deadline_s=max(deadline - time.monotonic(), 0),
            on_checked=on_checked,
        )
        await progress.flush()
        data = {
            "checks": [check.model_dump(mode="json") for check in checks],
            "refused": {str(number): reason for number, reason in refused.items()},
        }
        nonce, shown = new_nonce(), SHOWN_CHARS
        text = format_verification(checks, nonce=nonce, refused=refused)
        while shown and memory.count_tokens(text) > self._token_budget:
            shown //= 2
            text = format_verification(checks, nonce=nonce, refused=refused, shown_chars=shown)
        return Reply(text, data=data)

    async def forget(self, arguments: Arguments, progress: ProgressReporter) -> Reply:
        """Delete pages; of many the user is asked, or `confirm` must say that they were."""
        urls, refused = _usable("url", arguments.texts("url", required=True) or [], MAX_FORGET_URLS)
        if refused:
            raise InputError(" ".join(refused.values()))
        confirmed = arguments.flag("confirm", default=False)
        if len(urls) > FORGOTTEN_UNASKED:
            await _confirm_forgetting(len(urls), self._ask, confirmed=confirmed)
        memory = await self._memory(progress)
        report = await memory.forget(urls, confirm=True)
        data = report.model_dump(mode="json")
        return Reply(
            format_forget(report),
            is_error=not report.removed,
            data=data,
            changes_pages=bool(report.removed),
        )

    async def _memory(self, progress: ProgressReporter) -> "WebRAG":
        if not self._runtime.is_ready:
            await progress("start", "Starting WebRAG (loading the index and the database)...")
        return await self._runtime.memory()


def _question(arguments: Arguments, **where: Any) -> Question:
    """The question that the arguments of `answer` or `search` ask.

    Raises:
        InputError: A value cannot be used.
    """
    return Question.of(
        arguments.text("query"),
        wordings=arguments.texts("wordings"),
        parts=arguments.texts("parts"),
        source_urls=arguments.texts("source_urls") or None,
        sites=arguments.texts("sites") or None,
        years=arguments.integers("years", minimum=1) or None,
        has=arguments.choices("has", CONTENT_KINDS),
        as_of=arguments.moment("as_of"),
        intent=arguments.choice("intent", INTENTS),
        known_context=arguments.optional_text("known_context"),
        constraints=arguments.texts("constraints"),
        expansion_budget=arguments.integer("expansion_budget", minimum=0),
        research_mode=arguments.choice("research_mode", RESEARCH_MODES),
        retrieval_mode=arguments.choice("retrieval_mode", RETRIEVAL_MODES),
        top_k=arguments.integer("top_k", minimum=1),
        **where,
    )


def _page_reply(memory: "WebRAG", excerpt: "PageExcerpt", budget: int) -> Reply:
    text, shown = format_excerpt(
        excerpt, token_budget=budget, count_tokens=memory.count_tokens, nonce=new_nonce()
    )
    data = {
        "url": shown.page.url,
        "title": shown.page.title,
        "text": shown.text,
        "char_start": shown.char_start,
        "char_end": shown.char_end,
        "page_chars": shown.page_chars,
        "next_offset": shown.next_offset,
        "heading_path": shown.heading_path,
    }
    return Reply(text, data=data)


async def _confirm_forgetting(count: int, ask: AskUser, *, confirmed: bool) -> None:
    """Refuse unless the user agrees; a client that can ask them is not taken at its word."""
    agreed = await ask(f"Delete {count} indexed pages?")
    if agreed is False:
        raise InputError(f"The user did not agree to delete {count} pages; nothing was deleted.")
    if agreed is None and not confirmed:
        raise InputError(
            f"url names {count} pages; more than {FORGOTTEN_UNASKED} are deleted only when the"
            " user agreed: ask them, then repeat the call with confirm=true."
        )


def _crawl_options(
    arguments: Arguments, urls: Sequence[str], *, refresh: bool, version: str | None
) -> CrawlOptions | None:
    """How far to follow links; None when only the named pages are wanted."""
    given = {
        "max_pages": arguments.integer("max_pages", minimum=1),
        "include": tuple(arguments.texts("include") or ()),
        "exclude": tuple(arguments.texts("exclude") or ()),
    }
    chosen = {name: value for name, value in given.items() if value}
    if not chosen:
        return None
    if len(urls) > 1:
        raise InputError(
            f"{', '.join(chosen)}: a crawl starts from one page, and url names {len(urls)}; call "
            "once for each."
        )
    try:
        return CrawlOptions(refresh=refresh, version=version, **chosen)  # type: ignore[arg-type]
    except ValidationError as error:
        raise InputError(f"max_pages is {given['max_pages']}; at most 1,000,000.") from error


def _unfinished(url: str, now: CrawlProgress | None) -> dict[str, object]:
    return {
        "start_url": url,
        "ended": "time",
        "visited": now.done if now else 0,
        "queued": now.queued if now else 0,
    }


def _usable(name: str, named: Sequence[str], at_most: int) -> tuple[list[str], dict[str, str]]:
    """Canonical addresses, and why the others cannot be used; refuses when none can."""
    urls: dict[str, None] = {}
    refused: dict[str, str] = {}
    for each in named:
        try:
            urls[page_address(each)] = None
        except InputError as error:
            refused[each] = str(error)
    if len(urls) > at_most:
        raise InputError(
            f"{name} names {len(urls)} pages; one call takes at most {at_most}: "
            "name the others in further calls."
        )
    if not urls:
        raise InputError(" ".join(refused.values()))
    return list(urls), refused


def _usable_citations(entries: Sequence[Arguments]) -> tuple[list[Citation], dict[int, str]]:
    """Those that can be looked up, and why the others cannot; refuses when none can."""
    usable: list[Citation] = []
    refused: dict[int, str] = {}
    for number, entry in enumerate(entries, 1):
        try:
            citation = _citation(entry)
            check_citation(citation)
        except InputError as error:
            refused[number] = str(error)
            if len(refused) == len(entries):
                raise
        else:
            usable.append(citation)
    return usable, refused


def _citation(entry: Arguments) -> Citation:
    return Citation(
        url=entry.optional_text("url"),
        quote=entry.text("quote"),
        char_start=entry.integer("char_start", minimum=0),
        char_end=entry.integer("char_end", minimum=0),
        passage_id=entry.identity("passage_id"),
    )


def _page_progress(url: str, outcome: AcquiredPage | WebRAGError, done: int, total: int) -> str:
    verb = "Failed" if isinstance(outcome, WebRAGError) else outcome.outcome.capitalize()
    return f"{verb}: {one_line(url)} ({done}/{total})"


async def _enqueued(
    memory: "WebRAG",
    urls: Sequence[str],
    crawl: CrawlOptions | None,
    refused: Mapping[str, str],
    *,
    refresh: bool,
) -> Reply:
    jobs = (
        [await memory.jobs.enqueue_site(urls[0], crawl)]
        if crawl is not None
        else await memory.jobs.enqueue_pages(urls, refresh=refresh)
    )
    from webrag.presentation.jobs import format_jobs

    lines = [format_jobs(jobs), *(f"- {url}\n  (refused: {why})" for url, why in refused.items())]
    data = {"jobs": [job.model_dump(mode="json") for job in jobs], "refused": dict(refused)}
    return Reply("\n".join(lines), data=data)


def _ingest_reply(
    urls: Sequence[str],
    outcomes: Mapping[str, AcquiredPage | WebRAGError],
    refused: Mapping[str, str],
    report: "IngestReport | None",
) -> Reply:
    """Of what was done, `report` tells more; None when time ran out before all was."""
    asked = (*urls, *(url for url in outcomes if url not in urls))
    known = [(url, outcomes[url]) for url in asked if url in outcomes]
    pages = [outcome for _, outcome in known if isinstance(outcome, AcquiredPage)]
    failed = {url: str(outcome) for url, outcome in known if isinstance(outcome, WebRAGError)}
    failed = {one_line(url): reason for url, reason in refused.items()} | failed
    failed |= {} if report is None else report.failed
    unfinished = [url for url in urls if url not in outcomes] if report is None else []
    more: dict[str, Any] = {"degraded": [], "gone": [], "left_out": {}}
    if report is not None:
        more = report.model_dump(mode="json", include=set(more))
    data = {
        "pages": [page.model_dump(mode="json") for page in pages],
        "failed": failed,
        "unfinished": unfinished,
        **more,
    }
    text = format_ingest(pages, failed, unfinished, **more)
    is_new = any(page.outcome in ("indexed", "updated") for page in pages)
    return Reply(text, is_error=not pages and not unfinished, data=data, changes_pages=is_new)
