"""Finds links worth following and obtains their pages; it does not decide when to."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from webrag.indexing.acquirer import PageAcquirer
from webrag.indexing.corpus import Corpus
from webrag.indexing.models import LinkCandidate
from webrag.ingestion.links import parent_urls
from webrag.orchestration.config import ExpansionConfig
from webrag.orchestration.discovery import LinkDiscovery
from webrag.orchestration.expansion_models import ExpansionOutcome, Frontier, ScoredCandidate
from webrag.orchestration.fetch_round import FetchRound
from webrag.orchestration.link_rules import LinkScope, skip_reason
from webrag.orchestration.link_scoring import (
    LinkQuestion,
    PassageScores,
    TokenEncoder,
    score_links,
)
from webrag.orchestration.page_budget import PageBudget

__all__ = ["MAX_LINK_SOURCES", "LinkExpander"]

# Pages whose links are looked at; the closest to the question come first. A thousand pages'
# links are the same menus, and reading them takes seconds.
MAX_LINK_SOURCES: Final = 100
# Besides the candidates of a round, twice as many stand by, because links can be dead.
_SPARE_FACTOR: Final = 3


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
        links = [link for link in links if link.url not in taken and _may_follow(link, scope)]
        if not links:
            return Frontier(degraded=degraded)
        in_degrees = await self._corpus.in_degrees(list({link.url for link in links}))
        scored = await asyncio.to_thread(self._score, links, queries, seeds, in_degrees, passages)
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
        failed_before: Collection[str],
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
            failed_before: Addresses that failed in earlier rounds.
            deadline: `time.monotonic()` value at which unfinished fetches are given up.
            on_fetch: Told each URL when its fetch begins.

        Raises:
            StorageError: The database failed; nothing is left running.
        """
        round_ = FetchRound(size, budget, scope, known, failed_before, deadline, on_fetch)
        outcome = await round_.fill(self._acquirer, (*frontier.candidates, *frontier.spares))
        return outcome.model_copy(update={"candidates_scored": frontier.scored})

    def _score(
        self,
        links: Sequence[LinkCandidate],
        queries: Sequence[str],
        seeds: Sequence[str],
        in_degrees: Mapping[str, int],
        passages: PassageScores,
    ) -> list[ScoredCandidate]:
        return score_links(
            links,
            [LinkQuestion.of(query, self._encoder) for query in queries],
            seeds=seeds,
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


def _folder_links(seeds: Sequence[str]) -> list[LinkCandidate]:
    folders = dict.fromkeys(folder for seed in seeds for folder in parent_urls(seed))
    return [LinkCandidate(source_url="", source_page_id=0, url=folder) for folder in folders]


def _may_follow(link: LinkCandidate, scope: LinkScope) -> bool:
    is_asked_not_to = "nofollow" in link.rel
    return scope.admits(link.url) and skip_reason(link.url) is None and not is_asked_not_to
