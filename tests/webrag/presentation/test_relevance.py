import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.presentation.brief.blocks import is_strong, least_relevance, relevant_count


@pytest.mark.parametrize(
    ("relevance", "expected"),
    [
        pytest.param([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], 6, id="all-are-near-the-best"),
        pytest.param([*[0.9] * 9, 0.1, 0.1], 9, id="a-gap-ends-it"),
        pytest.param([0.9, *[0.02] * 9], 5, id="a-steep-fall-is-no-proof"),
        pytest.param([0.12, *[0.09] * 8, 0.04], 9, id="the-floor-ends-it"),
        pytest.param([0.5, 0.4], 2, id="few"),
        pytest.param([], 0, id="none"),
    ],
)
def test_evidence_ends_where_relevance_does(relevance: list[float], expected: int) -> None:
    assert relevant_count(relevance, 0.05, nothing_relevant=False) == expected


def test_of_what_answers_nothing_the_best_few_are_kept() -> None:
    assert relevant_count([0.04] * 20, 0.05, nothing_relevant=True) == 3


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_best_passage_always_counts_as_relevant(best: float, floor: float) -> None:
    assert least_relevance(best, floor) <= best


@given(st.lists(st.floats(0, 1)), st.floats(0, 1), st.booleans())
def test_no_more_is_kept_than_there_is(scores: list[float], floor: float, nothing: bool) -> None:
    ranked = sorted(scores, reverse=True)

    assert 0 <= relevant_count(ranked, floor, nothing_relevant=nothing) <= len(ranked)


@pytest.mark.parametrize(
    ("relevance", "expected"), [(0.9, True), (0.45, True), (0.4, False), (0.05, False)]
)
def test_only_what_is_near_the_best_and_on_the_topic_is_strong(
    relevance: float, expected: bool
) -> None:
    assert is_strong(relevance, 0.9, 0.05) is expected
