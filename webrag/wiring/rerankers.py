"""Chooses and loads the reranker, and the thresholds that fit its scores; it asks no service."""

import logging
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webrag.errors import ConfigurationError
from webrag.orchestration.confidence import PROFILES
from webrag.settings.values import LOCAL_RERANKER_MODEL
from webrag.wiring.local_embeddings import Kind, loading, locate, quiet_reading, silence_fastembed

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.postprocessor.webrag import RemoteRerank, TokenEncoder
    from llama_index.postprocessor.webrag.local_scoring import (
        CrossEncoderScorer,
        LocalScorer,
        PairScorer,
    )
    from pydantic import SecretStr

    from webrag.orchestration.models import ScoreProfile
    from webrag.settings import Settings

_log = logging.getLogger(__name__)

# In the order in which `auto` looks for their keys.
_RERANK_SERVICES = {
    "zeroentropy": "ZeroEntropyRerank",
    "cohere": "CohereRerank",
    "jina": "JinaRerank",
}


def choose_reranker(
    settings: "Settings",
    bundled: "TokenEncoder",
    own: "BaseNodePostprocessor | None" = None,
    own_profile: "ScoreProfile | str | None" = None,
) -> "tuple[BaseNodePostprocessor | CrossEncoderScorer | LocalScorer | None, ScoreProfile]":
    """Choose the reranker and the thresholds that fit its scores; None keeps retrieval's order.

    A program's own is used as it is, by default with the thresholds of cross-encoders. Of
    `RERANKER_PROVIDER`, `auto` takes the first of ZeroEntropy, Cohere and Jina whose key is set,
    else the local one, which looks words up in the bundled model; a service whose key is missing
    gives None, and none is asked. A cross-encoder is loaded, which may take seconds and a download:
    call this off the event loop. It and the local one are no postprocessors yet: LlamaIndex takes
    seconds to import.
    """
    if own is not None or own_profile is not None:
        return _own_rerank(own, own_profile)
    provider: str = settings.reranker_provider
    if provider == "auto":
        provider = next((name for name in _RERANK_SERVICES if _key(settings, name)), "local")
        _name_ignored(settings, provider)
    missing = missing_key(settings)
    if missing is not None:
        _log.warning("%s", missing)
        provider = "none"
    profile = PROFILES[provider]
    if provider == "none":
        return None, profile
    if provider == "local":
        return local_scorer(bundled), profile
    if provider == "cross_encoder":
        return load_cross_encoder(settings, local_scorer(bundled)), profile
    return _remote_rerank(settings, provider), profile


def missing_key(settings: "Settings") -> str | None:
    """The sentence for users of a rerank service that was chosen and has no key."""
    provider: str = settings.reranker_provider
    if provider not in _RERANK_SERVICES or _key(settings, provider) is not None:
        return None
    return (
        f"RERANKER_PROVIDER={provider} needs a key; passages keep the order of the search. Set "
        f"{provider.upper()}_API_KEY or RERANKER_API_KEY, or use RERANKER_PROVIDER=local, which "
        "needs none."
    )


def _own_rerank(
    own: "BaseNodePostprocessor | None", profile: "ScoreProfile | str | None"
) -> "tuple[BaseNodePostprocessor, ScoreProfile]":
    if own is None:
        raise ConfigurationError(
            "score_profile belongs to a reranker passed with it; pass reranker=... too."
        )
    if profile is not None and not isinstance(profile, str):
        return own, profile
    name = profile or "cross_encoder"
    if name not in PROFILES:
        raise ConfigurationError(
            f"There is no score profile {name!r}; there are {', '.join(sorted(PROFILES))}."
        )
    return own, PROFILES[name]


def _key(settings: "Settings", provider: str) -> "SecretStr | None":
    own: SecretStr | None = getattr(settings, f"{provider}_api_key")
    return (settings.reranker_api_key if settings.reranker_provider == provider else None) or own


def _name_ignored(settings: "Settings", provider: str) -> None:
    if settings.reranker_api_key is not None:
        _log.warning(
            "RERANKER_API_KEY is not used, because RERANKER_PROVIDER=auto names no provider for "
            "it; set RERANKER_PROVIDER to %s.",
            " or ".join(_RERANK_SERVICES),
        )
    if settings.reranker_model is not None and provider == "local":
        _log.warning("RERANKER_MODEL is not used, because the local reranker has one model.")


def choose_fallback(
    chosen: object, bundled: "TokenEncoder"
) -> "tuple[LocalScorer | None, ScoreProfile]":
    """Choose who ranks where the reranker fails, with thresholds; None for raw similarity."""
    from llama_index.postprocessor.webrag.local_scoring import CrossEncoderScorer

    if isinstance(chosen, CrossEncoderScorer):
        return local_scorer(bundled), PROFILES["local"]
    return None, PROFILES["none"]


def local_scorer(bundled: "TokenEncoder") -> "LocalScorer":
    """The local reranker, as the product uses it."""
    from llama_index.postprocessor.webrag.local_scoring import LocalScorer

    from webrag.lexical.analysis import analyze, query_terms

    return LocalScorer(bundled, analyze, query_terms)


