import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from webrag.llamaindex.store_search import select_varied

QUERY = np.array([1.0, 0.0])


def test_third_choice_does_not_repeat_the_first() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.001], [-0.1, -1.0]])

    chosen = select_varied(QUERY, vectors, 3, threshold=0.3)

    assert [place for place, _ in chosen] == [0, 3, 1]


def test_zero_vectors_are_chosen_without_an_error() -> None:
    chosen = select_varied(QUERY, np.array([[0.0, 0.0], [1.0, 0.0]]), 2, threshold=0.5)

    assert [place for place, _ in chosen] == [1, 0]


@given(st.integers(0, 12), st.integers(1, 15), st.floats(0, 1))
def test_each_vector_is_chosen_at_most_once(rows: int, limit: int, threshold: float) -> None:
    vectors = np.random.default_rng(rows).normal(size=(rows, 2))

    chosen = [place for place, _ in select_varied(QUERY, vectors, limit, threshold=threshold)]

    assert len(chosen) == len(set(chosen)) == min(rows, limit)
