"""Brings the pages of a site into the corpus, breadth first, by means of others."""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, Literal

from webrag.concurrency import all_of
from webrag.corpus.acquirer import PageAcquirer, PageNotAdmittedError, unexpected_failure
from webrag.corpus.models import AcquiredPage
from webrag.crawling.queue import Crawl, QueuedPage, TurnLostError, begin_crawl
from webrag.crawling.report import (
    ALIAS,
    SIZE_REASONS,
    CrawlOptions,
    CrawlProgress,
    CrawlProgressCallback,
    PageOutcome,
    SiteReport,
)
from webrag.crawling.scope import CrawlScope
from webrag.crawling.sitemap import SitemapReader
from webrag.crawling.traps import TrapGuard, TrapLimits, text_signature, without_session, words_hash
from webrag.errors import (
    ConfigurationError,
    DatabaseUnavailableError,
    FetchError,
    InputError,
    PageGoneError,
    ProviderError,
    RefusedAddressError,
    RobotsDisallowedError,
    SourceUnavailableError,
    UnusablePageError,
    WebRAGError,
)
from webrag.ingestion.addresses import canonical_url
from webrag.ingestion.fetch_context import listening, patiently
from webrag.orchestration.links.rules import NoPage
from webrag.postgres.database import Database

_log = logging.getLogger(__name__)

_SHOWN_FAILURES: Final = 20
_PACE_PAGES: Final = 30
_FEW: Final = 3  # the first pages tell of the start, not of the pace
_SHOWN_NOTES: Final = 20
_REMEMBERED_SKIPS: Final = 50_000
_UNREACHABLE_AFTER: Final = 20

_KINDS: Final = (
    (PageGoneError, "not found (404 or 410)"),
    (RobotsDisallowedError, "forbidden by robots.txt"),
    (RefusedAddressError, "refused address"),
    (SourceUnavailableError, "page source not available"),
    (ProviderError, "embedding failed"),
)

_UNUSABLE_KINDS: Final = {
    "bot_wall": "bot wall",
    "login_wall": "login wall",
    "cookie_wall": "cookie wall",
    "script_shell": "empty without JavaScript",
    "soft_404": "not found, although answered as if it were",
    "too_little_text": "almost no text",
    "empty": "empty",
    "not_text": "not text",
    "too_large": "too large",
    "endless_redirect": "redirects without end",
    "given_up": "given up",
}


def failure_kind(error: WebRAGError) -> str:
    """A few words for a failure, the same for all failures alike."""
    for kind, words in _KINDS:
        if isinstance(error, kind):
            return words
    if isinstance(error, UnusablePageError):
        return _UNUSABLE_KINDS.get(error.kind, "not a readable page")
    if not isinstance(error, FetchError):
        return "could not be stored"
    return "no answer" if error.status is None else f"HTTP {error.status}"


def is_no_answer(error: WebRAGError) -> bool:
    """Tell whether nothing came back, or only that the whole site is in trouble."""
    of_the_page = RobotsDisallowedError | RefusedAddressError | UnusablePageError
    if isinstance(error, of_the_page) or not isinstance(error, FetchError):
        return False
    return error.status is None or error.status == 429 or error.status >= 500


@dataclass(slots=True)
class CrawlTally:
    """The figures of one run; `unanswered` are the pages asked for since the site last answered."""

    pages: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    not_pages: int = 0
    chunks_embedded: int = 0
    degraded: dict[str, None] = field(default_factory=dict)
    unanswered: list[str] = field(default_factory=list)
    _seen_skips: set[int] = field(default_factory=set)
    started: float = field(default_factory=time.monotonic)

    @property
    def site_is_down(self) -> bool:
        """So many requests in a row had no answer that asking on is pointless."""
        return len(self.unanswered) >= _UNREACHABLE_AFTER

    @property
    def visited(self) -> int:
        """Pages of this run, obtained or not."""
        return self.pages.total() + self.failed.total()

    def obtained(self, page: AcquiredPage, *, is_alias: bool) -> None:
        """Count a page that is in the corpus, or another address of one that was counted."""
        self.unanswered.clear()
        self.pages[ALIAS if is_alias else page.outcome] += 1
        self.chunks_embedded += page.chunks_embedded

    def missed(self, url: str, error: WebRAGError) -> None:
        """Count a page that is not."""
        if is_no_answer(error):
            self.unanswered.append(url)
        else:
            self.unanswered.clear()
        self.failed[failure_kind(error)] += 1
        if len(self.failures) < _SHOWN_FAILURES:
            self.failures[url] = str(error)

    def note_degraded(self, sentence: str) -> None:
        """Remember what a page source had to say, each sentence once, 20 at most."""
        if len(self.degraded) < _SHOWN_NOTES:
            self.degraded[sentence] = None

    def left_alone(self, url: str, reason: str) -> None:
        """Count an address that is not visited, once however often it is linked to."""
        mark = hash(url)
        if mark not in self._seen_skips and len(self._seen_skips) < _REMEMBERED_SKIPS:
            self._seen_skips.add(mark)
            self.skipped[reason] += 1
            self.not_pages += isinstance(reason, NoPage)


