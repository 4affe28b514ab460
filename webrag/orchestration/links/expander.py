"""Finds links worth following and obtains their pages; it does not decide when to."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from llama_index.postprocessor.webrag.local_scoring import PassageScorer
from llama_index.postprocessor.webrag.token_vectors import TokenEncoder

from webrag.concurrency import all_of, ended, in_background
from webrag.corpus.acquirer import PageAcquirer, PageNotAdmittedError
from webrag.corpus.models import AcquiredPage, LinkCandidate
from webrag.corpus.pages import Corpus
from webrag.corpus.site_index import MappedLinks
from webrag.errors import (
    DatabaseUnavailableError,
    DeadlineError,
    FetchError,
    InputError,
    PageGoneError,
    ProviderError,
    RefusedAddressError,
    RobotsDisallowedError,
    SourceUnavailableError,
    StorageError,
    UnusablePageError,
    WebRAGError,
)
from webrag.ingestion.addresses import parent_urls, site_of
from webrag.ingestion.fetch_context import metering, watching_rate_limits
from webrag.ingestion.models import SiteMapper
from webrag.orchestration.links.rules import (
    ExpansionOutcome,
    FailureKind,
    Frontier,
    LinkScope,
    silent_sites,
    skip_reason,
)
from webrag.orchestration.links.scoring import LinkQuestion, score_links
from webrag.orchestration.links.site_maps import MapPages, SiteMaps, rank_maps
from webrag.orchestration.models import ExpansionConfig, NextLink
from webrag.orchestration.state import FAILURES_PER_PAGE, PageBudget

_log = logging.getLogger(__name__)

_TOO_MANY_REQUESTS: Final = 429
# A site that takes longer holds up no other: a round goes on without its pages.
_SLOW_S: Final = 2.0
_REFUSALS: Final = frozenset({401, 403, _TOO_MANY_REQUESTS, 451})


@dataclass(slots=True)
class FetchRound:
    """One round: its limits and what it has obtained so far; used once.

    Attributes:
        target: Pages to obtain; halved when a service's limit of requests is reached.
        budget: Checked before each fetch; what is used is taken off.
        scope: Where a redirect may lead.
        known: Canonical URLs of the pages obtained already; stored ones are known as well.
        failed_before: Addresses that failed in earlier rounds, with the kind of failure.
        deadline: `time.monotonic()` value at which unfinished fetches are given up.
        on_fetch: Told each URL when its fetch begins.
    """

    target: int
    budget: PageBudget
    scope: LinkScope
    known: Collection[str]
    failed_before: Mapping[str, FailureKind]
    deadline: float
    on_fetch: Callable[[str], None]
    outcome: ExpansionOutcome = field(default_factory=ExpansionOutcome)
    _begun: dict[str, float] = field(default_factory=dict)
    _most_failures: int = field(init=False)

    def __post_init__(self) -> None:
        # Later rounds know more links: one page full of dead ones must not use up the run.
        self._most_failures = min(self.budget.failures, FAILURES_PER_PAGE * self.target)

    async def fill(
        self, acquirer: PageAcquirer, candidates: Iterable[NextLink]
    ) -> ExpansionOutcome:
        """Obtain the target number of pages at once, as far as budget and time allow.

        Candidates are tried in their order.

        Raises:
            DatabaseUnavailableError: The database cannot be reached; nothing is left running.
        """
        with (
            metering(lambda size: self.budget.spend(size=size)),
            watching_rate_limits(self._slow_down),
        ):
            await self._fill(acquirer, list(candidates))
        # Not as they came in: which answer is the quickest differs from run to run.
        self.outcome.ingested.sort(key=lambda each: (-each.score, each.url))
        return self.outcome

    async def _fill(self, acquirer: PageAcquirer, waiting: list[NextLink]) -> None:
        running: dict[asyncio.Task[AcquiredPage], NextLink] = {}
        try:
            while True:
                silent = silent_sites({**self.failed_before, **self.outcome.failure_kinds})
                waiting = [each for each in waiting if site_of(each.url) not in silent]
                slow = self._slow_sites(running.values())
                ready = [each for each in waiting if site_of(each.url) not in slow]
                while ready and self._may_begin(running.values(), slow):
                    candidate = ready.pop(0)
                    waiting.remove(candidate)
                    self.on_fetch(candidate.url)
                    self._begun[candidate.url] = time.monotonic()
                    task = asyncio.create_task(self._obtain(acquirer, candidate))
                    running[task] = candidate
                if not running or len(self.outcome.ingested) >= self.target:
                    self._give_up(running.values())
                    break
                until = min([self.deadline, *self._slow_from(running.values())])
                done, _ = await asyncio.wait(
                    running,
                    timeout=max(until - time.monotonic(), 0),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not done and time.monotonic() >= self.deadline:
                    self.outcome.timed_out = True
                    self._give_up(running.values())
                    break
                arrived = [task for task in running if task in done]
                # Of two that lead to one page, the one with its address is kept.
                for task in sorted(arrived, key=lambda task: _leads_elsewhere(task, running[task])):
                    self._collect(running.pop(task), task)
        finally:
            await ended(running.keys())

    def _slow_down(self) -> None:
        # Requests that were under way together are refused together: that is one event.
        if self.outcome.rate_limited:
            return
        self.outcome.rate_limited = True
        self.target = max(self.target // 2, 1)
        _log.warning(
            "A limit of requests is reached, so this round obtains at most %d pages.", self.target
        )

    def _slow_from(self, running: Collection[NextLink]) -> list[float]:
        """The moments at which those under way will be slow that are not yet."""
        moments = (self._begun[each.url] + _SLOW_S for each in running)
        return [moment for moment in moments if moment > time.monotonic()]

    def _slow_sites(self, running: Collection[NextLink]) -> frozenset[str]:
        latest = time.monotonic() - _SLOW_S
        return frozenset(site_of(each.url) for each in running if self._begun[each.url] <= latest)

    def _may_begin(self, running: Collection[NextLink], slow: Collection[str]) -> bool:
        # A page of a slow site keeps no place from another site's.
        quick = sum(site_of(each.url) not in slow for each in running)
        open_places = self.target - len(self.outcome.ingested) - quick
        # Every fetch under way may still fail.
        vain = len(self.outcome.failed) + len(self.outcome.aliases)
        may_fail = self._most_failures > vain + len(running)
        is_over = self.outcome.stopped_by is not None or time.monotonic() >= self.deadline
        return open_places > 0 and may_fail and not is_over and self.budget.may_begin(len(running))

    async def _obtain(self, acquirer: PageAcquirer, candidate: NextLink) -> AcquiredPage:
        try:
            page = await acquirer.acquire(
                candidate.url, depth=candidate.depth, admits=self.scope.admits
            )
        except PageNotAdmittedError as error:
            raise UnusablePageError("it leads outside the scope", url=candidate.url) from error
        if not self.scope.admits(page.url):
            raise UnusablePageError(f"it leads to {page.url}, outside the scope", url=candidate.url)
        return page

    def _collect(self, candidate: NextLink, task: asyncio.Task[AcquiredPage]) -> None:
        try:
            page = task.result()
        except ProviderError as error:
            self.outcome.stopped_by = f"No more pages can be indexed: {error}"
            self._fail(candidate.url, str(error), "unusable")
        except DatabaseUnavailableError:
            raise
        except (FetchError, InputError, DeadlineError, StorageError) as error:
            if isinstance(error, FetchError) and error.status == _TOO_MANY_REQUESTS:
                self._slow_down()
            self._fail(candidate.url, str(error), failure_kind(error))
        else:
            self._take(candidate, page)

    def _take(self, candidate: NextLink, page: AcquiredPage) -> None:
        outcome, url = self.outcome, page.url
        if url in self.known or url in outcome.chunks_by_url or page.outcome == "stored":
            _log.info("%s is %s, which is known.", candidate.url, url)
            outcome.aliases[candidate.url] = url
            return
        self.budget.spend(pages=1)
        outcome.ingested.append(replace(candidate, url=url))
        outcome.chunks_by_url[url] = page.chunk_count
        outcome.sources[url] = page.source
        outcome.seconds[url] = time.monotonic() - self._begun[candidate.url]

    def _give_up(self, candidates: Collection[NextLink]) -> None:
        for candidate in candidates:
            self._fail(candidate.url, "it did not arrive within the time of this round", "cut off")

    def _fail(self, url: str, reason: str, kind: FailureKind) -> None:
        _log.info("%s was not followed: %s", url, reason)
        self.outcome.failed[url], self.outcome.failure_kinds[url] = reason, kind
        self.budget.spend(failures=1)


def failure_kind(error: WebRAGError) -> FailureKind:
    """Tell a missing page from a refusal, a site that says nothing and a page nobody can read."""
    if isinstance(error, DeadlineError):
        return "cut off"
    if isinstance(error, PageGoneError):
        return "dead"
    status = error.status if isinstance(error, FetchError) else None
    if status in _REFUSALS or isinstance(error, RobotsDisallowedError | RefusedAddressError):
        return "refused"
    is_plain = type(error) is FetchError or isinstance(error, SourceUnavailableError)
    return "without an answer" if is_plain and status is None else "unusable"


def _leads_elsewhere(task: asyncio.Task[AcquiredPage], candidate: NextLink) -> bool:
    return task.exception() is None and task.result().url != candidate.url


# Each costs a credit and some seconds, and the pages of a site are listed alike.
_MAX_ASKED: Final = 3


@dataclass(frozen=True, slots=True)
class LinkDiscovery:
    """Asks a mapping service for more links of stored pages; safe to share between runs.

    The store keeps its answers, so that no page is asked about twice; the limit is that of
    addresses wanted for one page.
    """

    mapper: SiteMapper
    store: MappedLinks
    limit: int

    async def discover_links(self, sources: Sequence[str], *, timeout_s: float) -> str | None:
        """Ask about pages that were not asked about before, at most three, all at once.

        The most relevant come first; what is not there in time is left for later. Gives a sentence
        when the service failed; the links of the pages themselves remain.
        """
        # Paths of this machine are nothing to tell a service.
        asked = [url for url in sources if url.startswith("http")]
        waiting = (await self.store.unmapped(asked))[:_MAX_ASKED]
        try:
            async with asyncio.timeout(timeout_s):
                failures = await all_of(self._discover(url) for url in waiting)
        except TimeoutError:
            return (
                f"{self.mapper.name.capitalize()} did not list the site's pages in time;"
                " links were followed without its list."
            )
        return next(filter(None, failures), None)

    async def _discover(self, url: str) -> str | None:
        try:
            links = await self.mapper.map(url, limit=self.limit)
        except FetchError as error:
            # It is about this page; asking again would end the same way.
            _log.info("The site of %s could not be listed: %s", url, error)
            links = []
        except ProviderError as error:
            advice = f" {error.hint}" if error.hint else ""
            return f"{error}{advice} Links were followed without its list of the site's pages."
        await self.store.store(url, links, datetime.now(UTC))
        return None


# Pages whose links are looked at; the closest to the question come first. A thousand pages'
# links are the same menus, and reading them takes seconds.
MAX_LINK_SOURCES: Final = 100

# Besides the candidates of a round, twice as many stand by, because links can be dead.
_SPARE_FACTOR: Final = 3

# Among so many times the candidates of a round enough are not stored.
_STORED_FACTOR: Final = 30


@dataclass(frozen=True, slots=True)
class LinkExpander:
    """Finds and scores the links of known pages; safe to share between runs."""

    corpus: Corpus
    encoder: TokenEncoder | None
    config: ExpansionConfig
    discovery: LinkDiscovery | None = None
    site_maps: SiteMaps | None = None
    scorer: PassageScorer | None = None

    async def frontier(
        self,
        sources: Sequence[str],
        queries: Sequence[str],
        *,
        seeds: Sequence[str],
        scope: LinkScope,
        known: Collection[str],
        in_turn: bool = False,
        discovery_s: float = 0.0,
        asks_service: bool = True,
        read: dict[str, list[LinkCandidate]] | None = None,
    ) -> Frontier:
        """Find the best links of some pages, the most relevant first, and the folders above seeds.

        Links are for the queries, with `in_turn` as in `score_links`, within the scope and to pages
        that are not known. A mapping service, if it may be asked, and the site's own maps together
        may take `discovery_s` seconds to name more links of pages they were not asked about before;
        0 to use what is stored. Links `read` before are not read again, unless a service may have
        added some; those read now are put in.
        """
        pages = list(dict.fromkeys(sources))[:MAX_LINK_SOURCES]
        degraded = None
        until = time.monotonic() + discovery_s
        if self.discovery is not None and asks_service and discovery_s > 0:
            degraded = await self.discovery.discover_links(pages, timeout_s=discovery_s)
        left_s = max(until - time.monotonic(), 0.0)
        if read is None or self.discovery is not None:
            read = {}
        links, mapped, refused = await self.followable(
            pages, queries, seeds=seeds, scope=scope, known=known, timeout_s=left_s, read=read
        )
        dead = await self.corpus.known_dead({link.url for link in links}, datetime.now(UTC))
        links = [link for link in links if link.url not in dead]
        scored = await in_background(
            lambda: score_links(
                links,
                [LinkQuestion.of(query, self.encoder) for query in queries],
                encoder=self.encoder,
                site_map=mapped.scores,
                site_text=mapped.text_scores,
                in_turn=in_turn,
                at_most=_STORED_FACTOR * self.config.candidates_to_score_per_iteration,
            )
        )
        best = [each for each in scored if each.score >= self.config.min_candidate_score]
        return Frontier(
            await self._unstored(best),
            len({link.url for link in links}),
            degraded,
            len(dead),
            tuple(refused),
        )

    async def followable(
        self,
        pages: Sequence[str],
        queries: Sequence[str],
        *,
        seeds: Sequence[str],
        scope: LinkScope,
        known: Collection[str],
        timeout_s: float,
        read: dict[str, list[LinkCandidate]],
    ) -> tuple[list[LinkCandidate], MapPages, Sequence[str]]:
        """Links of stored pages and of the maps these name to pages that are not known.

        Also what the maps say of their targets, and a sentence for each map refused just now.
        """
        mapped, refused = MapPages(), list[str]()
        if self.site_maps is not None:
            maps, refused = await self.site_maps.known(pages, timeout_s=timeout_s)
            mapped = await in_background(rank_maps, maps, queries, self.scorer)
        folders = dict.fromkeys(folder for seed in seeds for folder in parent_urls(seed))
        above = (LinkCandidate(source_url="", url=folder) for folder in folders)
        unread = [page for page in pages if page not in read]
        found = await self.corpus.links(unread)
        read |= {page: [] for page in unread}
        for link in found:
            read.setdefault(link.source_url, []).append(link)
        own = chain.from_iterable(read[page] for page in pages)
        links = [*own, *above, *mapped.links]
        return await in_background(_followable, links, frozenset(known), scope), mapped, refused

    async def _unstored(self, scored: Sequence[NextLink]) -> tuple[NextLink, ...]:
        wanted = self.config.candidates_to_score_per_iteration * _SPARE_FACTOR
        found: list[NextLink] = []
        for start in range(0, len(scored), wanted):
            part = scored[start : start + wanted]
            stored = await self.corpus.pages([candidate.url for candidate in part])
            found += [candidate for candidate in part if candidate.url not in stored]
            if len(found) >= wanted:
                break
        return tuple(found[:wanted])


def _followable(
    links: Iterable[LinkCandidate], known: Collection[str], scope: LinkScope
) -> list[LinkCandidate]:
    """The links that lead to pages which are not known and may be followed."""
    found = [link for link in links if link.url not in known and "nofollow" not in link.rel]
    admitted = {
        url
        for url in dict.fromkeys(link.url for link in found)
        if scope.admits(url) and skip_reason(url) is None
    }
    return [link for link in found if link.url in admitted]
