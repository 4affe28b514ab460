import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.errors import (
    DatabaseUnavailableError,
    DeadlineError,
    FetchError,
    PageGoneError,
    ProviderError,
    RobotsDisallowedError,
    UnusablePageError,
    WebRAGError,
)
from webrag.orchestration.links.expander import FetchRound, failure_kind
from webrag.orchestration.links.rules import (
    ExpansionOutcome,
    Frontier,
    LinkScope,
)
from webrag.orchestration.models import NextLink
from webrag.orchestration.state import PageBudget

from .scripted_web import SCOPE, SEED, Web, target


def frontier(*names: object) -> Frontier:
    candidates = [NextLink(target(name), "", None, SEED, 1.0) for name in names]
    return Frontier(tuple(candidates), len(candidates))


async def followed(web: Web, candidates: Frontier, **values: Any) -> ExpansionOutcome:
    given_values: dict[str, Any] = {
        "target": 2,
        "budget": PageBudget.of(10, 10_000_000),
        "scope": SCOPE,
        "known": frozenset({SEED}),
        "failed_before": {},
        "deadline": time.monotonic() + 10,
        "on_fetch": lambda _: None,
    }
    fetching = FetchRound(**{**given_values, **values})
    return await fetching.fill(web, candidates.candidates)  # type: ignore[arg-type]


def urls(outcome: ExpansionOutcome) -> list[str]:
    return sorted(candidate.url for candidate in outcome.ingested)


async def test_best_candidates_are_fetched_at_once() -> None:
    web = Web()

    outcome = await followed(web, frontier("a", "b", "c"))

    assert urls(outcome) == [target("a"), target("b")]
    assert web.most_running == 2
    assert sum(outcome.chunks_by_url.values()) == 4


async def test_pages_are_told_best_link_first_whichever_came_in_first() -> None:
    web = Web({target("a"): target("moved")})  # what leads elsewhere is taken last
    best, other = frontier("a", "b").candidates
    links = Frontier((best, replace(other, score=0.5)), 2)

    outcome = await followed(web, links)

    assert [each.url for each in outcome.ingested] == [target("moved"), target("b")]


async def test_failure_is_replaced_by_the_next_candidate() -> None:
    web = Web({target("a"): FetchError("it is down", url=target("a"))})

    outcome = await followed(web, frontier("a", "b", "c"))

    assert urls(outcome) == [target("b"), target("c")]
    assert outcome.failed == {target("a"): "it is down"}


async def test_round_fails_at_most_three_times_for_each_page_wanted() -> None:
    web = Web({target(n): FetchError("gone", url=target(n), status=404) for n in range(20)})
    budget = PageBudget.of(10, 10_000_000)

    outcome = await followed(web, frontier(*range(20)), target=2, budget=budget)

    assert (len(outcome.failed), budget.failures) == (6, 24)


async def test_site_that_gives_no_answer_is_left_after_three_requests() -> None:
    web = Web({target(n): FetchError("no answer", url=target(n)) for n in range(20)})

    outcome = await followed(web, frontier(*range(20)), target=3)

    assert len(web.asked) == 3
    assert set(outcome.failure_kinds.values()) == {"without an answer"}


async def test_requests_of_earlier_rounds_without_an_answer_count_for_a_site() -> None:
    before = dict.fromkeys(map(target, "abc"), "without an answer")

    web = Web()
    outcome = await followed(web, frontier("d"), failed_before=before)

    assert (web.asked, outcome.failed) == ([], {})


async def test_pages_the_site_says_are_missing_do_not_count_as_silence() -> None:
    web = Web({target(n): FetchError("gone", url=target(n), status=404) for n in range(5)})

    outcome = await followed(web, frontier(*range(6)), target=2)

    assert urls(outcome) == [target(5)]
    assert "without an answer" not in outcome.failure_kinds.values()


async def test_small_budget_of_bytes_is_overrun_by_one_page_at_most() -> None:
    web = Web(size=5_000)
    budget = PageBudget.of(10, 4_000)

    await followed(web, frontier(*range(9)), target=5, budget=budget)

    assert (len(web.asked), budget.bytes) == (1, 0)


async def test_no_fetch_begins_after_the_deadline_of_the_round() -> None:
    web = Web()

    outcome = await followed(web, frontier("a", "b"), deadline=time.monotonic() - 1)

    assert (web.asked, outcome.ingested) == ([], [])


async def test_redirect_out_of_the_scope_counts_as_failed() -> None:
    web = Web({target("a"): "https://else.test/"})

    outcome = await followed(web, frontier("b", "a"))

    assert (urls(outcome), list(outcome.failed)) == ([target("b")], [target("a")])
    assert "outside the scope" in outcome.failed[target("a")]
    assert web.stored == [target("b")]


async def test_other_addresses_of_known_pages_end_the_round_as_failures_would() -> None:
    web = Web({target(n): SEED for n in range(60)})

    outcome = await followed(web, frontier(*range(60)), target=1)

    assert outcome.ingested == []
    assert len(web.asked) < 10


