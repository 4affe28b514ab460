import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.postprocessor.webrag.token_vectors import (
    TokenVocabulary,
    best_cosines,
    distinct_tokens,
    dot_products,
)


def vectors(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def test_the_best_cosine_within_a_passage_counts() -> None:
    vocabulary = TokenVocabulary()
    near = vocabulary.number(["a", "b"], vectors([3.0, 0.0], [1.0, 1.0]))
    far = vocabulary.number(["c"], vectors([0.0, 2.0]))

    best = best_cosines(vectors([5.0, 0.0]), [near, far], vocabulary.vectors)

    assert best.tolist() == [[1.0, 0.0]]


def test_a_token_keeps_its_number() -> None:
    vocabulary = TokenVocabulary()
    first = vocabulary.number(["a", "b"], vectors([1.0, 0.0], [0.0, 1.0]))

    again = vocabulary.number(["b", "c", "a"], vectors([0.0, 1.0], [1.0, 1.0], [1.0, 0.0]))

    assert again.tolist() == [first[1], 2, first[0]]


def test_tokens_spelt_alike_are_told_apart_by_their_vectors() -> None:
    vocabulary = TokenVocabulary()

    numbers = vocabulary.number(["the", "the"], vectors([1.0, 0.0], [0.5, 1.0]))

    assert len(set(numbers.tolist())) == 2


def test_a_passage_without_tokens_is_close_to_nothing() -> None:
    vocabulary = TokenVocabulary()
    empty = vocabulary.number([], np.zeros((0, 2), np.float32))
    full = vocabulary.number(["a"], vectors([1.0, 0.0]))

    best = best_cosines(vectors([1.0, 0.0]), [empty, full, empty], vocabulary.vectors)

    assert best.tolist() == [[0.0, 1.0, 0.0]]


@given(
    st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=30), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
)
def test_the_result_is_that_of_comparing_all_vectors(passages: list[list[int]], seed: int) -> None:
    every = np.random.default_rng(seed).normal(size=(3001, 4)).astype(np.float32)
    vocabulary = TokenVocabulary()
    numbers = [vocabulary.number([str(i) for i in tokens], every[tokens]) for tokens in passages]
    unit = every / np.linalg.norm(every, axis=1, keepdims=True)

    best = best_cosines(every[:3], numbers, vocabulary.vectors)

    expected = np.stack([(unit[:3] @ unit[tokens].T).max(axis=1) for tokens in passages], axis=1)
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
