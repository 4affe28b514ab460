import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.presentation.brief.blocks import relevant_count


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
    assert relevant_count(relevance, 0.05) == expected


@given(st.lists(st.floats(0, 1)), st.floats(0, 1))
def test_no_more_is_kept_than_there_is(scores: list[float], floor: float) -> None:
    assert 0 <= relevant_count(sorted(scores, reverse=True), floor) <= len(scores)