def map_scorer(chosen: object, bundled: "TokenEncoder") -> "LocalScorer":
    """Choose who reads the texts in sites' own maps: on this machine, whatever ranks evidence.

    Sixty passages in every round would be paid for at a service, before any page is fetched.
    """
    from llama_index.postprocessor.webrag.local_scoring import LocalScorer

    return chosen if isinstance(chosen, LocalScorer) else local_scorer(bundled)


def as_postprocessor(
    chosen: "BaseNodePostprocessor | CrossEncoderScorer | LocalScorer | None",
) -> "BaseNodePostprocessor | None":
    """Give the chosen reranker as LlamaIndex takes it."""
    from llama_index.postprocessor.webrag.local_scoring import CrossEncoderScorer, LocalScorer

    if isinstance(chosen, CrossEncoderScorer):
        from llama_index.postprocessor.webrag import CrossEncoderRerank

        return CrossEncoderRerank(scorer=chosen)
    if not isinstance(chosen, LocalScorer):
        return chosen
    from llama_index.postprocessor.webrag import LocalRerank

    return LocalRerank(
        encoder=chosen.encoder, analyze=chosen.analyze, analyze_question=chosen.analyze_question
    )


def _remote_rerank(settings: "Settings", provider: str) -> "BaseNodePostprocessor":
    import llama_index.postprocessor.webrag as rerankers

    # Only the one that was chosen: the packages of the services take seconds to load.
    kind: Callable[..., RemoteRerank] = getattr(rerankers, _RERANK_SERVICES[provider])
    model = {} if settings.reranker_model is None else {"model": settings.reranker_model}
    return kind(api_key=_key(settings, provider), proxy=settings.service_proxy, **model)


_KIND = Kind(
    "cross-encoder", "RERANKER_MODEL", LOCAL_RERANKER_MODEL, "RERANKER_PROVIDER=local needs none."
)


def load_cross_encoder(settings: "Settings", first: "LocalScorer") -> "CrossEncoderScorer":
    """Load the cross-encoder that the settings name, and measure how fast it is here.

    Takes seconds and, where its weights are not on this machine, a download: call this off the
    event loop. The local scorer says which passages are read first.
    """
    from llama_index.postprocessor.webrag.local_scoring import CrossEncoderScorer, seconds_per_pair

    model = locate(settings.reranker_model or LOCAL_RERANKER_MODEL, _KIND)
    folder = settings.data_dir / "models"
    # Fastembed for networks in ONNX, which need no PyTorch; sentence-transformers for others.
    is_fastembeds = _is_fastembeds(model)
    extra = "fastembed" if is_fastembeds else "huggingface"
    with loading(_KIND, model, folder, extra=extra):
        score = (_by_fastembed if is_fastembeds else _by_sentence_transformers)(model, folder)
        pair_s = seconds_per_pair(score)
    scorer = CrossEncoderScorer(
        score, first, pair_s=pair_s, timeout_s=settings.reranker_timeout, name=model
    )
    _log.info(
        "The cross-encoder %s reads %d passages in reranker_timeout=%g s.",
        model,
        scorer.pairs,
        settings.reranker_timeout,
    )
    return scorer


def _is_fastembeds(model: str) -> bool:
    if Path(model).is_absolute():
        networks = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
        return any((Path(model) / each).is_file() for each in networks)
    try:
        listed = import_module("fastembed.rerank.cross_encoder").TextCrossEncoder
    except ImportError:
        return model == LOCAL_RERANKER_MODEL
    return any(model.lower() == each["model"].lower() for each in listed.list_supported_models())


def _by_fastembed(model: str, folder: Path) -> "PairScorer":
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    from webrag.embedding.local import announce_download, register_cross_encoder

    # It would report every model it opens to its maker, through whatever proxy there is.
    import_module("onnxruntime").disable_telemetry_events()
    own: dict[str, Any] = {}
    if Path(model).is_absolute():
        own = {"specific_model_path": register_cross_encoder(Path(model))}
    else:
        announce_download(model, TextCrossEncoder.list_supported_models(), folder)
    silence_fastembed()
    loaded = TextCrossEncoder(model, cache_dir=str(folder), **own)

    def score(question: str, passages: Sequence[str]) -> Sequence[float]:
        return list(loaded.rerank(question, passages))

    return score


def _by_sentence_transformers(model: str, folder: Path) -> "PairScorer":
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    from webrag.embedding.local import announce_hub_download

    if not Path(model).is_absolute():
        announce_hub_download(model, folder)
    with quiet_reading():
        loaded = CrossEncoder(model, cache_folder=str(folder), num_labels=1)

    def score(question: str, passages: Sequence[str]) -> Sequence[float]:
        # Some models bring a logistic function along, others none.
        found = loaded.predict(
            [(question, passage) for passage in passages],
            activation_fn=Identity(),
            show_progress_bar=False,
        )
        return [float(value) for value in found]

    return score
