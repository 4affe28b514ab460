"""Chooses and loads the embedding model of a corpus, and the tokenizer that counts its tokens."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from webrag.embedding.bundled_model import BUNDLED_DIMENSIONS, BUNDLED_MODEL_NAME, BundledModel
from webrag.embedding.embedder import (
    OPENAI_LIMITS,
    SERVER_LIMITS,
    Embedder,
    EmbeddingChoice,
    EmbeddingModel,
    known_dimensions,
)
from webrag.errors import ConfigurationError
from webrag.process_pool.pool import token_tables
from webrag.redaction import redacted_failure
from webrag.settings.values import OPENAI_EMBEDDING_MODEL, OPENAI_URL
from webrag.settings.variables import lent
from webrag.wiring.local_embeddings import LOCAL_PROVIDERS, choose_local

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from pydantic import SecretStr
    from tiktoken import Encoding
    from tokenizers import Tokenizer

    from webrag.settings import Settings

Tokenize = Callable[[str], Sequence[Any]]
"""Text to tokens."""

# The encodings whose tables are installed with llama-index-core.
_INSTALLED = ("cl100k_base", "o200k_base")

_SERVED_PROVIDERS = frozenset({"openai", "openai_compatible"})


def choose_embedding(
    settings: "Settings",
    existing: tuple[str, int] | None,
    bundled: EmbeddingModel | None = None,
    own: "BaseEmbedding | None" = None,
) -> EmbeddingChoice:
    """Choose the model a corpus is used with: a program's own, or that of `EMBEDDING_PROVIDER`.

    There `auto` takes the model of the existing corpus, told by name and dimensions, or for a new
    one OpenAI's when a key is set, else the bundled one. Any other is taken as it is; whether it
    fits is checked when the schema is opened. A model of this process whose vector size nobody
    knows is loaded to learn it, which may take seconds and a download: call this off the event
    loop.
    """
    if own is not None:
        return _own(own, existing)
    if bundled is None:
        bundled = BundledModel()
    provider: str = settings.embedding_provider
    if provider == "auto" and existing is not None:
        return _as_made(settings, existing, bundled)
    if provider == "auto":
        provider = "openai" if settings.openai_api_key is not None else "bundled"
    if provider == "bundled":
        return _bundled(bundled)
    model = settings.embedding_model
    if provider in LOCAL_PROVIDERS:
        return choose_local(settings, provider, model, existing)
    return _served(settings, provider, model or OPENAI_EMBEDDING_MODEL)


async def load_embedder(
    settings: "Settings", choice: EmbeddingChoice, stack: AsyncExitStack
) -> tuple[Embedder, Tokenize]:
    """Load a chosen model, and the tokenizer that its requests are measured with.

    Connections of a service stay open until the stack is closed.
    """
    model = await asyncio.to_thread(choice.load)
    if isinstance(model, AbstractAsyncContextManager):
        await stack.enter_async_context(model)
    tokenize = await asyncio.to_thread(choose_tokenizer, settings)
    embedder = Embedder(
        model,
        choice.dimensions,
        limits=choice.limits,
        count_tokens=lambda text: len(tokenize(text)),
    )
    return embedder, tokenize


def as_llamaindex(model: EmbeddingModel) -> "BaseEmbedding":
    """The model of a corpus, as LlamaIndex takes it."""
    from llama_index.core.base.embeddings.base import BaseEmbedding

    from webrag.embedding.bundled import BundledEmbedding

    return model if isinstance(model, BaseEmbedding) else BundledEmbedding()


def _bundled(bundled: EmbeddingModel) -> EmbeddingChoice:
    return EmbeddingChoice(BUNDLED_MODEL_NAME, BUNDLED_DIMENSIONS, lambda: bundled)


def _own(model: "BaseEmbedding", existing: tuple[str, int] | None) -> EmbeddingChoice:
    """A program's own model, under the name of its class and its own."""
    name = f"{type(model).__name__}/{model.model_name}"
    if existing is not None and existing[0] == name:
        return EmbeddingChoice(*existing, lambda: model)
    try:
        size = len(model.get_query_embedding("dimensions"))
    except Exception as error:
        raise ConfigurationError(
            f"The embedding model {name!r} failed on its first text: "
            f"{redacted_failure(str(error)).rstrip('.')}."
        ) from error
    return EmbeddingChoice(name, size, lambda: model)


