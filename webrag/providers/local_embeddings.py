"""Embedding models that run in this process, from packages that are installed on request."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webrag.errors import ConfigurationError
from webrag.indexing.embedding_batches import EmbeddingLimits
from webrag.providers.embedding_models import EmbeddingChoice, known_dimensions

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.base.embeddings.base import BaseEmbedding

    from webrag.settings import Settings

__all__ = ["LOCAL_PROVIDERS", "choose_local"]

DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"

# One call at a time: each uses all cores already.
_LIMITS = EmbeddingLimits(texts=32, concurrency=1)


def choose_local(
    settings: "Settings", provider: str, model: str | None, dimensions: int | None
) -> EmbeddingChoice:
    """A model of `LOCAL_PROVIDERS`.

    Args:
        settings: `WEBRAG_DATA_DIR`, where weights are kept, and `EMBEDDING_DIMENSIONS`.
        provider: One of `LOCAL_PROVIDERS`.
        model: Its name at the provider, or the folder it is in; None takes `DEFAULT_MODEL`.
        dimensions: Vector size where a corpus records it.

    Returns:
        The choice. The model is loaded, and its weights downloaded, only where nothing else
        tells its vector size.

    Raises:
        ConfigurationError: The extra is not installed, or the model cannot be loaded.
    """
    name = model or DEFAULT_MODEL
    source = _PROVIDERS[provider]
    folder = settings.data_dir / "models"
    load = functools.cache(lambda: _load(source, name, folder))
    size = dimensions or settings.embedding_dimensions or known_dimensions(name)
    if size is None:
        size = len(_measured(load, name))
    return EmbeddingChoice(f"{provider}/{name}", size, load, _LIMITS)


class _Source(NamedTuple):
    extra: str
    module: str
    build: "Callable[[str, Path], BaseEmbedding]"


def _load(source: _Source, model: str, folder: Path) -> "BaseEmbedding":
    try:
        return source.build(model, folder)
    except ImportError as error:
        raise ConfigurationError(
            f"EMBEDDING_PROVIDER={source.extra} needs packages that are not installed.",
            hint=f'Install them with `pip install "webrag[{source.extra}]"`.',
        ) from error
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ConfigurationError(
            f"The embedding model {model!r} cannot be loaded by {source.extra}: {reason[:300]}.",
            hint="Check EMBEDDING_MODEL. Weights are downloaded once, from the Hugging Face Hub,"
            f" and kept in {folder}.",
        ) from error


def _measured(load: "Callable[[], BaseEmbedding]", model: str) -> list[float]:
    loaded = load()
    try:
        return loaded.get_query_embedding("dimensions")
    except Exception as error:
        raise ConfigurationError(
            f"The embedding model {model!r} failed on its first text: {error}."
        ) from error


def _huggingface(model: str, folder: Path) -> "BaseEmbedding":
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    loaded: BaseEmbedding = HuggingFaceEmbedding(
        model_name=model, cache_folder=str(folder), embed_batch_size=_LIMITS.texts
    )
    return loaded


def _fastembed(model: str, folder: Path) -> "BaseEmbedding":
    import fastembed  # noqa: F401 - LlamaIndex's package does not require it
    from llama_index.embeddings.fastembed import FastEmbedEmbedding

    # By default the weights would be kept in a temporary folder.
    loaded: BaseEmbedding = FastEmbedEmbedding(model_name=model, cache_dir=str(folder))
    loaded.embed_batch_size = _LIMITS.texts or loaded.embed_batch_size
    return loaded


_PROVIDERS = {
    "fastembed": _Source("fastembed", "fastembed", _fastembed),
    "huggingface": _Source("huggingface", "sentence_transformers", _huggingface),
}
LOCAL_PROVIDERS = frozenset(_PROVIDERS)
