from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.orchestration.state import PageBudget


@pytest.mark.parametrize(
    ("pages", "first", "rounds", "size"),
    [
        pytest.param(6, True, 5, 4, id="four of ten pages are left for a second round"),
        pytest.param(25, True, 5, 5, id="a first round keeps to the cap"),
        pytest.param(10, True, 1, 5, id="a single round keeps to the cap"),
        pytest.param(3, True, 5, 2, id="the first round's share is rounded up"),
        pytest.param(1, True, 5, 1, id="one page"),
        pytest.param(10, False, 4, 5, id="later rounds take the cap"),
        pytest.param(2, False, 4, 2, id="never more than what is left"),
        pytest.param(0, True, 5, 0, id="nothing left"),
    ],
)
def test_round_size(pages: Any, first: Any, rounds: Any, size: Any) -> None:
    budget = PageBudget.of(pages, 1_000)

    assert budget.round_size(5, is_first=first, rounds_left=rounds) == size


def test_failures_are_capped_at_three_times_the_pages() -> None:
    budget = PageBudget.of(2, 1_000)

    budget.spend(failures=6)

    assert budget.is_spent


@pytest.mark.parametrize(
    ("spent", "part"),
    [
        ({}, None),
        ({"pages": 2}, "the page budget is used up"),
        ({"size": 1_000}, "as many bytes were read as allowed"),
        ({"failures": 6}, "too many fetches failed"),
    ],
)
def test_budget_says_which_part_is_spent(spent: Any, part: Any) -> None:
    budget = PageBudget.of(2, 1_000)

    budget.spend(**spent)

    assert budget.spent_part == part


def test_fetches_under_way_count_as_pages_that_may_still_be_large() -> None:
    budget = PageBudget.of(10, 4_000)

    assert (budget.may_begin(0), budget.may_begin(1)) == (True, False)


@pytest.mark.parametrize("spent", [{"pages": 2}, {"size": 1_000}, {"failures": 6}])
def test_any_exhausted_part_ends_the_budget(spent: Any) -> None:
    budget = PageBudget.of(2, 1_000)

    budget.spend(**spent)

    assert budget.round_size(5, is_first=False, rounds_left=5) == 0


@given(st.integers(0, 25), st.integers(1, 8), st.integers(1, 5))
def test_rounds_together_never_exceed_the_pages(pages: Any, cap: Any, rounds: Any) -> None:
    budget, taken = PageBudget.of(pages, 10**9), 0

    for left in range(rounds, 0, -1):
        size = budget.round_size(cap, is_first=left == rounds, rounds_left=left)
        budget.spend(pages=size)
        taken += size

    assert taken <= pages