def _as_made(
    settings: "Settings", existing: tuple[str, int], bundled: EmbeddingModel
) -> EmbeddingChoice:
    """The model an existing corpus was made with, whatever a new one would get."""
    name, dimensions = existing
    if name == BUNDLED_MODEL_NAME:
        return _bundled(bundled)
    provider, _, model = name.partition("/")
    if model and provider in LOCAL_PROVIDERS:
        return choose_local(settings, provider, model, existing)
    if model and provider in _SERVED_PROVIDERS:
        return _served(settings, provider, model, dimensions)
    raise ConfigurationError(
        f"The collection was made with the embedding model {name!r}, and this WebRAG knows no such"
        " model.",
        hint="If a program made it with a model of its own, give it to WebRAG(embed_model=...). "
        "Else upgrade WebRAG, or set EMBEDDING_PROVIDER and run `webrag reindex`.",
    )


def _served(
    settings: "Settings", provider: str, model: str, dimensions: int | None = None
) -> EmbeddingChoice:
    """A model behind OpenAI's interface, with the corpus's dimensions where there is a corpus."""
    secret = _key(settings, provider, model)
    wanted, native = settings.embedding_dimensions, known_dimensions(model)
    size = dimensions or wanted or native
    if size is None:
        raise ConfigurationError(
            f"The vector size of the model {model!r} is not known: set EMBEDDING_DIMENSIONS."
        )
    # Sent only where it differs from the model's own: many compatible servers refuse it.
    requested = size if wanted or (native or size) != size else None
    is_openai = provider == "openai" and settings.embedding_base_url is None
    limits = OPENAI_LIMITS if is_openai else SERVER_LIMITS

    def load() -> "BaseEmbedding":
        from webrag.embedding.served import ServedEmbedding

        return ServedEmbedding(
            model,
            api_key=secret.get_secret_value() if secret else "none",
            # Given even so: LlamaIndex would take another one from the environment.
            api_base=settings.embedding_base_url or OPENAI_URL,
            dimensions=requested,
            embed_batch_size=limits.texts,
            as_base64=is_openai,
            proxy=settings.service_proxy,
        )

    return EmbeddingChoice(f"{provider}/{model}", size, load, limits)


def _key(settings: "Settings", provider: str, model: str) -> "SecretStr | None":
    secret = settings.embedding_api_key
    if provider == "openai":
        # Only OpenAI's own address gets OpenAI's key.
        secret = secret or (None if settings.embedding_base_url else settings.openai_api_key)
        if secret is None:
            raise ConfigurationError(
                "The OpenAI embedding needs a key: set OPENAI_API_KEY, or EMBEDDING_API_KEY for "
                "another address, or EMBEDDING_PROVIDER=bundled for a corpus made without one."
            )
    elif not settings.embedding_base_url:
        raise ConfigurationError(
            f"The embedding {provider}/{model} needs EMBEDDING_BASE_URL, "
            "for example http://127.0.0.1:11434/v1."
        )
    return secret


def choose_tokenizer(settings: "Settings") -> Tokenize:
    """The tokenizer of `embedding_tokenizer_kind` and `embedding_tokenizer_name`; blocks.

    It is safe to call from several threads, cuts no text off and adds no special tokens. One of
    tiktoken is loaded when it is first used, which takes a third of a second.
    """
    name = settings.embedding_tokenizer_name
    if settings.embedding_tokenizer_kind == "huggingface":
        loaded = _loaded(name)
        return lambda text: loaded.encode(text, add_special_tokens=False).ids
    if name not in _INSTALLED:
        raise ConfigurationError(
            f"embedding_tokenizer_name is {name!r}; allowed with tiktoken are"
            f" {' and '.join(_INSTALLED)}, which need no download.",
            hint="For a Hugging Face tokenizer set embedding_tokenizer_kind='huggingface'.",
        )
    return lambda text: _encoding(name).encode(text, allowed_special="all")


def portable_tokenizer(settings: "Settings") -> tuple[Literal["tiktoken", "huggingface"], str]:
    """The same tokenizer as text, for a process that reads no settings; blocks.

    Its kind, and an encoding's name or what a tokenizer of Hugging Face is saved as.
    """
    name = settings.embedding_tokenizer_name
    if settings.embedding_tokenizer_kind == "tiktoken":
        return "tiktoken", name
    return "huggingface", _loaded(name).to_str()


@cache
def _encoding(name: str) -> "Encoding":
    """An encoding of tiktoken, from the tables that are installed."""
    import tiktoken

    # A variable is the only way to tell it, which LlamaIndex uses, too.
    with lent(token_tables()):
        return tiktoken.get_encoding(name)


@cache
def _loaded(name: str) -> "Tokenizer":
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        loaded = (
            Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(name)
        )
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ConfigurationError(
            f"The tokenizer {name!r} cannot be loaded: {reason[:300]}.",
            hint="embedding_tokenizer_name is a tokenizer.json, its folder, or a name at the"
            " Hugging Face Hub, from where it is downloaded once.",
        ) from error
    loaded.no_truncation()  # else a long text counts as many tokens as the model takes
    loaded.no_padding()
    return loaded
