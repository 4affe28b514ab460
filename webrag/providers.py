"""Chooses embedding models and rerankers from the settings; it makes no request itself."""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError
from webrag.orchestration.score_profiles import profile_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.postprocessor.webrag import RemoteRerank
    from pydantic import SecretStr

    from webrag.indexing.bundled_embedding import BundledEmbedding
    from webrag.orchestration.models import ScoreProfile
    from webrag.settings import Settings

__all__ = ["EmbeddingChoice", "choose_embedding", "choose_reranker"]

_log = logging.getLogger(__name__)

# Vector sizes of OpenAI's models, so that no request is needed to create a corpus.
_OPENAI_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_OPENAI_DEFAULT_MODEL = "text-embedding-3-small"

# In the order in which `auto` looks for their keys.
_RERANK_SERVICES = ("zeroentropy", "cohere", "jina")


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
    if provider == "auto":
        provider = _automatic_provider(settings, existing)
    if provider == "bundled":
        return EmbeddingChoice(bundled.model_name, bundled.dimensions, lambda: bundled)
    if provider in ("openai", "openai_compatible"):
        return _openai(settings, provider)
    raise ConfigurationError(
        f"EMBEDDING_PROVIDER={provider} is not available in this version; "
        "use auto, bundled, openai or openai_compatible."
    )


def _automatic_provider(settings: "Settings", existing: tuple[str, int] | None) -> str:
    if existing is not None:
        return existing[0].split("/", 1)[0]
    return "openai" if settings.openai_api_key is not None else "bundled"


def _openai(settings: "Settings", provider: str) -> EmbeddingChoice:
    model = settings.embedding_model or _OPENAI_DEFAULT_MODEL
    secret = settings.embedding_api_key or settings.openai_api_key
    if secret is None and provider == "openai":
        raise ConfigurationError(
            "The OpenAI embedding needs a key: set OPENAI_API_KEY or EMBEDDING_API_KEY, "
            "or set EMBEDDING_PROVIDER=bundled for a corpus made without one."
        )
    if provider == "openai_compatible" and not settings.embedding_base_url:
        raise ConfigurationError(
            "EMBEDDING_PROVIDER=openai_compatible needs EMBEDDING_BASE_URL, "
            "for example http://127.0.0.1:11434/v1."
        )
    dimensions = settings.embedding_dimensions or _OPENAI_DIMENSIONS.get(model)
    if dimensions is None:
        raise ConfigurationError(
            f"The vector size of the model {model!r} is not known: set EMBEDDING_DIMENSIONS."
        )

    def load() -> "BaseEmbedding":
        from llama_index.embeddings.openai import OpenAIEmbedding

        return OpenAIEmbedding(
            model_name=model,
            api_key=secret.get_secret_value() if secret else "none",
            api_base=settings.embedding_base_url,
            dimensions=settings.embedding_dimensions,
            timeout=30.0,
            max_retries=2,
        )

    return EmbeddingChoice(f"{provider}/{model}", dimensions, load)


def choose_reranker(
    settings: "Settings", bundled: "BundledEmbedding"
) -> "tuple[BaseNodePostprocessor | None, ScoreProfile]":
    """Choose the reranker and the thresholds that fit its scores; None keeps retrieval's order.

    Args:
        settings: `RERANKER_PROVIDER` and what belongs to it.
        bundled: The model the local reranker looks words up in.

    Returns:
        With `auto`, the first of ZeroEntropy, Cohere and Jina whose key is set, else the local
        one. No request is made.

    Raises:
        ConfigurationError: The provider needs a key that is missing.
    """
    provider: str = settings.reranker_provider
    if provider == "auto":
        provider = next((name for name in _RERANK_SERVICES if _own_key(settings, name)), "local")
        _name_ignored(settings, provider)
    profile = profile_for(provider)
    if provider == "none":
        return None, profile
    if provider == "local":
        return _local_rerank(bundled), profile
    return _remote_rerank(settings, provider), profile


def _own_key(settings: "Settings", provider: str) -> "SecretStr | None":
    key: SecretStr | None = getattr(settings, f"{provider}_api_key")
    return key


def _name_ignored(settings: "Settings", provider: str) -> None:
    if settings.reranker_api_key is not None:
        _log.warning(
            "RERANKER_API_KEY is not used, because RERANKER_PROVIDER=auto names no provider for "
            "it; set RERANKER_PROVIDER to %s.",
            " or ".join(_RERANK_SERVICES),
        )
    if settings.reranker_model is not None and provider == "local":
        _log.warning("RERANKER_MODEL is not used, because the local reranker has one model.")


def _local_rerank(bundled: "BundledEmbedding") -> "BaseNodePostprocessor":
    from llama_index.postprocessor.webrag import LocalRerank

    from webrag.indexing.lexical import analyze, query_terms

    return LocalRerank(encoder=bundled, analyze=analyze, analyze_question=query_terms)


def _remote_rerank(settings: "Settings", provider: str) -> "BaseNodePostprocessor":
    from llama_index.postprocessor.webrag import CohereRerank, JinaRerank, ZeroEntropyRerank

    own = _own_key(settings, provider)
    key = (settings.reranker_api_key if settings.reranker_provider == provider else None) or own
    if key is None:
        raise ConfigurationError(
            f"RERANKER_PROVIDER={provider} needs a key: set {provider.upper()}_API_KEY or "
            "RERANKER_API_KEY, or use RERANKER_PROVIDER=local, which needs none."
        )
    kinds: dict[str, Callable[..., RemoteRerank]] = {
        "zeroentropy": ZeroEntropyRerank,
        "cohere": CohereRerank,
        "jina": JinaRerank,
    }
    model = {} if settings.reranker_model is None else {"model": settings.reranker_model}
    return kinds[provider](api_key=key, **model)
