"""The work of each tool: reads its arguments, asks the memory, words the answer."""

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from webrag.argument_checks import FORGOTTEN_UNASKED, LEAST_READ_TOKENS, USUAL_READ_TOKENS
from webrag.concurrency import in_background, within
from webrag.corpus.models import AcquiredPage
from webrag.crawling.report import CrawlOptions, CrawlProgress, SiteReport
from webrag.errors import InputError, WebRAGError
from webrag.frozen import shared_fields
from webrag.ingestion.addresses import page_address, sites_and_addresses
from webrag.mcp_server.replies import (
    IngestOutput,
    ReadOutput,
    Reply,
    SeenPassages,
    UnfinishedSite,
    VerifyOutput,
    brief_reply,
    new_nonce,
    within_budget,
)
from webrag.mcp_server.runtime import ProgressReporter, Runtime
from webrag.presentation.reports import (
    SHOWN_CHARS,
    STATUS_PAGES,
    counted,
    format_excerpt,
    format_forget,
    format_ingest,
    format_site,
    format_status,
    format_unfinished_site,
    format_verification,
    pages_with,
    status_of,
)
from webrag.presentation.untrusted import one_line
from webrag.retrieval.citation_checks import Citation, CitationCheck, check_citation
from webrag.tool_inputs import (
    AnswerInput,
    CitationInput,
    ForgetInput,
    IngestInput,
    ReadInput,
    SearchInput,
    StatusInput,
    VerifyInput,
)

if TYPE_CHECKING:
    from webrag.app import IngestReport, WebRAG
    from webrag.corpus.models import CorpusStatus
    from webrag.question import Question
    from webrag.retrieval.reading import PageExcerpt

logger = logging.getLogger(__name__)

AskUser = Callable[[str], Awaitable[bool | None]]
"""Puts a yes-or-no question to the user; None when the client cannot."""

# Searches keep the processor busy, so more at once only wait for the 10 database connections, and
# fail after 10 s: with 64 clients on a busy machine 4 of 93 did.
SEARCHES_AT_ONCE = 5
# Passages are not longer; whoever names a place seldom wants the rest of the page.
_READ_AT_PLACE_TOKENS = 1_000


