"""Runs any embedding model in batches, and checks the vectors.

Also what is known of models without asking for them.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from webrag.concurrency import Threads, all_of, in_background
from webrag.errors import InputError, ProviderError, WebRAGError
from webrag.instrumentation import span, tell_embedded
from webrag.redaction import redacted_failure, remember_key, safe_cause

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    from webrag.embedding.bundled_model import BundledModel

# Models without a way of waiting: calls to services among them, which can take minutes.
_MODELS = Threads("webrag-model", 4)


@dataclass(frozen=True)
class EmbeddingLimits:
    """Limits of one call of a model, in size and time; None means no limit.

    Of texts a call never holds more than the model's own `embed_batch_size`; `text_tokens` are
    those of one text. A time counts the model's own retries; a question has the shorter of the two.
    """

    texts: int | None = None
    tokens: int | None = None
    text_tokens: int | None = None
    concurrency: int = 4
    timeout_s: float = 60.0
    query_timeout_s: float = 60.0


def plan_batches(
    sizes: Sequence[int], *, most_texts: int, most_tokens: int | None = None
) -> Iterator[slice]:
    """Divide texts, by their tokens, into few calls; one of too many is a call of its own."""
    start = tokens = 0
    for end, size in enumerate(sizes):
        over = most_tokens is not None and tokens + size > most_tokens
        if end > start and (over or end - start == most_texts):
            yield slice(start, end)
            start, tokens = end, 0
        tokens += size
    if start < len(sizes):
        yield slice(start, len(sizes))


Vector = NDArray[np.float32]
_Vectors = Sequence[Sequence[float]] | NDArray[np.float32]
_PLAIN_WORD = "water"
# A key, an address, a limit of calls, a gateway: nothing that a text has to do with.
_OF_THE_SERVICE = frozenset({401, 402, 403, 404, 408, 409, 425, 429, 502, 503, 504})


EmbeddingModel: TypeAlias = Union["BaseEmbedding", "BundledModel"]


class Embedder:
    """Embeds texts with one model; safe to share between tasks.

    Models without an async implementation of their own run in a thread. Tokens are counted as the
    model does, or more, where a limit is in tokens.
    """

    def __init__(
        self,
        model: EmbeddingModel,
        dimensions: int,
        *,
        limits: EmbeddingLimits = EmbeddingLimits(),
        count_tokens: Callable[[str], int] | None = None,
    ) -> None:
        self.model = model
        remember_key(model)
        self.dimensions = dimensions
        self._limits = limits
        self._batch_size = min(limits.texts or model.embed_batch_size, model.embed_batch_size)
        has_limit = limits.tokens is not None or limits.text_tokens is not None
        self._count_tokens = count_tokens if has_limit else None
        self._embed: Callable[[list[str]], Awaitable[_Vectors]] = (
            model.aget_text_embedding_batch
            if _embeds_batches_async(model)
            else lambda texts: _MODELS.run(model.get_text_embedding_batch, texts)
        )

    @property
    def model_name(self) -> str:
        """Name the model gives itself."""
        return self.model.model_name

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts, as an array of shape (len(texts), dimensions) in their order.

        A text that is too long for the model is an InputError; a call that fails, takes too long or
        gives anything else than finite vectors of the right number and size a ProviderError.
        """
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        sizes = await self._sizes(texts)
        slots = asyncio.Semaphore(self._limits.concurrency)

        async def embed(batch: list[str]) -> NDArray[np.float32]:
            async with slots:
                call = partial(self._embed, batch)
                return await self._checked(call, len(batch), self._limits.timeout_s)

        plan = plan_batches(sizes, most_texts=self._batch_size, most_tokens=self._limits.tokens)
        batches = [list(texts[part]) for part in plan]
        return np.concatenate(await all_of(embed(batch) for batch in batches))

    async def embed_what_it_takes(
        self, texts: Sequence[str]
    ) -> list[NDArray[np.float32] | WebRAGError]:
        """Embed texts, or say why the model refuses one; ProviderError where it takes none."""
        try:
            return list(await self.embed_documents(texts))
        except InputError as error:
            failure: WebRAGError = error
        except ProviderError as error:
            if error.status in _OF_THE_SERVICE or not await self._is_well():
                raise
            failure = error
        if len(texts) == 1:
            return [failure]
        middle = len(texts) // 2
        first = await self.embed_what_it_takes(texts[:middle])
        return first + await self.embed_what_it_takes(texts[middle:])

    async def _is_well(self) -> bool:
        try:
            await self.embed_documents([_PLAIN_WORD])
        except ProviderError:
            return False
        return True

    @span
    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question, as an array of shape (dimensions,)."""
        await self._sizes([text])

        async def embed() -> _Vectors:
            return np.asarray([await self.model.aget_query_embedding(text)], np.float32)

        timeout_s = min(self._limits.timeout_s, self._limits.query_timeout_s)
        vector: Vector = (await self._checked(embed, 1, timeout_s))[0]
        tell_embedded(self.model, self.model_name, text, vector.tolist())
        return vector

    async def _sizes(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text; zeros where no limit asks for them."""
        count = self._count_tokens
        if count is None:
            return [0] * len(texts)
        sizes = await in_background(lambda: [count(text) for text in texts])
        most = self._limits.text_tokens
        if most is not None and max(sizes) > most:
            raise InputError(
                f"A text of {max(sizes)} tokens cannot be embedded; the model {self.model_name}"
                f" takes {most} at most."
            )
        return sizes

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


