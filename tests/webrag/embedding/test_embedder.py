import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from webrag.embedding.embedder import Embedder, EmbeddingLimits
from webrag.errors import InputError, ProviderError


class Remote(BaseEmbedding):
    """A service with an asynchronous client; what it answers is scripted."""

    answer: object = None
    _batches: list[list[str]] = PrivateAttr(default_factory=list)
    _running: int = PrivateAttr(default=0)
    _most: int = PrivateAttr(default=0)

    def _get_text_embedding(self, text: str) -> None:
        raise AssertionError(f"the synchronous client was used for {text}")

    def _get_query_embedding(self, query: Any) -> None:
        raise AssertionError(f"the synchronous client was used for {query}")

    async def _aget_query_embedding(self, query: Any) -> Any:
        await asyncio.sleep(0.005)
        return self._vectors([query])[0]

    async def _aget_text_embeddings(self, texts: Any) -> Any:
        self._batches.append(texts)
        self._running += 1
        self._most = max(self._most, self._running)
        await asyncio.sleep(0.005)
        self._running -= 1
        return self._vectors(texts)

    def _vectors(self, texts: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        return [[float(len(text)), 1.0] for text in texts]


class Blocking(BaseEmbedding):
    """A model that only has synchronous code of its own."""

    _threads: set[int] = PrivateAttr(default_factory=set)

    def _get_text_embedding(self, text: str) -> Any:
        self._threads.add(threading.get_ident())
        return [float(len(text)), 1.0]

    def _get_query_embedding(self, query: Any) -> Any:
        return [float(len(query)), 1.0]

    async def _aget_query_embedding(self, query: Any) -> Any:
        return self._get_query_embedding(query)


class OneByOneAsync(Blocking):
    """As LlamaIndex's local models: batches in synchronous code, async only for one text."""

    _sizes: list[int] = PrivateAttr(default_factory=list)

    def _get_text_embeddings(self, texts: Any) -> Any:
        self._sizes.append(len(texts))
        return [self._get_text_embedding(text) for text in texts]

    async def _aget_text_embedding(self, text: str) -> Any:
        raise AssertionError(f"{text} was embedded on its own")


class Refusal(Exception):
    status_code = 429


TEXTS = ["x" * n for n in range(1, 24)]


async def test_vectors_come_in_the_order_of_the_texts() -> None:
    vectors = await Embedder(Remote(embed_batch_size=4), 2).embed_documents(TEXTS)

    assert vectors[:, 0].tolist() == [float(n) for n in range(1, 24)]
    assert vectors.dtype == np.float32


async def test_batches_are_no_larger_than_allowed() -> None:
    model = Remote(embed_batch_size=10)

    await Embedder(model, 2, limits=EmbeddingLimits(texts=4)).embed_documents(TEXTS)

    assert [len(batch) for batch in model._batches] == [4, 4, 4, 4, 4, 3]


async def test_calls_under_way_are_limited() -> None:
    model = Remote(embed_batch_size=1)

    await Embedder(model, 2, limits=EmbeddingLimits(concurrency=3)).embed_documents(TEXTS)

    assert model._most == 3


async def test_no_texts_need_no_call() -> None:
    model = Remote()

    vectors = await Embedder(model, 2).embed_documents([])

    assert (vectors.shape, model._batches) == ((0, 2), [])


async def test_model_without_asynchronous_code_runs_in_a_thread() -> None:
    model = Blocking()

    await Embedder(model, 2).embed_documents(TEXTS)

    assert threading.get_ident() not in model._threads


async def test_batches_hold_no_more_tokens_than_allowed() -> None:
    model = Remote(embed_batch_size=100)
    limits = EmbeddingLimits(tokens=30)

    await Embedder(model, 2, limits=limits, count_tokens=len).embed_documents(TEXTS)

    assert max(sum(map(len, batch)) for batch in model._batches) <= 30
    assert [text for batch in model._batches for text in batch] == TEXTS


@pytest.mark.parametrize("ask", ["embed_documents", "embed_query"])
async def test_text_longer_than_the_model_takes_is_refused_before_a_call(ask: str) -> None:
    model = Remote(model_name="remote")
    embedder = Embedder(model, 2, limits=EmbeddingLimits(text_tokens=5), count_tokens=len)

    with pytest.raises(InputError, match=r"of 6 tokens cannot be embedded; .* takes 5 at most"):
        await getattr(embedder, ask)(["x" * 6] if ask == "embed_documents" else "x" * 6)

    assert model._batches == []


async def test_tokens_are_not_counted_without_a_limit() -> None:
    def count(text: str) -> int:
        raise AssertionError(f"the tokens of {text} were counted")

    assert len(await Embedder(Remote(), 2, count_tokens=count).embed_documents(TEXTS)) == 23


async def test_local_model_keeps_its_batches() -> None:
    model = OneByOneAsync(embed_batch_size=10)

    await Embedder(model, 2).embed_documents(TEXTS)

    assert sorted(model._sizes) == [3, 10, 10]


async def test_error_that_says_all_is_not_wrapped() -> None:
    error = ProviderError("The service is closed.", provider="remote")

    with pytest.raises(ProviderError) as raised:
        await Embedder(Remote(answer=error), 2).embed_documents(["a"])

    assert raised.value is error


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param([[1.0, 2.0]], "returned 1 vectors for 2 texts", id="count"),
        pytest.param([[1.0, 2.0], [1.0]], "returned vectors of 1 dimensions", id="dimensions"),
        pytest.param([[1.0, 2.0], [float("nan"), 1.0]], "not finite", id="nan"),
        pytest.param([[1.0, 2.0], [float("inf"), 1.0]], "not finite", id="infinite"),
        pytest.param(ValueError("no such model"), "failed: no such model", id="exception"),
    ],
)
async def test_unusable_answers_are_refused(answer: Any, message: Any) -> None:
    embedder = Embedder(Remote(model_name="remote", answer=answer), 2)

    with pytest.raises(ProviderError, match=message) as raised:
        await embedder.embed_documents(["a", "b"])

    assert raised.value.provider == "remote"


async def test_status_of_a_failed_call_is_kept() -> None:
    embedder = Embedder(Remote(answer=Refusal("slow down")), 2)

    with pytest.raises(ProviderError) as raised:
        await embedder.embed_query("question")

    assert raised.value.status == 429


async def test_limits_of_a_model_say_how_long_it_is_waited_for() -> None:
    embedder = Embedder(Remote(embed_batch_size=1), 2, limits=EmbeddingLimits(timeout_s=0.001))

    with pytest.raises(ProviderError, match=r"did not answer within 0\.001 s"):
        await embedder.embed_documents(TEXTS)


async def test_question_is_not_waited_for_as_long_as_a_batch() -> None:
    limits = EmbeddingLimits(timeout_s=600, query_timeout_s=0.001)
    embedder = Embedder(Remote(), 2, limits=limits)

    with pytest.raises(ProviderError, match=r"did not answer within 0\.001 s"):
        await embedder.embed_query("question")


async def test_question_gives_one_vector() -> None:
    vector = await Embedder(Remote(), 2).embed_query("four")

    assert vector.tolist() == [4.0, 1.0]
