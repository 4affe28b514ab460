"""Finds links worth following and obtains their pages; it does not decide when to."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from webrag.errors import DeadlineError, FetchError, InputError, ProviderError
from webrag.indexing.acquirer import PageAcquirer
from webrag.indexing.corpus import Corpus
from webrag.indexing.models import AcquiredPage, LinkCandidate
from webrag.ingestion.links import parent_urls
from webrag.ingestion.traffic import metering
from webrag.orchestration.discovery import LinkDiscovery
from webrag.orchestration.link_rules import LinkScope, skip_reason
from webrag.orchestration.link_scoring import (
    LinkQuestion,
    PassageScores,
    TokenEncoder,
    score_links,
)
from webrag.orchestration.models import ExpansionConfig, ExpansionOutcome, ScoredCandidate
from webrag.orchestration.page_budget import PageBudget

__all__ = ["MAX_LINK_SOURCES", "Frontier", "LinkExpander"]

_log = logging.getLogger(__name__)

# Pages whose links are looked at; the closest to the question come first. A thousand pages'
# links are the same menus, and reading them takes seconds.
MAX_LINK_SOURCES: Final = 100
# Besides the candidates of a round, twice as many stand by, because links can be dead.
_SPARE_FACTOR: Final = 3


@dataclass(frozen=True, slots=True)
class Frontier:
    """Links that may be followed next.

    Attributes:
        candidates: Best first; none is stored, failed or outside the scope.
        scored: Targets that were scored to find them.
        degraded: Why a mapping service added nothing, a sentence; None when all is well.
        spares: Those next in order; they take the place of candidates that fail.
    """

    candidates: tuple[ScoredCandidate, ...] = ()
    scored: int = 0
    degraded: str | None = None
    spares: tuple[ScoredCandidate, ...] = ()


@dataclass(slots=True)
class _Round:
    """What one round has obtained so far."""

    target: int
    budget: PageBudget
    ingested: list[ScoredCandidate] = field(default_factory=list)
    chunks: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    received: int = 0
    timed_out: bool = False
    stopped_by: str | None = None

    def meter(self, size: int) -> None:
        self.received += size
        self.budget.spend(size=size)

    def may_begin(self, running: int) -> bool:
        open_places = self.target - len(self.ingested) - running
        # Every fetch under way may still fail.
        may_fail = self.budget.failures > running
        return open_places > 0 and may_fail and not (self.stopped_by or self.budget.is_spent)


class LinkExpander:
    """Scores the links of known pages and fetches the best; safe to share between runs."""

    def __init__(
        self,
        acquirer: PageAcquirer,
        corpus: Corpus,
        encoder: TokenEncoder | None,
        config: ExpansionConfig,
        discovery: LinkDiscovery | None = None,
    ) -> None:
        self._discovery = discovery
        self._acquirer = acquirer
        self._corpus = corpus
        self._encoder = encoder
        self._config = config

    async def frontier(
        self,
        sources: Sequence[str],
        queries: Sequence[str],
        *,
        seeds: Sequence[str],
        scope: LinkScope,
        known: Collection[str],
        passages: PassageScores,
        discovery_s: float = 0.0,
    ) -> Frontier:
        """The best links of some pages, and the folders above the seeds.

        Args:
            sources: Stored pages, the most relevant first.
            queries: The parts of the question.
            seeds: Pages the user named.
            scope: Targets that may be followed.
            known: URLs that are searched already or have failed.
            passages: Relevance of the passages that hold links.
            discovery_s: Seconds a mapping service may take to name more links of pages it was not
                asked about before; 0 to leave it out.
        """
        pages = list(dict.fromkeys(sources))[:MAX_LINK_SOURCES]
        degraded = None
        if self._discovery is not None and discovery_s > 0:
            degraded = await self._discovery.discover_links(pages, timeout_s=discovery_s)
        links = await self._corpus.links(pages)
        links += _folder_links(seeds)
        taken = set(known)
        links = [link for link in links if link.url not in taken and _is_page(link.url, scope)]
        if not links:
            return Frontier(degraded=degraded)
        in_degrees = await self._corpus.in_degrees(list({link.url for link in links}))
        scored = await asyncio.to_thread(self._score, links, queries, in_degrees, passages)
        best = [c for c in scored if c.score >= self._config.min_candidate_score]
        unstored = await self._unstored(best)
        limit = self._config.candidates_to_score_per_iteration
        kept, spares = tuple(unstored[:limit]), tuple(unstored[limit:])
        return Frontier(kept, len(scored), degraded, spares)

    async def follow(
        self,
        frontier: Frontier,
        *,
        size: int,
        budget: PageBudget,
        scope: LinkScope,
        known: Collection[str],
        deadline: float,
        on_fetch: Callable[[str], None],
    ) -> ExpansionOutcome:
        """Obtain the best `size` pages at once, each failure replaced by the next candidate.

        Args:
            frontier: Where to take candidates from, in order.
            size: Pages to obtain.
            budget: Checked before each fetch; what is used is taken off.
            scope: Where a redirect may lead.
            known: Canonical URLs of the pages obtained already; stored ones are known as well.
            deadline: `time.monotonic()` value at which unfinished fetches are given up.
            on_fetch: Told each URL when its fetch begins.

        Raises:
            StorageError: The database failed; nothing is left running.
        """
        state = _Round(size, budget)
        queue = iter((*frontier.candidates, *frontier.spares))
        with metering(state.meter):
            await self._fill(state, queue, scope, known, deadline, on_fetch)
        return _outcome(state, frontier)

    async def _fill(
        self,
        state: _Round,
        queue: Iterator[ScoredCandidate],
        scope: LinkScope,
        known: Collection[str],
        deadline: float,
        on_fetch: Callable[[str], None],
    ) -> None:
        async with _running_tasks() as running:
            while True:
                while state.may_begin(len(running)) and (candidate := next(queue, None)):
                    on_fetch(candidate.url)
                    task = asyncio.create_task(self._obtain(candidate, scope, known))
                    running[task] = candidate
                if not running:
                    break
                done, _ = await asyncio.wait(
                    running,
                    timeout=max(deadline - time.monotonic(), 0),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not done:
                    state.timed_out = True
                    self._give_up(state, running.values())
                    break
                ended = [task for task in running if task in done]
                # Of two that lead to one page, the one with its address is kept.
                for task in sorted(ended, key=lambda task: _leads_elsewhere(task, running[task])):
                    self._collect(state, running.pop(task), task)

    def _score(
        self,
        links: Sequence[LinkCandidate],
        queries: Sequence[str],
        in_degrees: Mapping[str, int],
        passages: PassageScores,
    ) -> list[ScoredCandidate]:
        return score_links(
            links,
            [LinkQuestion.of(query, self._encoder) for query in queries],
            in_degrees=in_degrees,
            passages=passages,
            encoder=self._encoder,
            weights=self._config.signal_weights,
        )

    async def _unstored(self, scored: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
        wanted = self._config.candidates_to_score_per_iteration * _SPARE_FACTOR
        found: list[ScoredCandidate] = []
        for start in range(0, len(scored), wanted):
            part = scored[start : start + wanted]
            stored = await self._corpus.pages([candidate.url for candidate in part])
            found += [candidate for candidate in part if candidate.url not in stored]
            if len(found) >= wanted:
                break
        return found[:wanted]

    async def _obtain(
        self, candidate: ScoredCandidate, scope: LinkScope, known: Collection[str]
    ) -> AcquiredPage:
        page = await self._acquirer.acquire(candidate.url, depth=candidate.depth)
        if not scope.admits(page.url):
            raise FetchError(f"it leads to {page.url}, outside the scope", url=candidate.url)
        if page.url in known or page.outcome == "stored":
            raise FetchError(f"it leads to {page.url}, which is known", url=candidate.url)
        return page

    def _collect(
        self, state: _Round, candidate: ScoredCandidate, task: asyncio.Task[AcquiredPage]
    ) -> None:
        try:
            page = task.result()
        except ProviderError as error:
            state.stopped_by = f"No more pages can be indexed: {error}"
            self._fail(state, candidate.url, str(error))
            return
        except (FetchError, InputError, DeadlineError) as error:
            self._fail(state, candidate.url, str(error))
            return
        if page.url in state.chunks:
            self._fail(state, candidate.url, f"it leads to {page.url}, which is known")
            return
        state.budget.spend(pages=1)
        state.ingested.append(candidate.model_copy(update={"url": page.url}))
        state.chunks[page.url] = page.chunk_count
        state.sources[page.url] = page.source

    def _give_up(self, state: _Round, candidates: Collection[ScoredCandidate]) -> None:
        for candidate in candidates:
            self._fail(state, candidate.url, "it did not arrive within the time of this round")

    def _fail(self, state: _Round, url: str, reason: str) -> None:
        _log.info("%s was not followed: %s", url, reason)
        state.failed[url] = reason
        state.budget.spend(failures=1)


@asynccontextmanager
async def _running_tasks() -> AsyncIterator[dict[asyncio.Task[AcquiredPage], ScoredCandidate]]:
    """A table of tasks; whatever is left in it at the end is cancelled and awaited."""
    running: dict[asyncio.Task[AcquiredPage], ScoredCandidate] = {}
    try:
        yield running
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _leads_elsewhere(task: asyncio.Task[AcquiredPage], candidate: ScoredCandidate) -> bool:
    return task.exception() is None and task.result().url != candidate.url


def _folder_links(seeds: Sequence[str]) -> list[LinkCandidate]:
    folders = dict.fromkeys(folder for seed in seeds for folder in parent_urls(seed))
    return [LinkCandidate(source_url="", source_page_id=0, url=folder) for folder in folders]


def _is_page(url: str, scope: LinkScope) -> bool:
    return scope.admits(url) and skip_reason(url) is None


def _outcome(state: _Round, frontier: Frontier) -> ExpansionOutcome:
    return ExpansionOutcome(
        ingested=tuple(state.ingested),
        failed=state.failed,
        chunks_by_url=state.chunks,
        sources=state.sources,
        candidates_scored=frontier.scored,
        candidates_selected=len(state.ingested) + len(state.failed),
        bytes_received=state.received,
        depth=max((candidate.depth for candidate in state.ingested), default=0),
        timed_out=state.timed_out,
        stopped_by=state.stopped_by,
    )
