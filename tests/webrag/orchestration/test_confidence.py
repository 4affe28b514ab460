from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.orchestration.confidence import (
    band,
    below_high,
    confidence,
    coverage,
    is_list_of_links,
    quality,
    score_of,
)
from webrag.orchestration.models import ScoreProfile

from .conftest import build_ranked

PROFILE = ScoreProfile(name="test", mediocre_score_floor=0.4, answered_score=0.7)
IDF = {"replica": 2.0, "lag": 2.0, "limit": 1.0}


def confident(score: float, *texts: str, idf: Any = IDF) -> float:
    return confidence(
        [build_ranked(score, text) for text in texts],
        top_score=score,
        term_idf=idf,
        profile=PROFILE,
    )


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
        (0.5, "medium"),
        (0.49, "low"),
        (0.3, "low"),
        (0.29, "none"),
        (0.0, "none"),
    ],
)
def test_bands(value: Any, name: Any) -> None:
    assert band(value) == name


def test_coverage_is_the_weighted_share_of_terms_found_together() -> None:
    assert coverage(IDF, ["Replicas follow", "the limit"]) == pytest.approx(0.6)


def test_coverage_is_neutral_without_terms() -> None:
    assert coverage({}, ["anything"]) == coverage({}, [])


def test_no_evidence_gives_no_confidence() -> None:
    assert confident(0.9) == 0.0


def test_adjacent_context_is_no_evidence() -> None:
    adjacent = build_ranked(0.0, "replica lag limit", is_locality_expanded=True)

    assert confidence([adjacent], top_score=0.9, term_idf=IDF, profile=PROFILE) == 0.0


def test_covering_the_question_raises_confidence() -> None:
    assert confident(0.6, "replica lag limit") > confident(0.6, "something else")


@pytest.mark.parametrize(
    ("idf", "wording", "name"),
    [
        pytest.param({"=replica_lag": 2.0, "replica": 2.0}, {}, "low", id="not held"),
        pytest.param({"=lag_limit": 2.0, "replica": 2.0}, {}, "high", id="held"),
        pytest.param({"=lag_limit": 2.0, "=replica_lag": 2.0}, {}, "high", id="one of two held"),
        pytest.param({"=replica_lag": 2.0}, {"=lag_limit": 2.0}, "high", id="held by a wording"),
        pytest.param({"replica": 2.0}, {}, "high", id="no identifier"),
        pytest.param({"replica": 2.0}, {"=max_lag": 2.0}, "high", id="guessed by a wording"),
    ],
)
def test_evidence_that_never_names_the_identifier_asked_for_is_of_something_else(
    idf: dict[str, float], wording: dict[str, float], name: str
) -> None:
    found = confidence(
        [build_ranked(0.99, "The `lag_limit` of a replica is 8.")],
        top_score=0.99,
        term_idf=idf,
        wordings=[wording] if wording else [],
        profile=PROFILE,
    )

    assert band(found) == name


def test_good_covering_evidence_is_high() -> None:
    assert band(confident(0.7, "the limit of replica lag")) == "high"


@given(st.floats(0, 1), st.sampled_from([IDF, {"=--keep-going": 1.0}]))
def test_confidence_is_the_number_that_is_shown(score: float, idf: Any) -> None:
    found = confident(score, "replica", idf=idf)

    assert found == float(f"{found:.2f}")


@given(st.floats(0, 1), st.floats(0, 1))
def test_confidence_grows_with_the_score(left: Any, right: Any) -> None:
    low, high = sorted((left, right))

    assert 0 <= confident(low, "replica") <= confident(high, "replica") <= 1


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
