import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.postprocessor.webrag.selection import (
    choose_distinct,
    depth_weight,
    fill_budget,
    is_repetition,
    jaccard,
    neighbours_in_order,
    shingles,
    within_budget,
)

sizes = st.lists(st.integers(0, 20), max_size=12)
words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12).map(" ".join)


def test_short_texts_are_one_shingle() -> None:
    assert shingles("Two words") == {("two", "words")}


def test_case_and_punctuation_do_not_matter() -> None:
    assert shingles("One, two: THREE four!") == shingles("one two three four")


def test_jaccard_of_empty_sets_is_zero() -> None:
    assert jaccard(frozenset(), frozenset()) == 0.0


@given(words, words)
def test_likeness_is_symmetric_and_one_for_equal_texts(left: str, right: str) -> None:
    one, other = shingles(left), shingles(right)

    assert jaccard(one, other) == jaccard(other, one)
    assert jaccard(one, one) == 1.0


@given(words, words, st.floats(0, 1))
def test_shortcut_agrees_with_the_full_comparison(left: str, right: str, ceiling: float) -> None:
    one, other = shingles(left), shingles(right)

    assert is_repetition(one, other, ceiling) == (jaccard(one, other) > ceiling)


@given(st.lists(words, max_size=8), st.floats(0, 1))
def test_equal_scores_keep_each_text_unless_an_earlier_kept_one_is_like_it(
    texts: list[str], ceiling: float
) -> None:
    sets = [shingles(text) for text in texts]
    kept: list[int] = []
    for place, own in enumerate(sets):
        if not any(is_repetition(own, sets[other], ceiling) for other in kept):
            kept.append(place)

    assert choose_distinct([0.0] * len(sets), sets, ceiling=ceiling) == kept


@given(sizes, st.integers(0, 60))
def test_a_budget_holds_the_longest_run_from_the_first_and_at_least_one(
    lengths: list[int], budget: int
) -> None:
    kept = within_budget(lengths, budget)

    assert sum(lengths[:kept]) <= budget or kept == 1
    assert kept == len(lengths) or sum(lengths[: kept + 1]) > budget


@given(sizes, st.integers(0, 60))
def test_what_is_left_out_did_not_fit_beside_what_came_before(
    lengths: list[int], budget: int
) -> None:
    kept = fill_budget(lengths, budget)

    for place, size in enumerate(lengths):
        before = sum(lengths[other] for other in kept if other < place)
        assert (place in kept) == (before + size <= budget)


def test_neighbours_of_the_best_come_first_and_no_match_is_one() -> None:
    assert neighbours_in_order([[3, 5, 2], [5, 7, 4]], {4, 2}) == [3, 5, 7]


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(0, 1.0), (1, 0.95), (2, 0.90), (3, 0.85), (4, 0.80), (40, 0.80)],
)
def test_depth_weight_decays_to_its_floor(depth: int, expected: float) -> None:
    assert depth_weight(depth, rate=0.05, floor=0.8) == pytest.approx(expected)
