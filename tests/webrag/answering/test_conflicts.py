from collections.abc import Callable
from typing import Any

import pytest

from webrag.answering.conflicts import find_conflicts
from webrag.answering.units import read_units


@pytest.fixture
def conflicts(make_evidence: Callable[..., Any], make_gathered: Callable[..., Any]) -> Any:
    """Kinds of the conflicts between one sentence and another, of another page by default."""

    def find(left: str, right: str, *, other_page: bool = True) -> list[str]:
        urls = ["https://x.test/1", "https://x.test/2" if other_page else "https://x.test/1"]
        pages = [
            make_evidence(text, number=n, url=url)
            for n, (text, url) in enumerate(zip((left, right), urls, strict=True), start=1)
        ]
        units = read_units(f"{left} {right}", make_gathered(*pages), similarity=None)
        return [each.kind for each in find_conflicts(units)]

    return find


LIMIT = "The request limit of the free plan is 100 calls per minute."


def test_other_value_of_the_same_subject_is_a_conflict(conflicts: Any) -> None:
    assert conflicts(LIMIT, LIMIT.replace("100", "60")) == ["number"]


def test_denial_of_the_same_statement_is_a_conflict(conflicts: Any) -> None:
    left = "The broker accepts plain connections on this port."

    assert conflicts(left, "The broker does not accept plain connections on this port.") == [
        "negation"
    ]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(LIMIT, id="same"),
        pytest.param("The request limit of the free plan is one hundred calls.", id="no-value"),
        pytest.param("Free lunch is served for 60 people in the canteen.", id="other-subject"),
        pytest.param("The `max_calls` request limit of the free plan is 60 calls per minute.",
                     id="other-name"),
    ],
)  # fmt: skip
def test_statements_that_can_both_be_true_are_no_conflict(other: str, conflicts: Any) -> None:
    assert conflicts(LIMIT, other) == []


def test_one_page_does_not_conflict_with_itself(conflicts: Any) -> None:
    assert conflicts(LIMIT, LIMIT.replace("100", "60"), other_page=False) == []
