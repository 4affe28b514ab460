from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.evaluation.metrics import (
    RANKS,
    WORD_BUDGETS,
    QuestionScore,
    compare_scores,
    permutation_test,
    sign_test,
)


def score(name: str, found: float, *, answerable: bool | None = True) -> QuestionScore:
    return QuestionScore(
        id=name,
        type="all",
        answerable=answerable,
        evidence=dict.fromkeys(RANKS, found),
        words=dict.fromkeys(WORD_BUDGETS, found),
        reciprocal_rank=found,
        hit_rate=found,
        ndcg=found,
    )


def run(*found: float) -> dict[str, QuestionScore]:
    return {str(n): score(str(n), value) for n, value in enumerate(found)}


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [
        *((0, 0, 1.0), (1, 1, 1.0), (5, 0, 2 / 32), (9, 1, 22 / 1024), (1, 9, 22 / 1024)),
        *((700, 700, 1.0), (2000, 0, 0.0)),
    ],
)
def test_sign_test_gives_the_exact_probability(better: int, worse: int, p: float) -> None:
    assert sign_test(better, worse) == pytest.approx(p)


@given(st.integers(0, 60), st.integers(0, 60))
def test_sign_test_is_a_probability_and_takes_no_side(better: int, worse: int) -> None:
    assert 0 < sign_test(better, worse) == sign_test(worse, better) <= 1


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), max_size=7))
def test_permutation_test_tries_every_assignment_of_signs(differences: list[float]) -> None:
    sums = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    expected = sum(each >= abs(sum(differences)) - 1e-9 for each in sums) / len(sums)

    assert permutation_test(differences) == pytest.approx(expected)


def test_many_differences_are_tested_by_samples_that_repeat() -> None:
    differences = [1.0] * 20 + [-1.0] * 10
    exact = 2 * sum(comb(30, k) for k in range(11)) / 2**30

    assert permutation_test(differences) == pytest.approx(exact, abs=0.01)
    assert permutation_test(differences) == permutation_test(differences)


def test_a_clear_gain_is_told_from_chance() -> None:
    figure = compare_scores(run(*[0.0] * 12), run(*[1.0] * 12))[0]

    assert (figure.first, figure.second, figure.difference) == (0.0, 1.0, 1.0)
    assert (figure.better, figure.worse, figure.questions) == (12, 0, 12)
    assert figure.p_permutation == figure.p_sign == pytest.approx(2 / 2**12)
    assert (figure.low, figure.high) == (1.0, 1.0)


def test_equal_runs_do_not_differ() -> None:
    figures = compare_scores(run(0.0, 1.0, 0.5), run(0.0, 1.0, 0.5))

    assert {(f.difference, f.p_permutation, f.p_sign) for f in figures} == {(0.0, 1.0, 1.0)}


def test_only_answerable_questions_of_both_runs_count() -> None:
    first = {**run(0.0, 0.0), "only first": score("only first", 1.0)}
    second = {**run(1.0, 1.0), "1": score("1", 0.0, answerable=False)}

    assert compare_scores(first, second)[0].questions == 1
    assert compare_scores(first, {}) == []


def test_interval_holds_the_difference() -> None:
    figure = compare_scores(run(*[0.0, 1.0] * 20), run(*[1.0, 1.0, 0.0, 1.0] * 10))[0]

    assert figure.low <= figure.difference <= figure.high
    assert figure.low < figure.high
