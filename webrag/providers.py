"""Chooses page sources, embedding models and rerankers from the settings; it makes no request."""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError
from webrag.orchestration.score_profiles import profile_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.readers.base import BaseReader
    from llama_index.postprocessor.webrag import RemoteRerank
    from pydantic import SecretStr

    from webrag.indexing.bundled_embedding import BundledEmbedding
    from webrag.ingestion.models import PageSource, SiteMapper
    from webrag.orchestration.models import ScoreProfile
    from webrag.settings import Settings

__all__ = [
    "EmbeddingChoice",
    "PageSourceChoice",
    "choose_embedding",
    "choose_page_source",
    "choose_reranker",
]

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
class PageSourceChoice:
    """Where pages come from.

    Attributes:
        source: Asked for pages; whoever has it closes it.
        mapper: Names more pages of a site; None where nothing does. Closed with the source.
    """

    source: "PageSource"
    mapper: "SiteMapper | None" = None


def choose_page_source(
    settings: "Settings", builtin: "PageSource", own: "PageSource | BaseReader | None" = None
) -> PageSourceChoice:
    """Choose where pages come from.

    Args:
        settings: `FIRECRAWL_API_KEY` and `FIRECRAWL_API_URL`.
        builtin: The fetcher that needs nothing.
        own: What the program was given; a LlamaIndex reader is made a page source.

    Returns:
        What was given; else Firecrawl, with the built-in fetcher for when it cannot; else the
        built-in fetcher.
    """
    if own is not None:
        source = _as_page_source(settings, own)
        return PageSourceChoice(source, _as_mapper(source))
    config = settings.firecrawl_config()
    if config is None:
        return PageSourceChoice(builtin)
    from webrag.ingestion.fallback_source import FallbackSource
    from webrag.ingestion.firecrawl_source import FirecrawlSource

    firecrawl = FirecrawlSource(config)
    return PageSourceChoice(FallbackSource(firecrawl, builtin), firecrawl)


def _as_page_source(settings: "Settings", own: "PageSource | BaseReader") -> "PageSource":
    from llama_index.core.readers.base import BaseReader

    if not isinstance(own, BaseReader):
        return own
    from webrag.ingestion.reader_source import ReaderSource

    return ReaderSource(own, allowed_hosts=settings.allow_hosts)


def _as_mapper(source: "PageSource") -> "SiteMapper | None":
    from webrag.ingestion.models import SiteMapper

    return source if isinstance(source, SiteMapper) else None


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
