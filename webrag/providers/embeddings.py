"""Chooses the embedding model of a corpus; it makes no request."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.base.embeddings.base import BaseEmbedding

    from webrag.indexing.bundled_embedding import BundledEmbedding
    from webrag.settings import Settings

__all__ = ["EmbeddingChoice", "choose_embedding"]

# Vector sizes of OpenAI's models, so that no request is needed to create a corpus.
_OPENAI_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_OPENAI_DEFAULT_MODEL = "text-embedding-3-small"


@dataclass(frozen=True)
class EmbeddingChoice:
    """An embedding model that has not been loaded yet.

    Attributes:
        name: What a corpus records, `provider/model`.
        dimensions: Vector size.
        load: Builds the model; may take a second, makes no request.
    """

    name: str
    dimensions: int
    load: "Callable[[], BaseEmbedding]"


def choose_embedding(
    settings: "Settings", existing: tuple[str, int] | None, bundled: "BundledEmbedding"
) -> EmbeddingChoice:
    """Choose the model a corpus is used with.

    Args:
        settings: `EMBEDDING_PROVIDER` and what belongs to it.
        existing: Model name and dimensions the corpus was made with; None for a new corpus.
        bundled: The model that needs nothing.

    Returns:
        With `auto`, the model of the existing corpus, or for a new one OpenAI's when a key is
        set, else the bundled one. Any other provider is taken as it is; whether it fits the
        corpus is checked when the schema is opened.

    Raises:
        ConfigurationError: The provider needs a setting that is missing.
    """
    provider: str = settings.embedding_provider
    if provider == "auto" and existing is not None:
        return _as_made(settings, existing, bundled)
    if provider == "auto":
        provider = "openai" if settings.openai_api_key is not None else "bundled"
    if provider == "bundled":
        return EmbeddingChoice(bundled.model_name, bundled.dimensions, lambda: bundled)
    return _served(settings, provider, settings.embedding_model or _OPENAI_DEFAULT_MODEL)


def _as_made(
    settings: "Settings", existing: tuple[str, int], bundled: "BundledEmbedding"
) -> EmbeddingChoice:
    """The model an existing corpus was made with, whatever a new one would get."""
    name, dimensions = existing
    if name == bundled.model_name:
        return EmbeddingChoice(name, dimensions, lambda: bundled)
    provider, _, model = name.partition("/")
    return _served(settings, provider, model, dimensions)


def _served(
    settings: "Settings", provider: str, model: str, dimensions: int | None = None
) -> EmbeddingChoice:
    """A model behind OpenAI's interface, with the corpus's dimensions where there is a corpus."""
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
    wanted = settings.embedding_dimensions
    size = dimensions or wanted or _OPENAI_DIMENSIONS.get(model)
    if size is None:
        raise ConfigurationError(
            f"The vector size of the model {model!r} is not known: set EMBEDDING_DIMENSIONS."
        )
    # Sent only where it differs from the model's own: many compatible servers refuse it.
    requested = size if wanted or _OPENAI_DIMENSIONS.get(model, size) != size else None

    def load() -> "BaseEmbedding":
        from llama_index.embeddings.openai import OpenAIEmbedding

        return OpenAIEmbedding(
            model_name=model,
            api_key=secret.get_secret_value() if secret else "none",
            api_base=settings.embedding_base_url,
            dimensions=requested,
            timeout=30.0,
            max_retries=2,
        )

    return EmbeddingChoice(f"{provider}/{model}", size, load)
