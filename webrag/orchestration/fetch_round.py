"""Obtains the pages of one round, each failure replaced by the next candidate; it ranks none."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from webrag.concurrency import ended
from webrag.errors import (
    DatabaseUnavailableError,
    DeadlineError,
    FetchError,
    InputError,
    ProviderError,
    StorageError,
)
from webrag.indexing.acquirer import PageAcquirer
from webrag.indexing.models import AcquiredPage
from webrag.ingestion.asides import metering, watching_rate_limits
from webrag.orchestration.expansion_models import ExpansionOutcome, ScoredCandidate
from webrag.orchestration.link_rules import LinkScope, next_to_try
from webrag.orchestration.page_budget import FAILURES_PER_PAGE, PageBudget

__all__ = ["FetchRound"]

_log = logging.getLogger(__name__)

_TOO_MANY_REQUESTS: Final = 429


@dataclass(slots=True)
class FetchRound:
    """One round: what it may do and what it has obtained so far; used once.

    Attributes:
        target: Pages to obtain; halved when a service's limit of requests is reached.
        budget: Checked before each fetch; what is used is taken off.
        scope: Where a redirect may lead.
        known: Canonical URLs of the pages obtained already; stored ones are known as well.
        failed_before: Addresses that failed in earlier rounds.
        deadline: `time.monotonic()` value at which unfinished fetches are given up.
        on_fetch: Told each URL when its fetch begins.
    """

    target: int
    budget: PageBudget
    scope: LinkScope
    known: Collection[str]
    failed_before: Collection[str]
    deadline: float
    on_fetch: Callable[[str], None]
    _ingested: list[ScoredCandidate] = field(default_factory=list)
    _chunks: dict[str, int] = field(default_factory=dict)
    _sources: dict[str, str] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)
    _aliases: dict[str, str] = field(default_factory=dict)
    _most_failures: int = field(init=False)
    _received: int = 0
    _timed_out: bool = False
    _rate_limited: bool = False
    _stopped_by: str | None = None

    def __post_init__(self) -> None:
        # Later rounds know more links: one page full of dead ones must not use up the run.
        self._most_failures = min(self.budget.failures, FAILURES_PER_PAGE * self.target)

    async def fill(
        self, acquirer: PageAcquirer, candidates: Iterable[ScoredCandidate]
    ) -> ExpansionOutcome:
        """Obtain the target number of pages at once, as far as budget and time allow.

        Args:
            acquirer: Gets the pages.
            candidates: In the order they are tried; those in a folder that seems to be missing
                come last.

        Raises:
            DatabaseUnavailableError: The database cannot be reached; nothing is left running.
        """
        with metering(self._meter), watching_rate_limits(self._slow_down):
            await self._fill(acquirer, list(candidates))
        return self._outcome()

    async def _fill(self, acquirer: PageAcquirer, waiting: list[ScoredCandidate]) -> None:
        async with _running_tasks() as running:
            while True:
                while waiting and self._may_begin(len(running)):
                    candidate = waiting.pop(self._next(waiting))
                    self.on_fetch(candidate.url)
                    task = asyncio.create_task(self._obtain(acquirer, candidate))
                    running[task] = candidate
                if not running:
                    break
                done, _ = await asyncio.wait(
                    running,
                    timeout=max(self.deadline - time.monotonic(), 0),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not done:
                    self._timed_out = True
                    self._give_up(running.values())
                    break
                ended = [task for task in running if task in done]
                # Of two that lead to one page, the one with its address is kept.
                for task in sorted(ended, key=lambda task: _leads_elsewhere(task, running[task])):
                    self._collect(running.pop(task), task)

    def _meter(self, size: int) -> None:
        self._received += size
        self.budget.spend(size=size)

    def _slow_down(self) -> None:
        # Requests that were under way together are refused together: that is one event.
        if self._rate_limited:
            return
        self._rate_limited = True
        self.target = max(self.target // 2, 1)
        _log.warning(
            "A limit of requests is reached, so this round obtains at most %d pages.", self.target
        )

    def _next(self, waiting: Sequence[ScoredCandidate]) -> int:
        return next_to_try(
            (candidate.url for candidate in waiting),
            failed=(*self.failed_before, *self._failed),
            obtained=(*self.known, *self._chunks),
        )

    def _may_begin(self, running: int) -> bool:
        open_places = self.target - len(self._ingested) - running
        # Every fetch under way may still fail.
        may_fail = self._most_failures > len(self._failed) + running
        return open_places > 0 and may_fail and not (self._stopped_by or self.budget.is_spent)

    async def _obtain(self, acquirer: PageAcquirer, candidate: ScoredCandidate) -> AcquiredPage:
        page = await acquirer.acquire(candidate.url, depth=candidate.depth)
        if not self.scope.admits(page.url):
            raise FetchError(f"it leads to {page.url}, outside the scope", url=candidate.url)
        return page

    def _collect(self, candidate: ScoredCandidate, task: asyncio.Task[AcquiredPage]) -> None:
        try:
            page = task.result()
        except ProviderError as error:
            self._stopped_by = f"No more pages can be indexed: {error}"
            self._fail(candidate.url, str(error))
        except DatabaseUnavailableError:
            raise
        except (FetchError, InputError, DeadlineError, StorageError) as error:
            if isinstance(error, FetchError) and error.status == _TOO_MANY_REQUESTS:
                self._slow_down()
            self._fail(candidate.url, str(error))
        else:
            self._take(candidate, page)

    def _take(self, candidate: ScoredCandidate, page: AcquiredPage) -> None:
        if page.url in self.known or page.url in self._chunks or page.outcome == "stored":
            _log.info("%s is %s, which is known.", candidate.url, page.url)
            self._aliases[candidate.url] = page.url
            return
        self.budget.spend(pages=1)
        self._ingested.append(candidate.model_copy(update={"url": page.url}))
        self._chunks[page.url] = page.chunk_count
        self._sources[page.url] = page.source

    def _give_up(self, candidates: Collection[ScoredCandidate]) -> None:
        for candidate in candidates:
            self._fail(candidate.url, "it did not arrive within the time of this round")

    def _fail(self, url: str, reason: str) -> None:
        _log.info("%s was not followed: %s", url, reason)
        self._failed[url] = reason
        self.budget.spend(failures=1)

    def _outcome(self) -> ExpansionOutcome:
        return ExpansionOutcome(
            ingested=tuple(self._ingested),
            failed=self._failed,
            aliases=self._aliases,
            chunks_by_url=self._chunks,
            sources=self._sources,
            candidates_selected=len(self._ingested) + len(self._failed) + len(self._aliases),
            bytes_received=self._received,
            depth=max((candidate.depth for candidate in self._ingested), default=0),
            timed_out=self._timed_out,
            rate_limited=self._rate_limited,
            stopped_by=self._stopped_by,
        )


@asynccontextmanager
async def _running_tasks() -> AsyncIterator[dict[asyncio.Task[AcquiredPage], ScoredCandidate]]:
    """A table of tasks; whatever is left in it at the end is cancelled and awaited."""
    running: dict[asyncio.Task[AcquiredPage], ScoredCandidate] = {}
    try:
        yield running
    finally:
        await ended(running.keys())


def _leads_elsewhere(task: asyncio.Task[AcquiredPage], candidate: ScoredCandidate) -> bool:
    return task.exception() is None and task.result().url != candidate.url
