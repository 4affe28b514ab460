import asyncio
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.growth import processor_seconds
from webrag.embedding.bundled import BundledEmbedding


@pytest.fixture(scope="module")
def model() -> Any:
    return BundledEmbedding()


@given(st.lists(st.text(max_size=80), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_vectors_have_length_one_or_zero_and_are_finite(texts: Any) -> None:
    vectors = BundledEmbedding().encode(texts)

    norms = np.linalg.norm(vectors, axis=1)
    assert vectors.shape == (len(texts), 256)
    assert np.isfinite(vectors).all()
    assert all(abs(norm - 1) < 1e-5 or norm == 0 for norm in norms)


@pytest.mark.parametrize(
    ("word", "is_name"),
    [
        *((word, False) for word in ("place", "way", "kind", "Several", "otherwise")),
        *((word, True) for word in ("GPU", "kettle", "Wireshark", "server", "price", "Paris")),
    ],
)
def test_words_of_general_use_are_told_from_those_that_may_name_a_subject(
    model: BundledEmbedding, word: str, is_name: bool
) -> None:
    assert model.may_name(word) is is_name


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
def test_blank_text_gives_the_zero_vector(model: BundledEmbedding, blank: str) -> None:
    assert not np.any(model.encode([blank]))


def test_symbols_without_words_still_have_a_direction(model: BundledEmbedding) -> None:
    assert np.any(model.encode(["->"]))


def test_batch_gives_what_single_texts_give(model: BundledEmbedding) -> None:
    texts = [f"text number {n} about storage" for n in range(150)]

    assert np.allclose(model.encode(texts), [model.get_text_embedding(text) for text in texts])


def test_paraphrase_is_nearer_than_another_subject(model: BundledEmbedding) -> None:
    question, paraphrase, other = model.encode(
        ["undo a commit", "reverting earlier commits", "boiling pasta in water"]
    )

    assert question @ paraphrase > question @ other + 0.2


def test_punctuation_does_not_change_a_text_with_words(model: BundledEmbedding) -> None:
    one, two = model.encode(["storage of data", "storage of data !!! --- ..."])

    assert np.allclose(one, two, atol=1e-6)


def test_repeated_word_counts_by_its_logarithm(model: BundledEmbedding) -> None:
    tokens, vectors = model.token_vectors("data storage")
    assert tokens == ["data", "storage"]

    expected = vectors[0] * (1 + np.log(3)) + vectors[1]

    actual = model.encode(["data data data storage"])[0]
    assert np.allclose(actual, expected / np.linalg.norm(expected), atol=1e-5)


def test_token_vectors_are_distinct_and_alphanumeric(model: BundledEmbedding) -> None:
    tokens, vectors = model.token_vectors("data, data; ++ storage")

    assert tokens == ["data", "storage"]
    assert vectors.shape == (2, 256)


def test_token_vectors_of_a_text_without_words_are_empty(model: BundledEmbedding) -> None:
    tokens, vectors = model.token_vectors("-> ++")

    assert (tokens, vectors.shape) == ([], (0, 256))


def test_changing_token_vectors_does_not_change_the_model(model: BundledEmbedding) -> None:
    _, first = model.token_vectors("storage")
    first[:] = 0

    assert np.any(model.token_vectors("storage")[1])


async def test_asynchronous_methods_give_the_same_vectors(model: BundledEmbedding) -> None:
    texts = ["one text", "another text"]

    vectors = await model.aget_text_embedding_batch(texts)

    assert vectors == model.get_text_embedding_batch(texts)
    assert await model.aget_query_embedding("one text") == vectors[0]


async def test_event_loop_stays_free_while_a_batch_is_embedded(model: BundledEmbedding) -> None:
    texts = [f"{n} " + "words about storage and data " * 60 for n in range(600)]
    turns = 0
    batch = asyncio.create_task(model.aget_text_embedding_batch(texts))
    while not batch.done():
        await asyncio.sleep(0)
        turns += 1

    assert len(await batch) == 600
    assert turns > 50


def test_threads_that_load_it_together_get_the_same_vectors() -> None:
    code = (
        "import threading, numpy as np\n"
        "from webrag.embedding.bundled import BundledEmbedding\n"
        "found = []\n"
        "work = lambda: found.append(BundledEmbedding().encode(['storage of data']))\n"
        "threads = [threading.Thread(target=work) for _ in range(6)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "assert len(found) == 6 and all(np.array_equal(v, found[0]) for v in found)\n"
        "import sys; assert 'wordllama' not in sys.modules\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_name_and_size_are_known_before_the_weights_are_read(model: BundledEmbedding) -> None:
    assert (model.model_name, model.dimensions) == ("bundled/wordllama-256-logtf", 256)


def test_embedding_is_fast_enough_for_whole_sites(model: BundledEmbedding) -> None:
    texts = ["words about storage and data on servers " * 25] * 1000
    model.encode(texts[:1])

    assert processor_seconds(model.encode, texts) < 3


def test_many_threads_can_embed_at_once(model: BundledEmbedding) -> None:
    expected = model.encode(["storage of data"])
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(model.encode(["storage of data"])))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(np.array_equal(result, expected) for result in results)


def test_tokens_of_many_texts_are_those_of_each() -> None:
    model = BundledEmbedding()
    texts = ["storage of data", "", "-> ...", "data, data and Speicher"]

    vectors, tokens = model.encode_with_tokens(texts)

    assert np.array_equal(vectors, model.encode(texts))
    for text, own in zip(texts, tokens, strict=True):
        _, expected = model.token_vectors(text)
        assert sorted(model.vectors_of(own).tolist()) == sorted(expected.tolist())
