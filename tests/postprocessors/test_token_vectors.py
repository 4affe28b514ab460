import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.postprocessor.webrag.token_vectors import (
    best_cosines,
    distinct_tokens,
    dot_products,
)


def vectors(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def tokens(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def test_the_best_cosine_within_a_passage_counts() -> None:
    table = vectors([3.0, 0.0], [1.0, 1.0], [0.0, 2.0])

    best = best_cosines(vectors([5.0, 0.0]), [tokens(0, 1), tokens(2)], table.__getitem__)

    assert best.tolist() == [[1.0, 0.0]]


def test_a_passage_without_tokens_is_close_to_nothing() -> None:
    table = vectors([1.0, 0.0])

    best = best_cosines(table, [tokens(), tokens(0), tokens()], table.__getitem__)

    assert best.tolist() == [[0.0, 1.0, 0.0]]


@given(
    st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=30), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
)
def test_the_result_is_that_of_comparing_all_vectors(passages: list[list[int]], seed: int) -> None:
    every = np.random.default_rng(seed).normal(size=(3001, 4)).astype(np.float32)
    numbers = [np.array(each, np.int64) for each in passages]
    unit = every / np.linalg.norm(every, axis=1, keepdims=True)

    best = best_cosines(every[:3], numbers, every.__getitem__)

    expected = np.stack([(unit[:3] @ unit[each].T).max(axis=1) for each in passages], axis=1)
    assert best == pytest.approx(expected, abs=1e-5)


def test_distinct_tokens_are_those_of_all_parts_of_a_passage() -> None:
    parts = [[np.array([7, 3]), np.array([3])], [], [np.zeros(0, np.int64)], [np.array([7])]]

    assert [each.tolist() for each in distinct_tokens(parts)] == [[3, 7], [], [], [7]]


@pytest.mark.parametrize(("rows", "others"), [(0, 3), (5, 0), (700, 9), (3, 2000)])
def test_dot_products_are_those_of_one_large_product(rows: int, others: int) -> None:
    random = np.random.default_rng(4)
    one = random.standard_normal((rows, 256), dtype=np.float32)
    other = random.standard_normal((others, 256), dtype=np.float32)

    np.testing.assert_allclose(dot_products(one, other), one @ other.T, atol=1e-4)