@dataclass(eq=False)
class Handlers:
    """One method per tool, over one memory; all callers share the semaphore held during a search.

    After `soft_deadline_s` `ingest` and `verify` report what is done. Replies have `token_budget`
    tokens at most.
    """

    runtime: Runtime
    searches: asyncio.Semaphore
    soft_deadline_s: float
    structured: bool
    token_budget: int
    seen: SeenPassages
    ask: AskUser

    async def answer(self, given: AnswerInput, progress: ProgressReporter) -> Reply:
        """Fetch, index, and find evidence."""
        return await self._evidence(given, given.question(urls=given.url), progress)

    async def search(self, given: SearchInput, progress: ProgressReporter) -> Reply:
        """Find evidence in what is stored."""
        return await self._evidence(given, given.question(), progress)

    async def _evidence(
        self, given: AnswerInput | SearchInput, question: "Question", progress: ProgressReporter
    ) -> Reply:
        memory = await self._memory(progress)
        async with self.searches if question.is_search else nullcontext():
            result = await memory.evidence_for(question, on_progress=progress)
        had = self.seen.of_others(question.text)
        reply, printed = await in_background(
            brief_reply,
            memory,
            result,
            structured=self.structured,
            max_tokens=given.max_tokens,
            detail=given.detail,
            seen=(*had, *((passage_id, 0, sys.maxsize) for passage_id in given.seen or ())),
        )
        self.seen.add(question.text, printed)
        return reply

    async def read(self, given: ReadInput, progress: ProgressReporter) -> Reply:
        """Give a part of a stored page."""
        memory = await self._memory(progress)
        place = given.model_dump(exclude={"url", "max_tokens"})
        is_place = given.heading or given.quote or given.passage_id
        usual = _READ_AT_PLACE_TOKENS if is_place else USUAL_READ_TOKENS
        budget = min(given.max_tokens or usual, self.token_budget)
        excerpt = await memory.read(given.url, **place, max_tokens=max(budget, LEAST_READ_TOKENS))
        return await in_background(_page_reply, memory, excerpt, budget)

    async def status(self, given: StatusInput, progress: ProgressReporter) -> Reply:
        """Tell how much is stored, or list the pages of a site or those that hold a text."""
        contains, page, place = given.contains, given.page, given.source_url
        hosts, urls = sites_and_addresses([place] if place else [], takes_paths=False)
        memory = await self._memory(progress)
        is_listed = bool(place or contains or given.include_urls or page > 1)
        status = await memory.status(next(iter(urls), None), include_urls=is_listed)
        for host in hosts:
            status = status_of(status, host)
        status = pages_with(status, contains) if contains else status
        text, size = await in_background(
            _listed,
            status,
            partial(format_status, is_listed=is_listed, caller="mcp"),
            page,
            self.token_budget,
            memory.count_tokens,
        )
        listed = max(len(status.pages), len(status.failures) if is_listed else 0)
        if listed > page * size:
            text = f"{text}\nNext: page={page + 1}"
        if contains and not (status.pages or status.failures):
            text = f"{text}\n\nNo page has {one_line(contains)!r} in its URL or title."
        portion = slice((page - 1) * size, page * size)
        shares = {"pages": status.pages[portion], "failures": status.failures[portion]}
        return Reply(text, data=status.model_copy(update=shares))

    async def ingest(self, given: IngestInput, progress: ProgressReporter) -> Reply:
        """Fetch and index pages."""
        deadline = time.monotonic() + self.soft_deadline_s
        urls, refused = _usable(given.url)
        crawl = given.crawl()
        memory = await self._memory(progress)
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
            became = "Failed" if isinstance(outcome, WebRAGError) else "Stored"
            progress.note(f"{became}: {one_line(url)} ({len(outcomes)}/{found})")

        await progress("ingest", f"Fetching {counted(len(urls), 'page')}...")
        async with within(max(deadline - time.monotonic(), 0)):
            report = await memory.ingest(
                urls,
                refresh=given.refresh,
                version=given.version,
                on_page=on_page,
                on_found=on_found,
            )
        if report is None:
            logger.warning("Time ran out after %d of %d pages", len(outcomes), found)
        await progress.flush()
        reply = _ingest_reply(urls, outcomes, refused, report)
        hint = "`status` lists the pages"
        text = within_budget(reply.text, self.token_budget, memory.count_tokens, hint=hint)
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
        report: SiteReport | None = None
        async with within(max(deadline - time.monotonic(), 0)):
            report = await memory.ingest_site(url, options, on_progress=on_progress)
        await progress.flush()
        if report is None:
            done, queued = (latest[0].done, latest[0].queued) if latest else (0, 1)
            return Reply(
                format_unfinished_site(url, done, queued),
                data=UnfinishedSite(start_url=url, visited=done, queued=queued),
                changes_pages=True,
            )
        text = format_site(report, caller="mcp")
        return Reply(text, is_error=not report.obtained, data=report, changes_pages=True)

    async def verify(self, given: VerifyInput, progress: ProgressReporter) -> Reply:
        """Check quotations against the stored and the live pages."""
        deadline = time.monotonic() + self.soft_deadline_s
        citations, refused = _usable_citations(given.citations)
        memory = await self._memory(progress)

        def on_checked(check: CitationCheck, done: int, total: int) -> None:
            progress.note(f"Checked: {one_line(check.url)} ({done}/{total})")

        await progress("verify", f"Checking {counted(len(citations), 'quotation')}...")
        checks = await memory.verify(
            citations,
            live=given.live,
            deadline_s=max(deadline - time.monotonic(), 0),
            on_checked=on_checked,
        )
        await progress.flush()
        data = VerifyOutput(checks=tuple(checks), refused=refused)
        nonce, shown = new_nonce(), SHOWN_CHARS
        text = format_verification(checks, nonce=nonce, refused=refused)
        while shown and memory.count_tokens(text) > self.token_budget:
            shown //= 2
            text = format_verification(checks, nonce=nonce, refused=refused, shown_chars=shown)
        return Reply(text, data=data)

    async def forget(self, given: ForgetInput, progress: ProgressReporter) -> Reply:
        """Delete pages; of many the user is asked, or `confirm` must say that they were."""
        urls, refused = _usable(given.url)
        if refused:
            raise InputError(" ".join(refused.values()))
        if len(urls) > FORGOTTEN_UNASKED:
            await _confirm_forgetting(len(urls), self.ask, confirmed=given.confirm)
        memory = await self._memory(progress)
        report = await memory.forget(urls, confirm=True)
        removed = bool(report.removed)
        return Reply(
            format_forget(report), is_error=not removed, data=report, changes_pages=removed
        )

    async def _memory(self, progress: ProgressReporter) -> "WebRAG":
        if not self.runtime.is_ready:
            await progress("start", "Starting WebRAG...")
        return await self.runtime.memory()