def _embeds_batches_async(model: EmbeddingModel) -> bool:
    """Tell whether a model embeds several texts by asynchronous code of its own.

    LlamaIndex's default runs the sync one on the event loop, or one call for each text.
    """
    if not hasattr(model, "_aget_text_embeddings"):
        return True  # none of LlamaIndex's
    from llama_index.core.base.embeddings.base import BaseEmbedding

    def overrides(name: str) -> bool:
        return getattr(type(model), name) is not getattr(BaseEmbedding, name)

    return overrides("_aget_text_embeddings") or (
        overrides("_aget_text_embedding") and not overrides("_get_text_embeddings")
    )


# Vector sizes of models that are asked for by name, so that a corpus is created without a request.
_OPENAI = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_OPEN_WEIGHTS = {  # by lower case
    "all-minilm-l12-v2": 384,
    "all-minilm-l6-v2": 384,
    "all-minilm": 384,
    "all-mpnet-base-v2": 768,
    "bge-base-en-v1.5": 768,
    "bge-large-en-v1.5": 1024,
    "bge-m3": 1024,
    "bge-small-en-v1.5": 384,
    "e5-large-v2": 1024,
    "gte-large": 1024,
    "multilingual-e5-large": 1024,
    "multilingual-e5-small": 384,
    "mxbai-embed-large": 1024,
    "mxbai-embed-large-v1": 1024,
    "nomic-embed-text": 768,
    "nomic-embed-text-v1.5": 768,
    "paraphrase-multilingual-minilm-l12-v2": 384,
    "snowflake-arctic-embed": 1024,
}

_SEARCH_EN = "Represent this sentence for searching relevant passages: "
# What model cards want before a question and before a passage.
_PREFIXES = {
    r"(multilingual-)?e5-(small|base|large)(-v2)?": ("query: ", "passage: "),
    r"bge-(small|base|large)-en(-v1\.5)?": (_SEARCH_EN, ""),
    r"bge-(small|base|large)-zh(-v1\.5)?": ("为这个句子生成表示以用于检索相关文章\uff1a", ""),
    r"mxbai-embed-large(-v1)?": (_SEARCH_EN, ""),
    r"nomic-embed-text(-v1(\.5)?)?(-q)?": ("search_query: ", "search_document: "),
    r"snowflake-arctic-embed(-(xs|s|m|m-long|l))?(-v1\.5)?": (_SEARCH_EN, ""),
}

# OpenAI takes 2,048 texts, 300,000 tokens and 8,192 a text; fewer make a retry cheaper.
OPENAI_LIMITS = EmbeddingLimits(texts=512, tokens=250_000, text_tokens=8_000)
# What the strictest of the common servers (TEI) takes by default.
SERVER_LIMITS = EmbeddingLimits(texts=32, tokens=16_000)


@dataclass(frozen=True)
class EmbeddingChoice:
    """An embedding model, by the name that a corpus records; loading it may take a download.

    Where that is costly, repeating it gives the same model.
    """

    name: str
    dimensions: int
    load: Callable[[], EmbeddingModel]
    limits: EmbeddingLimits = field(default=EmbeddingLimits())


def known_dimensions(model: str) -> int | None:
    """Vector size of a model by its name, with or without its owner and tag; None if unknown."""
    return _OPENAI.get(model) or _OPEN_WEIGHTS.get(_bare_name(model))


def is_on_disk(repository: str, folder: Path, weights: Sequence[str] = ("*.onnx",)) -> bool:
    """Tell whether the weights of a model have been downloaded."""
    # As the Hub's own package lays its cache out; a download that broke off left no network there.
    snapshots = folder / f"models--{repository.replace('/', '--')}" / "snapshots"
    return snapshots.is_dir() and any(any(snapshots.rglob(each)) for each in weights)


def download_notice(
    model: str, folder: Path, *, size_bytes: float | None, licence: str | None
) -> str:
    """Give the notice before a model is downloaded."""
    size = "of unknown size" if size_bytes is None else f"about {size_bytes / 1e6:.0f} MB"
    return (
        f"Downloading the model {model} once: {size}, licence {licence or 'unknown'}, kept in"
        f" {folder}."
    )


def known_prefixes(model: str, own: Mapping[str, str]) -> tuple[str, str]:
    """Give what a model wants before a question and a passage, by its prompts or its name."""
    query = own.get("query", "")
    text = own.get("document", "") or own.get("passage", "")
    if query or text:
        return query, text
    name = _bare_name(model)
    found = (words for pattern, words in _PREFIXES.items() if re.fullmatch(pattern, name))
    return next(found, ("", ""))


def saved_prefixes(model: str, saved: str | None) -> tuple[str, str]:
    """As `known_prefixes`, by what sentence-transformers saved; ValueError for what is no JSON."""
    settings = json.loads(saved) if saved else None
    prompts = settings.get("prompts") if isinstance(settings, dict) else None
    if not isinstance(prompts, dict):
        return known_prefixes(model, {})
    return known_prefixes(
        model, {key: words for key, words in prompts.items() if isinstance(words, str)}
    )


def _bare_name(model: str) -> str:
    """A model's name without its owner or folder, of Windows too, and without its tag."""
    return re.split(r"[/\\]", model)[-1].partition(":")[0].lower()
