from hypothesis import given
from hypothesis import strategies as st
from llama_index.postprocessor.webrag.shingles import is_repetition, jaccard, shingles

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