def _listed(
    status: "CorpusStatus",
    show: "Callable[..., str]",
    page: int,
    token_budget: int,
    count_tokens: Callable[[str], int],
) -> tuple[str, int]:
    """A portion of a listing, and how many pages each portion has: as many as surely fit."""
    nothing = {"sites": (), "pages": (), "failures": ()}

    def longest(**only: tuple[Any, ...]) -> int:
        (entries,) = only.values()
        text = show(status.model_copy(update={**nothing, **only}), max_pages=len(entries))
        return max((count_tokens(f"\n- {each}") for each in text.split("\n- ")[1:]), default=0)

    # With a first entry, which leaves room for what says that there are more.
    head = count_tokens(show(status, max_pages=1))
    each = max(longest(pages=status.pages) + longest(failures=status.failures), 1)
    size = max(min(STATUS_PAGES, (token_budget - head) // each), 1)
    text = show(status, max_pages=size, page=page)
    hint = "`contains` lists fewer pages"
    return within_budget(text, token_budget, count_tokens, hint=hint), size


def _page_reply(memory: "WebRAG", excerpt: "PageExcerpt", budget: int) -> Reply:
    text, shown = format_excerpt(
        excerpt, token_budget=budget, count_tokens=memory.count_tokens, nonce=new_nonce()
    )
    data = ReadOutput(
        **shared_fields(ReadOutput, shown), url=shown.page.url, title=shown.page.title
    )
    return Reply(text, data=data)


async def _confirm_forgetting(count: int, ask: AskUser, *, confirmed: bool) -> None:
    """Refuse unless the user agrees; a client that can ask them is not taken at its word."""
    agreed = await ask(f"Delete {count} stored pages?")
    if agreed is False:
        raise InputError(f"The user did not agree to delete {count} pages; nothing was deleted.")
    if agreed is None and not confirmed:
        raise InputError(
            f"url names {count} pages; more than {FORGOTTEN_UNASKED} are deleted only when the"
            " user agreed: ask them, then repeat the call with confirm=true."
        )


def _usable(named: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Canonical addresses, and why the others cannot be used; refuses when none can."""
    urls: dict[str, None] = {}
    refused: dict[str, str] = {}
    for each in named:
        try:
            urls[page_address(each)] = None
        except InputError as error:
            refused[each] = str(error)
    if not urls:
        raise InputError(" ".join(refused.values()))
    return list(urls), refused


def _usable_citations(entries: Sequence[Any]) -> tuple[list[Citation], dict[int, str]]:
    """Citations that can be looked up, and why others cannot; refuses when none can."""
    usable: list[Citation] = []
    refused: dict[int, str] = {}
    for number, entry in enumerate(entries, 1):
        try:
            citation = CitationInput.model_validate(entry).citation()
            check_citation(citation)
        except InputError as error:
            refused[number] = str(error)
            if len(refused) == len(entries):
                raise
        else:
            usable.append(citation)
    return usable, refused


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
    more = {} if report is None else report.model_dump(include={"degraded", "gone", "left_out"})
    data = IngestOutput(pages=tuple(pages), failed=failed, unfinished=tuple(unfinished), **more)
    is_new = any(page.outcome in ("indexed", "updated") for page in pages)
    return Reply(
        format_ingest(**dict(data)),
        is_error=not pages and not unfinished,
        data=data,
        changes_pages=is_new,
    )