_WORKERS: Final = 8  # per host the fetcher is stricter
_WINDOW: Final = 32
_TEXT_CHARS: Final = 8_000
_PROVIDER_FAILURES: Final = 3
# Pages beyond these can hardly come up before the limit does.
_QUEUE_FACTOR: Final = 5
_QUEUE_BASE: Final = 10_000
# Workers in a row that die while they work on a page and on no other that is suspected.
_MOST_DEATHS: Final = 5


@dataclass(frozen=True, slots=True)
class CrawlTurn:
    """A worker's turn at a crawl, with a higher number than all before, and seconds for a page."""

    number: int
    is_over: Callable[[], bool]
    page_s: float = 300.0


@dataclass(slots=True)
class _CrawlRun:
    _acquirer: PageAcquirer
    crawl: Crawl
    _start: str
    _options: CrawlOptions
    _on_progress: CrawlProgressCallback | None
    _turn: CrawlTurn | None
    _suspects: asyncio.Lock
    tally: CrawlTally = field(default_factory=CrawlTally)
    _known: int = 0
    _waiting: int = 0
    _ended: deque[float] = field(default_factory=lambda: deque(maxlen=_PACE_PAGES))
    _provider_failures: int = 0
    _scope: CrawlScope = field(init=False)
    _guard: TrapGuard = field(init=False)
    _queue_limit: int = field(init=False)
    # What comes next of those that wait, and what workers have taken and not done yet.
    _window: deque[QueuedPage] = field(default_factory=deque)
    _under_way: set[str] = field(default_factory=set)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self._scope = CrawlScope.of(self._options, self.crawl.roots or (self._start,))
        self._guard = TrapGuard(TrapLimits.for_pages(self._options.max_pages))
        self._queue_limit = _QUEUE_BASE + _QUEUE_FACTOR * self._options.max_pages

    async def open(self, site_list: SitemapReader | None) -> None:
        """Obtain the start page, and queue its links and the pages that the site itself lists."""
        first = QueuedPage(self._start, depth=0)
        try:
            await self.crawl.add([first])
            page = await self._acquire(first, is_start=True)
            self._scope = CrawlScope.of(self._options, (self._start, page.url))
            await self._take_in(first, page)
        except WebRAGError:
            if self._turn is None:  # nobody else works at it
                await self.crawl.end()
            raise
        if site_list is not None and self._options.depth != 0:
            named = await self.crawl.sitemaps(page.page_id)
            listed = await site_list.entries(self._start, limit=self._queue_limit, named=named)
            pages = self._wanted(listed, depth=1)
            self._count_added(pages, await self.crawl.add(pages))
        await self.crawl.set_roots(self._scope.roots)
        self._waiting = await self.crawl.queued()

    async def remember(self) -> None:
        """Bring the counts of an interrupted run back."""
        learned = await self.crawl.learned() if self._turn else None
        if learned is not None:
            self._guard.recall(learned)
        async for page in self.crawl.known():
            if learned is None:
                self._guard.admit(page.url, page.depth)
            self._known += 1
        self._waiting = await self.crawl.queued()

    async def work(self) -> None:
        """Visit pages until none is left or the crawl must end."""
        if self._turn is not None:
            await self._visit_begun()
        await all_of(self._worker() for _ in range(_WORKERS))
        if self._turn is not None:
            await self.crawl.remember(self._guard.learned())

    async def report(self) -> SiteReport:
        """Give the figures of this run."""
        tally = self.tally
        queued = await self.crawl.queued()
        down = tally.site_is_down and queued > 0
        full = self.crawl.visited + tally.visited >= self._options.max_pages
        left: Literal["limit", "paused"] = "limit" if full or self._turn is None else "paused"
        return SiteReport(
            start_url=self._start,
            pages=dict(tally.pages),
            failed=dict(tally.failed.most_common()),
            failures=tally.failures,
            skipped=dict(tally.skipped.most_common()),
            not_pages=tally.not_pages,
            degraded=tuple(tally.degraded),
            chunks_embedded=tally.chunks_embedded,
            queued=queued,
            ended="unreachable" if down else left if queued else "complete",
            before=self.crawl.visited,
            resumed=self.crawl.is_resumed,
            seconds=round(time.monotonic() - tally.started, 3),
        )

    async def _visit_begun(self) -> None:
        """Visit alone each page that a worker may have died of, so that it takes no other along."""
        for entry in await self.crawl.begun():
            if self._is_over():
                return
            if entry.attempts > _MOST_DEATHS:  # the first of them in company
                why = f"{_MOST_DEATHS} workers ended while they worked on it"
                await self._miss(entry, await self._acquirer.give_up(entry.url, why))
            else:
                async with self._suspects:
                    await self._visit(entry)

    async def _worker(self) -> None:
        while entry := await self._next():
            try:
                await self._visit(entry)
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise asyncio.CancelledError  # which some code took for a failure
            finally:
                async with self._changed:
                    self._under_way.discard(entry.url)
                    self._changed.notify_all()

    async def _next(self) -> QueuedPage | None:
        """Take the next page, waiting while others may still find some; None when none is left."""
        async with self._changed:
            while not self._is_over():
                if (entry := await self._following()) is not None:
                    self._under_way.add(entry.url)
                    return entry
                if not self._under_way:
                    return None
                await self._changed.wait()
            return None

    async def _following(self) -> QueuedPage | None:
        while True:
            if not self._window:
                self._window.extend(
                    await self.crawl.next_pages(limit=_WINDOW, under_way=list(self._under_way))
                )
            if not self._window:
                return None
            entry = self._window.popleft()
            if not await self._refuse(entry):
                return entry

    def _is_over(self) -> bool:
        visited = self.crawl.visited + self.tally.visited + len(self._under_way)
        is_over = self._turn is not None and self._turn.is_over()
        return is_over or visited >= self._options.max_pages or self.tally.site_is_down

    async def _refuse(self, entry: QueuedPage) -> bool:
        """Take a page out of the queue that must not be visited any more, and tell if it was."""
        if not entry.outside and self._guard.may_wait(entry.url):
            await self.crawl.put_off(entry.url)
            return True
        reason = self._guard.begin(entry.url)
        if reason is not None:
            await self._leave_alone(entry, reason)
        return reason is not None

    async def _visit(self, entry: QueuedPage) -> None:
        try:
            page = await self._acquire(entry)
        except (ConfigurationError, DatabaseUnavailableError, TurnLostError):
            raise
        except (PageNotAdmittedError, InputError):
            await self._leave_alone(entry, "leads outside the crawl")
            return
        except RobotsDisallowedError:
            await self._leave_alone(entry, "forbidden by robots.txt")
            return
        except WebRAGError as error:
            failure = error
        else:
            self._provider_failures = 0
            try:
                await self._take_in(entry, page)
            except WebRAGError:
                raise
            except Exception as error:  # noqa: BLE001 - what a page links to must not end the crawl
                failure = unexpected_failure(entry.url, error)
            else:
                self._report_progress(entry.url, page.outcome)
                return
        await self._miss(entry, failure)
        status = failure.status if isinstance(failure, FetchError) else None
        self._report_progress(entry.url, "failed", str(failure), status)

    async def _acquire(self, entry: QueuedPage, *, is_start: bool = False) -> AcquiredPage:
        # Always as a refresh: when a due page cannot be had, a crawl must say so.
        since = self.crawl.started_at
        if not self._options.refresh:
            since = self._acquirer.due_before(since)
            since = since if entry.newest is None else max(since, entry.newest)
        begin = partial(self.crawl.begin_page, entry.url, entry.attempts + 1)
        page_s = self._turn.page_s if self._turn else None
        async with self._acquirer.given_up_after(page_s, entry.url):
            return await self._acquirer.acquire(
                entry.url,
                refresh=True,
                since=since,
                version=self._options.version or "",
                admits=None if is_start else self._scope.admits,
                fresh=self._options.refresh or entry.newest is not None,
                on_fetched=begin if self._turn else None,
            )

    async def _take_in(self, entry: QueuedPage, page: AcquiredPage) -> None:
        found, text = await self.crawl.view(page.page_id, text_chars=_TEXT_CHARS)
        follow = self._options.depth is None or entry.depth < self._options.depth
        links = self._wanted(dict.fromkeys(found), depth=entry.depth + 1) if follow else []
        seen, added = await self.crawl.note_visited(entry.url, stored_as=page.url, links=links)
        self._waiting -= 1
        self._count_added(links, added)
        self.tally.obtained(page, is_alias=seen)
        self._guard.note_obtained(
            entry.url, text_signature(text), words=words_hash(text), is_alias=seen
        )

    async def _miss(self, entry: QueuedPage, error: WebRAGError) -> None:
        _log.info("%s was not obtained: %s", entry.url, error)
        self.tally.missed(entry.url, error)
        self._guard.note_failed(entry.url)
        if isinstance(error, ProviderError):
            self._provider_failures += 1
            if self._provider_failures >= _PROVIDER_FAILURES:
                raise error
        self._waiting -= 1
        await self.crawl.note_visited(entry.url, links=[])
        if self.tally.site_is_down:
            # They are tried again when the crawl goes on.
            await self.crawl.requeue(self.tally.unanswered)

    async def _leave_alone(self, entry: QueuedPage, reason: str) -> None:
        self.tally.left_alone(entry.url, reason)
        self._waiting -= 1
        await self.crawl.skip([entry.url])

    def _wanted(self, urls: Mapping[str, datetime | None], *, depth: int) -> list[QueuedPage]:
        pages: dict[str, QueuedPage] = {}
        for found, newest in urls.items():
            url = without_session(found)
            if url in pages:
                continue
            reason = self._scope.reason_against(url)
            if reason is None and self._known >= self._queue_limit:
                reason = SIZE_REASONS["known"]
            if reason is None:
                reason = self._guard.admit(url, depth)
            if reason is None:
                pages[url] = QueuedPage(url, depth, not self._scope.in_folder(url), newest)
                self._known += 1
            elif self._scope.admits(url):
                self.tally.left_alone(url, reason)
        return list(pages.values())

    def _count_added(self, pages: Sequence[QueuedPage], added: set[str]) -> None:
        for page in pages:
            if page.url not in added:
                self._guard.release(page.url)
                self._known -= 1
        self._waiting += len(added)

    def _report_progress(
        self, url: str, outcome: PageOutcome, reason: str = "", status: int | None = None
    ) -> None:
        if self._on_progress is None:
            return
        tally = self.tally
        done = self.crawl.visited + tally.visited
        self._ended.append(time.monotonic())
        took, is_told = self._ended[-1] - self._ended[0], len(self._ended) > _FEW
        self._on_progress(
            CrawlProgress(
                done=done,
                queued=max(0, min(self._waiting, self._options.max_pages - done)),
                failed=tally.failed.total(),
                pages_per_second=(len(self._ended) - 1) / took if is_told and took > 0 else 0.0,
                url=url,
                outcome=outcome,
                reason=reason,
                status=status,
            )
        )


