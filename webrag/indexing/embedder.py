"""Runs any LlamaIndex embedding model in batches and checks what it returns.

Chooses no model and stores nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from numpy.typing import NDArray

from webrag.concurrency import all_of
from webrag.errors import InputError, ProviderError, WebRAGError
from webrag.indexing.embedding_batches import EmbeddingLimits, plan_batches
from webrag.redaction import redacted_failure, remember_secrets, safe_cause

__all__ = ["Embedder"]

_Vectors = Sequence[Sequence[float]]


class Embedder:
    """Embeds texts with one model; safe to share between tasks.

    Models without an async implementation of their own run in a thread, so the event loop is
    never held up.

    Args:
        model: Any LlamaIndex embedding.
        dimensions: Vector size the corpus was made with.
        limits: What one call may hold.
        count_tokens: Counts as the model does, or more; needed where a limit is in tokens.
        timeout_s: Longest wait for one call, a question's too; None takes those of `limits`.
    """

    def __init__(
        self,
        model: BaseEmbedding,
        dimensions: int,
        *,
        limits: EmbeddingLimits = EmbeddingLimits(),  # noqa: B008 - frozen
        count_tokens: Callable[[str], int] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.model = model
        key: Any = getattr(model, "api_key", None)  # of a model that a program made itself
        remember_secrets(key if isinstance(key, str) else None)
        self.dimensions = dimensions
        self._limits = limits
        self._batch_size = min(limits.texts or model.embed_batch_size, model.embed_batch_size)
        self._count_tokens = count_tokens if limits.counts_tokens else None
        self._timeout_s = limits.timeout_s if timeout_s is None else timeout_s
        self._query_timeout_s = (
            min(limits.timeout_s, limits.query_timeout_s) if timeout_s is None else timeout_s
        )
        self._is_async_text = _embeds_batches_async(model)

    @property
    def model_name(self) -> str:
        """Name the model gives itself."""
        return self.model.model_name

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts, as an array of shape (len(texts), dimensions) in their order.

        Raises:
            InputError: A text is longer than the model takes; nothing was sent.
            ProviderError: A call failed or took too long, or the answer has the wrong number or
                size of vectors, or values that are not finite.
        """
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        sizes = await self._sizes(texts)
        slots = asyncio.Semaphore(self._limits.concurrency)

        async def embed(batch: list[str]) -> NDArray[np.float32]:
            async with slots:
                return await self._checked(
                    lambda: self._embed_batch(batch), len(batch), self._timeout_s
                )

        plan = plan_batches(sizes, most_texts=self._batch_size, most_tokens=self._limits.tokens)
        batches = [list(texts[part]) for part in plan]
        return np.concatenate(await all_of(embed(batch) for batch in batches))

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question, as an array of shape (dimensions,).

        Raises:
            ProviderError: As for `embed_documents`.
        """
        await self._sizes([text])

        async def embed() -> _Vectors:
            return [await self.model.aget_query_embedding(text)]

        vectors: NDArray[np.float32] = (await self._checked(embed, 1, self._query_timeout_s))[0]
        return vectors

    async def _sizes(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text; zeros where no limit asks for them."""
        count = self._count_tokens
        if count is None:
            return [0] * len(texts)
        sizes = await asyncio.to_thread(lambda: [count(text) for text in texts])
        most = self._limits.text_tokens
        if most is not None and max(sizes) > most:
            raise InputError(
                f"A text of {max(sizes)} tokens cannot be embedded; the model {self.model_name}"
                f" takes {most} at most."
            )
        return sizes

    async def _embed_batch(self, batch: list[str]) -> _Vectors:
        if self._is_async_text:
            return await self.model.aget_text_embedding_batch(batch)
        return await asyncio.to_thread(self.model.get_text_embedding_batch, batch)

    async def _checked(
        self, call: Callable[[], Awaitable[_Vectors]], expected: int, timeout_s: float
    ) -> NDArray[np.float32]:
        try:
            async with asyncio.timeout(timeout_s):
                vectors = await call()
        except TimeoutError as error:
            raise self._error(f"did not answer within {timeout_s:g} s") from error
        except WebRAGError:
            raise  # says all there is to say
        except Exception as error:  # noqa: BLE001 - foreign code
            status = getattr(error, "status_code", None)
            said = redacted_failure(str(error)) or type(error).__name__
            known = status if isinstance(status, int) else None
            raise self._error(f"failed: {said}", known) from safe_cause(error)
        return self._as_array(vectors, expected)

    def _as_array(self, vectors: _Vectors, expected: int) -> NDArray[np.float32]:
        if len(vectors) != expected:
            raise self._error(f"returned {len(vectors)} vectors for {expected} texts")
        wrong = next((len(v) for v in vectors if len(v) != self.dimensions), None)
        if wrong is not None:
            raise self._error(
                f"returned vectors of {wrong} dimensions, the corpus has {self.dimensions}"
            )
        array = np.asarray(vectors, np.float32)
        if not np.isfinite(array).all():
            raise self._error("returned values that are not finite numbers")
        return array

    def _error(self, what: str, status: int | None = None) -> ProviderError:
        return ProviderError(
            f"The embedding model {self.model_name} {what}.",
            provider=self.model_name,
            status=status,
            hint="Check EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_DIMENSIONS.",
        )


def _embeds_batches_async(model: BaseEmbedding) -> bool:
    """Whether the model's own asynchronous code is the way to embed several texts.

    LlamaIndex's default async methods run the sync ones on the event loop, or call the one for a
    single text once for each, which loses a local model's batching.
    """
    if _overrides(model, "_aget_text_embeddings"):
        return True
    return _overrides(model, "_aget_text_embedding") and not _overrides(
        model, "_get_text_embeddings"
    )


def _overrides(model: BaseEmbedding, name: str) -> bool:
    return getattr(type(model), name) is not getattr(BaseEmbedding, name)