@pytest.mark.parametrize("leads_to", [SEED, target("b")])
async def test_other_address_of_a_known_page_is_neither_a_page_nor_a_failure(leads_to: str) -> None:
    web = Web({target("a"): leads_to})
    budget = PageBudget.of(10, 10_000_000)

    outcome = await followed(web, frontier("b", "a", "c"), budget=budget)

    assert urls(outcome) == [target("b"), target("c")]
    assert (outcome.failed, outcome.aliases) == ({}, {target("a"): leads_to})
    assert (budget.pages, budget.failures) == (8, 30)


async def test_address_of_a_stored_page_is_known() -> None:
    web = Web()
    web.already_stored = {target("a")}

    outcome = await followed(web, frontier("a", "b"), target=1)

    assert (urls(outcome), outcome.aliases) == ([target("b")], {target("a"): target("a")})


async def test_reached_limit_of_requests_makes_the_round_smaller() -> None:
    busy = FetchError("too many requests", url=target("a"), status=429)
    web = Web({target("a"): busy, target("b"): busy})

    outcome = await followed(web, frontier(*"abcdefgh"), target=4)

    assert urls(outcome) == [target("c"), target("d")]
    assert outcome.rate_limited
    assert set(web.asked) == set(map(target, "abcd"))


async def test_failing_embedding_ends_the_expansion_with_what_is_there() -> None:
    web = Web({target("a"): ProviderError("quota used up", provider="x")})

    outcome = await followed(web, frontier("a", "b", "c", "d"))

    assert "quota used up" in (outcome.stopped_by or "")
    assert web.asked == [target("a"), target("b")]


async def test_database_failure_is_raised_and_leaves_nothing_running() -> None:
    web = Web({target("a"): DatabaseUnavailableError("gone"), target("b"): None})

    with pytest.raises(DatabaseUnavailableError):
        await followed(web, frontier("a", "b"))

    assert web.running == 0


async def test_pages_that_do_not_arrive_in_time_are_given_up() -> None:
    web = Web({target("a"): None})

    outcome = await followed(web, frontier("a", "b"), deadline=time.monotonic() + 1)

    assert (urls(outcome), list(outcome.failed)) == ([target("b")], [target("a")])
    assert outcome.timed_out
    assert web.running == 0


async def test_no_fetch_begins_once_the_bytes_are_used_up() -> None:
    web = Web(size=600)

    await followed(web, frontier(*range(9)), target=9, budget=PageBudget.of(9, 1_000))

    assert len(web.asked) == 2
    again = await followed(web, frontier("z"), budget=PageBudget.of(9, 0))
    assert again.ingested == []


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
        followed(web, frontier(*range(len(works))), target=min(size, pages), budget=budget)
    )

    assert len(outcome.ingested) <= min(size, pages)
    assert len(outcome.failed) <= 3 * pages
    assert len(web.asked) == len(set(web.asked))


async def test_candidates_that_fail_are_replaced_by_the_next() -> None:
    web = Web({target("a"): FetchError("it is down", url=target("a"))})

    outcome = await followed(web, frontier("a", "b"), target=1)

    assert urls(outcome) == [target("b")]


def test_links_that_score_too_little_are_left_out_and_told_of() -> None:
    best, fair, weak = (
        replace(each, score=score)
        for each, score in zip(frontier("a", "b", "c").candidates, (1.0, 0.2, 0.1), strict=True)
    )

    kept = Frontier((best, fair, weak), 3).reaching(0.2)

    assert (kept.candidates, kept.weak) == ((best, fair), (weak,))
    assert not kept.reaching(0.2).weak


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PageGoneError("gone", url=target(1), status=404), "dead"),
        (FetchError("no", url=target(1), status=403), "refused"),
        (RobotsDisallowedError("no", url=target(1)), "refused"),
        (FetchError("nothing came", url=target(1)), "without an answer"),
        (UnusablePageError("a picture", url=target(1)), "unusable"),
        (DeadlineError("late"), "cut off"),
    ],
)
def test_failures_are_told_apart(error: WebRAGError, kind: str) -> None:
    assert failure_kind(error) == kind


async def test_pages_that_lead_outside_the_scope_are_no_silence_of_their_site() -> None:
    web = Web({target(n): "https://elsewhere.test/" for n in range(3)})

    outcome = await followed(web, frontier(*range(4)))

    assert urls(outcome) == [target(3)]


async def test_slow_site_holds_up_no_other() -> None:
    web = Web({f"https://slow.test/{n}": None for n in range(2)})
    slow = [NextLink(url, "", None, SEED, 1.0) for url in web.answers]
    links = Frontier((*slow, *frontier("a", "b").candidates), 4)

    outcome = await followed(
        web, links, scope=LinkScope.of("any", [SEED]), deadline=time.monotonic() + 60
    )

    assert urls(outcome) == [target("a"), target("b")]
    assert set(outcome.failure_kinds.values()) == {"cut off"}
    assert not outcome.timed_out


async def test_slow_site_alone_is_waited_for() -> None:
    web = Web({target(n): None for n in range(2)})

    outcome = await followed(web, frontier(0, 1, 2), deadline=time.monotonic() + 3)

    assert (web.asked, outcome.timed_out) == ([target(0), target(1)], True)
