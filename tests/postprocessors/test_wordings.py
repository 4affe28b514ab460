import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import QueryBundle
from llama_index.postprocessor.webrag.wordings import (
    MAX_WORDING_CHARS,
    MAX_WORDINGS,
    best_wording,
    bundle_wordings,
    fitted_wordings,
    held_scores,
    wordings_score,
)

from webrag import argument_checks

SCORES = st.floats(0, 1, allow_nan=False)
# A passage's scores under the question and under up to five wordings.
TABLES = st.integers(0, 5).flatmap(
    lambda count: st.lists(
        st.lists(SCORES, min_size=count + 1, max_size=count + 1), min_size=1, max_size=40
    )
)


@given(SCORES)
def test_a_question_without_wordings_scores_as_it_is(score: float) -> None:
    assert wordings_score([score]) == score


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([1.0, 0.0, 0.0], 0.5), ([0.0, 1.0, 1.0], 0.5), ([0.4, 0.7], 0.5), ([0.6] * 6, 0.6)],
)
def test_the_question_counts_double(scores: list[float], expected: float) -> None:
    assert wordings_score(scores) == pytest.approx(expected)


@given(st.lists(SCORES, min_size=1, max_size=6))
def test_a_mean_lies_between_the_worst_and_the_best_wording(scores: list[float]) -> None:
    assert min(scores) - 1e-9 <= wordings_score(scores) <= max(scores) + 1e-9


@pytest.mark.parametrize(
    ("scores", "place"), [([0.5], 0), ([0.5, 0.5], 0), ([0.1, 0.9, 0.3], 1), ([0.1, 0.3, 0.3], 1)]
)
def test_the_best_wording_is_the_first_of_equals(scores: list[float], place: int) -> None:
    assert best_wording(scores) == place


@given(TABLES, st.integers(1, 5))
def test_no_wordings_push_a_passage_far_behind_its_place_under_the_question(
    tables: list[list[float]], times: int
) -> None:
    own = [scores[0] for scores in tables]

    held = held_scores([wordings_score(scores) for scores in tables], own, times=times)

    ranked = sorted(range(len(own)), key=lambda at: -own[at])
    for place, at in enumerate(ranked, start=1):
        ahead = sum(score > held[at] for score in held)
        assert ahead < times * place


@given(TABLES)
def test_holding_lowers_no_score_and_keeps_the_best(tables: list[list[float]]) -> None:
    scores = [wordings_score(each) for each in tables]

    held = held_scores(scores, [each[0] for each in tables])

    assert all(after >= before for before, after in zip(scores, held, strict=True))
    assert math.isclose(max(held), max(scores))


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_scores_that_are_all_the_same_stay_as_they_are(score: float) -> None:
    assert held_scores([score] * 9, [score] * 9) == [score] * 9


@given(st.lists(SCORES, min_size=1, max_size=40))
def test_wordings_that_agree_with_the_question_change_no_score(own: list[float]) -> None:
    held = held_scores(own, own)

    assert held == pytest.approx(own)


def test_what_only_wordings_like_comes_in_between_not_before_everything() -> None:
    own = [0.9, 0.8, 0.7, *[0.0] * 12]
    liked = [0.1, 0.1, 0.1, *(0.5 + each / 100 for each in range(12))]

    held = held_scores(liked, own, times=3)

    order = sorted(range(15), key=lambda at: -held[at])
    assert [order.index(at) for at in (0, 1, 2)] == [2, 5, 8]


def test_limits_are_those_that_callers_are_held_to() -> None:
    strict = (argument_checks.MAX_WORDINGS, argument_checks.MAX_WORDING_CHARS)

    assert strict == (MAX_WORDINGS, MAX_WORDING_CHARS)


@pytest.mark.parametrize(
    ("texts", "fitted"),
    [
        pytest.param(["tabs", "spaces"], ("tabs", "spaces"), id="in their order"),
        pytest.param(["", " ", "?!", "\u200b", "tabs"], ("tabs",), id="nothing to search for"),
        pytest.param(["Why indent", "why  INDENT?"], (), id="the question again"),
        pytest.param(["Tabs", "tabs.", "tabs"], ("Tabs",), id="repetitions"),
        pytest.param(["a\0b \ud800c"], ("a b c",), id="what no table takes"),
        pytest.param(["x" * 501], ("x" * 500,), id="too long"),
        pytest.param(list("abcdefg"), tuple("abcde"), id="too many"),
        pytest.param(["two\n lines"], ("two lines",), id="white space"),
    ],
)
def test_what_can_count_is_kept(texts: list[str], fitted: tuple[str, ...]) -> None:
    assert fitted_wordings("why indent?", texts) == fitted


def test_wordings_beside_take_their_room() -> None:
    beside = ("one", "two", "three", "four")

    assert fitted_wordings("q", ["two", "five", "six"], beside=beside) == ("five",)


@given(
    texts=st.lists(st.text(max_size=600), max_size=9),
    beside=st.lists(st.text(max_size=20), max_size=7),
    at_most=st.integers(0, 7),
)
def test_there_are_never_more_than_five_in_all(
    texts: list[str], beside: list[str], at_most: int
) -> None:
    fitted = fitted_wordings("why indent?", texts, beside=beside, at_most=at_most)

    assert len(fitted) <= min(at_most, max(MAX_WORDINGS - len(beside), 0))
    assert argument_checks.checked_wordings("why indent?", fitted) == fitted


def test_embedding_strings_of_a_bundle_are_wordings_but_for_the_question() -> None:
    bundle = QueryBundle("why indent?", custom_embedding_strs=["Tabs are.", "why indent?"])

    assert bundle_wordings(bundle) == ("Tabs are.",)


def test_bundle_without_embedding_strings_has_no_wordings() -> None:
    assert bundle_wordings(QueryBundle("why indent?")) == ()
