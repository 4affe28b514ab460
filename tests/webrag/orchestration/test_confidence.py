from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.orchestration.confidence import (
    band,
    below_high,
    in_hundredths,
    is_list_of_links,
    quality,
    score_of,
)
from webrag.orchestration.models import ScoreProfile

PROFILE = ScoreProfile(name="test", mediocre_score_floor=0.4, answered_score=0.7)


@pytest.mark.parametrize(
    ("score", "common"),
    [(0.0, 0.0), (0.2, 0.25), (0.4, 0.5), (0.55, 0.65), (0.7, 0.8), (1.0, 1.0), (7.0, 1.0)],
)
def test_quality_reads_scores_on_the_scale_of_their_profile(score: float, common: Any) -> None:
    assert quality(score, PROFILE) == pytest.approx(common)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1.0, "high"),
        (0.8, "high"),
        (0.79, "medium"),
        (0.7, "medium"),
        (0.69, "low"),
        (0.5, "low"),
        (0.49, "none"),
        (0.0, "none"),
    ],
)
def test_bands(value: Any, name: Any) -> None:
    assert band(value) == name


@given(st.floats(0, 1))
def test_confidence_that_is_shown_is_in_the_band_of_the_confidence(value: float) -> None:
    shown = in_hundredths(value)

    assert shown == float(f"{shown:.2f}")
    assert -1e-9 <= value - shown < 0.0101


@given(
    st.builds(
        ScoreProfile,
        name=st.just("any"),
        mediocre_score_floor=st.floats(0, 1),
        answered_score=st.floats(0, 1),
    ),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_quality_is_monotone_for_any_profile(profile: Any, left: Any, right: Any) -> None:
    low, high = sorted((left, right))

    assert 0 <= quality(low, profile) <= quality(high, profile) <= 1


@pytest.mark.parametrize(("found", "kept"), [(0.95, 0.79), (0.6, 0.6), (0.1, 0.1)])
def test_doubt_takes_nothing_but_the_highest_band(found: float, kept: float) -> None:
    assert below_high(found) == pytest.approx(kept)


@pytest.mark.parametrize(
    ("links", "is_list"),
    [
        pytest.param([], False, id="no link"),
        pytest.param([(100, 109)], False, id="one link of several words"),
        pytest.param([(100, 109), (110, 119), (120, 129)], True, id="nothing but links"),
        pytest.param([(0, 99), (200, 300)], False, id="links of other passages"),
        pytest.param([(90, 500)], True, id="a link over all of it"),
    ],
)
def test_passage_is_a_list_of_links_when_most_of_it_is_linked(links: Any, is_list: bool) -> None:
    assert is_list_of_links("Replicas  Backups   Snapshots", 100, links) == is_list


@given(st.text(max_size=50), st.lists(st.tuples(st.integers(-5, 80), st.integers(-5, 80))))
def test_any_places_of_links_can_be_judged(text: str, links: list[tuple[int, int]]) -> None:
    assert isinstance(is_list_of_links(text, 10, links), bool)


@given(
    st.builds(
        ScoreProfile,
        name=st.just("any"),
        mediocre_score_floor=st.floats(0, 1),
        answered_score=st.floats(0, 1),
    ),
    st.floats(0, 1),
)
def test_a_score_of_some_quality_has_that_quality(profile: Any, value: Any) -> None:
    assert quality(score_of(value, profile), profile) == pytest.approx(value, abs=1e-9)