@dataclass(frozen=True, slots=True)
class SiteCrawler:
    """Crawls sites, by links and by `site_list`; one object may run several crawls at a time."""

    acquirer: PageAcquirer
    database: Database
    site_list: SitemapReader | None = None
    _suspects: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def crawl(
        self,
        start_url: str,
        options: CrawlOptions,
        *,
        on_progress: CrawlProgressCallback | None = None,
        turn: CrawlTurn | None = None,
    ) -> SiteReport:
        """Visit the pages of a site, or go on with a crawl that was interrupted.

        Every page is stored as soon as it is obtained; cancelling keeps what is stored, and the
        same call goes on from there. `on_progress` is called on the event loop after each page. In
        a `turn` only a part is done, and the crawl kept: `JobQueue.end_turn` forgets it at the end.

        Raises:
            InputError: The URL or a pattern cannot be used.
            FetchError: The start page could not be obtained.
            ProviderError: The embedding service fails for every page.
            StorageError: The database failed.
            TurnLostError: Another worker has taken the crawl over.
        """
        start = canonical_url(start_url)
        CrawlScope.of(options, [start])
        number = turn.number if turn else None
        begun = await begin_crawl(self.database, options.key(start), number)
        run = _CrawlRun(self.acquirer, begun, start, options, on_progress, turn, self._suspects)
        await run.remember()
        with listening(run.tally.note_degraded), patiently():
            if begun.is_resumed:
                _log.info("Going on with the crawl of %s after %d pages.", start, begun.visited)
            else:
                await run.open(self.site_list)
            await run.work()
        report = await run.report()
        if report.ended != "unreachable" and turn is None:
            await begun.end()
        return report
