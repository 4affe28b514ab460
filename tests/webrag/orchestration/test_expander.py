import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.errors import FetchError, ProviderError, StorageError
from webrag.indexing.models import AcquiredPage, LinkCandidate, StoredPage
from webrag.ingestion.traffic import received
from webrag.orchestration.config import ExpansionConfig
from webrag.orchestration.expander import LinkExpander
from webrag.orchestration.expansion_models import ExpansionOutcome, Frontier, ScoredCandidate
from webrag.orchestration.link_rules import LinkScope
from webrag.orchestration.page_budget import PageBudget

from .conftest import MANUAL, TWO_LINKS_AWAY, Lab

SEED = "https://d.test/guide/start"
SCOPE = LinkScope.of("same_site", [SEED])


def target(name: object) -> str:
    return f"https://d.test/{name}"


class Web:
    """A scripted network: each target answers with an error, another URL, or itself."""

    def __init__(self, answers: dict[str, Any] | None = None, size: int = 10) -> None:
        self.answers = answers or {}
        self.size = size
        self.asked: list[str] = []
        self.running = 0
        self.most_running = 0
        self.stored: list[str] = []
        self.already_stored: set[str] = set()
        self.links_of: dict[str, list[LinkCandidate]] = {}

    async def acquire(self, url: str, *, depth: int = 0) -> AcquiredPage:
        self.asked.append(url)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0)
            answer = self.answers.get(url, url)
            if answer is None:
                await asyncio.Event().wait()
            received(self.size)
            if isinstance(answer, Exception):
                raise answer
            return AcquiredPage(
                url=answer,
                requested_url=url,
                page_id=1,
                title=None,
                outcome="stored" if url in self.already_stored else "indexed",
                depth=depth,
                chunk_count=2,
                token_count=10,
            )
        finally:
            self.running -= 1

    async def links(self, urls: list[str]) -> list[LinkCandidate]:
        return [link for url in urls for link in self.links_of.get(url, [])]

    async def in_degrees(self, _targets: list[str]) -> dict[str, int]:
        return {}

    async def pages(self, urls: list[str]) -> dict[str, StoredPage]:
        return {url: None for url in urls if url in self.stored}  # type: ignore[misc]

    def expander(self, **config: Any) -> LinkExpander:
        return LinkExpander(self, self, None, ExpansionConfig(**config))  # type: ignore[arg-type]


def frontier(*names: object) -> Frontier:
    candidates = [
        ScoredCandidate(url=target(name), parent_url=SEED, score=1.0, breakdown={})
        for name in names
    ]
    return Frontier(tuple(candidates), len(candidates))


async def followed(web: Web, candidates: Frontier, **values: Any) -> ExpansionOutcome:
    given_values = {
        "size": 2,
        "budget": PageBudget.of(10, 10_000),
        "scope": SCOPE,
        "known": frozenset({SEED}),
        "failed_before": frozenset(),
        "deadline": time.monotonic() + 10,
        "on_fetch": lambda _: None,
    }
    return await web.expander().follow(candidates, **{**given_values, **values})


def urls(outcome: ExpansionOutcome) -> list[str]:
    return sorted(candidate.url for candidate in outcome.ingested)


async def test_best_candidates_are_fetched_at_once() -> None:
    web = Web()

    outcome = await followed(web, frontier("a", "b", "c"))

    assert urls(outcome) == [target("a"), target("b")]
    assert web.most_running == 2
    assert outcome.chunks_added == 4


async def test_failure_is_replaced_by_the_next_candidate() -> None:
    web = Web({target("a"): FetchError("it is down", url=target("a"))})

    outcome = await followed(web, frontier("a", "b", "c"))

    assert urls(outcome) == [target("b"), target("c")]
    assert outcome.failed == {target("a"): "it is down"}


async def test_round_fails_at_most_three_times_for_each_page_wanted() -> None:
    web = Web({target(n): FetchError("it is down", url=target(n)) for n in range(20)})
    budget = PageBudget.of(10, 10_000)

    outcome = await followed(web, frontier(*range(20)), size=2, budget=budget)

    assert (len(outcome.failed), budget.failures) == (6, 24)


async def test_folder_without_a_page_is_left_for_last() -> None:
    gone = ["old/1", "old/2", "old/3"]
    web = Web({target(name): FetchError("not found", url=target(name)) for name in gone})

    outcome = await followed(web, frontier("fine", *gone, "old/4", "new"))

    assert urls(outcome) == [target("fine"), target("new")]


async def test_failures_of_earlier_rounds_count_for_a_folder() -> None:
    failed = frozenset(map(target, ["old/1", "old/2", "old/3"]))

    outcome = await followed(Web(), frontier("old/4", "new/1", "new/2"), failed_before=failed)

    assert urls(outcome) == [target("new/1"), target("new/2")]


async def test_redirect_out_of_the_scope_counts_as_failed() -> None:
    web = Web({target("a"): "https://else.test/"})

    outcome = await followed(web, frontier("b", "a"))

    assert (urls(outcome), list(outcome.failed)) == ([target("b")], [target("a")])
    assert "outside the scope" in outcome.failed[target("a")]


@pytest.mark.parametrize("leads_to", [SEED, target("b")])
async def test_other_address_of_a_known_page_is_neither_a_page_nor_a_failure(leads_to: str) -> None:
    web = Web({target("a"): leads_to})
    budget = PageBudget.of(10, 10_000)

    outcome = await followed(web, frontier("b", "a", "c"), budget=budget)

    assert urls(outcome) == [target("b"), target("c")]
    assert (outcome.failed, outcome.aliases) == ({}, {target("a"): leads_to})
    assert (budget.pages, budget.failures) == (8, 30)


