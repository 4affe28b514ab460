import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.postprocessor.webrag.token_vectors import emphasised, weighted_tokens

AXES = {"how": 0, "vacuum": 1, "table": 2, "the": 3}


def vectors(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def token_vectors(text: str) -> tuple[list[str], np.ndarray]:
    words = [word for word in text.split() if word in AXES]
    return words, np.eye(4, dtype=np.float32)[[AXES[word] for word in words]]


def weights_of(question: str, **idf: float) -> list[float]:
    return weighted_tokens(question, idf, str.split, token_vectors)[1].tolist()


def test_each_token_has_the_weight_of_its_word() -> None:
    assert weights_of("vacuum table", vacuum=5.0, table=2.0) == [5.0, 2.0]


def test_small_talk_has_no_weight() -> None:
    assert weights_of("how vacuum", vacuum=5.0) == [0.0, 5.0]


def test_small_talk_alone_weighs_evenly() -> None:
    assert weights_of("how the") == [1.0, 1.0]


def test_a_word_counts_once() -> None:
    assert weights_of("table vacuum table", vacuum=5.0, table=2.0) == [2.0, 5.0]


def test_the_vector_lies_half_way_to_the_tokens() -> None:
    vector = emphasised(vectors([1.0, 0.0])[0], vectors([0.0, 7.0]), np.array([3.0]))

    assert vector.tolist() == pytest.approx([0.5**0.5, 0.5**0.5])


def test_rare_words_draw_it_further_than_common_ones() -> None:
    plain = vectors([0.0, 0.0, 1.0])[0]

    vector = emphasised(plain, vectors([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), np.array([6.0, 0.5]))

    assert vector[0] > 10 * vector[1] > 0


def test_a_question_without_tokens_keeps_its_vector() -> None:
    plain = vectors([0.6, 0.8])[0]

    assert emphasised(plain, np.zeros((0, 0), np.float32), np.ones(0)).tolist() == plain.tolist()


@given(st.lists(st.floats(0, 20), min_size=3, max_size=3))
def test_the_length_is_one_whatever_the_weights(weights: list[float]) -> None:
    tokens = vectors([1.0, 2.0], [0.5, 0.0], [3.0, 1.0])

    vector = emphasised(vectors([0.6, 0.8])[0], tokens, np.array(weights))

    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)