async def test_address_of_a_stored_page_is_known() -> None:
    web = Web()
    web.already_stored = {target("a")}

    outcome = await followed(web, frontier("a", "b"), size=1)

    assert (urls(outcome), outcome.aliases) == ([target("b")], {target("a"): target("a")})


async def test_reached_limit_of_requests_makes_the_round_smaller() -> None:
    busy = FetchError("too many requests", url=target("a"), status=429)
    web = Web({target("a"): busy, target("b"): busy})

    outcome = await followed(web, frontier(*"abcdefgh"), size=4)

    assert urls(outcome) == [target("c"), target("d")]
    assert outcome.rate_limited
    assert set(web.asked) == set(map(target, "abcd"))


async def test_failing_embedding_ends_the_expansion_with_what_is_there() -> None:
    web = Web({target("a"): ProviderError("quota used up", provider="x")})

    outcome = await followed(web, frontier("a", "b", "c", "d"))

    assert "quota used up" in (outcome.stopped_by or "")
    assert web.asked == [target("a"), target("b")]


async def test_database_failure_is_raised_and_leaves_nothing_running() -> None:
    web = Web({target("a"): StorageError("disk full"), target("b"): None})

    with pytest.raises(StorageError):
        await followed(web, frontier("a", "b"))

    assert web.running == 0


async def test_pages_that_do_not_arrive_in_time_are_given_up() -> None:
    web = Web({target("a"): None})

    outcome = await followed(web, frontier("a", "b"), deadline=time.monotonic() + 0.05)

    assert (urls(outcome), list(outcome.failed)) == ([target("b")], [target("a")])
    assert outcome.timed_out
    assert web.running == 0


async def test_no_fetch_begins_once_the_bytes_are_used_up() -> None:
    web = Web(size=600)

    outcome = await followed(web, frontier(*range(9)), size=9, budget=PageBudget.of(9, 1_000))

    assert outcome.bytes_received == 600 * len(web.asked)
    again = await followed(web, frontier("z"), budget=PageBudget.of(9, 0))
    assert again.ingested == ()


@given(
    st.lists(st.booleans(), max_size=40),
    st.integers(0, 10),
    st.integers(1, 8),
)
def test_pages_and_failures_stay_within_the_budget(
    works: list[bool], pages: int, size: int
) -> None:
    names = [target(position) for position in range(len(works))]
    broken = [name for name, fine in zip(names, works, strict=True) if not fine]
    web = Web({name: FetchError("it is down", url=name) for name in broken})
    budget = PageBudget.of(pages, 10**6)

    outcome = asyncio.run(
        followed(web, frontier(*range(len(works))), size=min(size, pages), budget=budget)
    )

    assert len(outcome.ingested) <= min(size, pages)
    assert len(outcome.failed) <= 3 * pages
    assert len(web.asked) == len(set(web.asked))


def link(name: object, **values: Any) -> LinkCandidate:
    given_values = {"source_url": SEED, "source_page_id": 1, "url": target(name)}
    return LinkCandidate(**{**given_values, **values})


async def found(web: Web, *links: LinkCandidate, known: Any = (), **config: Any) -> list[str]:
    web.links_of[SEED] = list(links)
    result = await web.expander(**config).frontier(
        [SEED], ["replica lag"], seeds=[SEED], scope=SCOPE, known=known, passages={}
    )
    return [candidate.url for candidate in result.candidates]


async def test_frontier_holds_the_folders_above_the_seed() -> None:
    assert await found(Web()) == [target("guide/")]


async def test_frontier_leaves_out_what_is_known_stored_or_no_page() -> None:
    web = Web()
    web.stored = [target("stored")]
    links = [link("known"), link("stored"), link("logo.png"), link("fine")]

    candidates = await found(web, *links, known={target("known"), target("guide/")})

    assert candidates == [target("fine")]


async def test_frontier_leaves_out_what_is_only_linked_with_nofollow() -> None:
    links = [
        link("advertised", title="Replica lag", rel=("sponsored", "nofollow")),
        link("fine", rel=("nofollow",)),
        link("fine"),
    ]

    assert await found(Web(), *links) == [target("fine"), target("guide/")]


async def test_frontier_leaves_out_links_below_the_least_score() -> None:
    links = [link("x"), link("y", title="Replica lag")]

    assert await found(Web(), *links, min_candidate_score=0.2) == [target("y")]


async def test_frontier_is_bounded_after_scoring() -> None:
    links = [link(n) for n in range(50)] + [link("best", title="Replica lag")]

    candidates = await found(Web(), *links, candidates_to_score_per_iteration=3)

    assert len(candidates) == 3
    assert candidates[0] == target("best")


async def test_candidates_that_fail_are_replaced_by_spares() -> None:
    web = Web({target("a"): FetchError("it is down", url=target("a"))})
    kept, spare = frontier("a").candidates, frontier("b").candidates

    outcome = await followed(web, Frontier(kept, 2, None, spare), size=1)

    assert urls(outcome) == [target("b")]


async def test_links_of_a_real_page_are_scored_by_what_surrounds_them(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(dict(MANUAL))
    await lab.acquirer.acquire(site + "/operations.html")
    expander = LinkExpander(lab.acquirer, lab.corpus, None, ExpansionConfig())

    result = await expander.frontier(
        [site + "/operations.html"],
        [TWO_LINKS_AWAY],
        seeds=[site + "/operations.html"],
        scope=LinkScope.of("same_site", [site + "/"]),
        known=(),
        passages={},
    )

    assert result.candidates[0].url == site + "/replication.html"
    assert result.candidates[0].breakdown["description"] > 0
