"""Loads cross-encoders of this process, from packages that are installed on request."""

import logging
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.postprocessor.webrag.cross_encoder_scoring import (
    CrossEncoderScorer,
    PairScorer,
    seconds_per_pair,
)

from webrag.embedding.bundled_model import BundledModel
from webrag.settings.model import COMBINATIONS
from webrag.settings.values import LOCAL_RERANKER_MODEL
from webrag.wiring.local_embeddings import (
    Kind,
    choose_local,
    loading,
    locate,
    quiet_fastembed,
    quiet_reading,
)
from webrag.wiring.rerankers import local_scorer

if TYPE_CHECKING:
    from llama_index.postprocessor.webrag.local_scoring import LocalScorer

    from webrag.settings import Settings

_log = logging.getLogger(__name__)


_KIND = Kind(
    "cross-encoder", "RERANKER_MODEL", LOCAL_RERANKER_MODEL, "RERANKER_PROVIDER=local needs none."
)


def load_cross_encoder(settings: "Settings", first: "LocalScorer") -> CrossEncoderScorer:
    """Load the cross-encoder that the settings name, and measure how fast it is here.

    Takes seconds and, where its weights are not on this machine, a download: call this off the
    event loop. The local scorer says which passages are read first.
    """
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
    return model == LOCAL_RERANKER_MODEL or _fastembed_lists(model)


def _fastembed_lists(model: str) -> bool:
    try:
        listed = import_module("fastembed.rerank.cross_encoder").TextCrossEncoder
    except ImportError:
        return False
    return any(model.lower() == each["model"].lower() for each in listed.list_supported_models())


def _by_fastembed(model: str, folder: Path) -> PairScorer:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    from webrag.embedding.local import announce_download, register_cross_encoder

    # It would report every model it opens to its maker, through whatever proxy there is.
    import_module("onnxruntime").disable_telemetry_events()
    own: dict[str, Any] = {}
    if Path(model).is_absolute():
        own = {"specific_model_path": register_cross_encoder(Path(model))}
    else:
        announce_download(model, TextCrossEncoder.list_supported_models(), folder)
    with quiet_fastembed():
        loaded = TextCrossEncoder(model, cache_dir=str(folder), **own)

    def score(question: str, passages: Sequence[str]) -> Sequence[float]:
        return list(loaded.rerank(question, passages))

    return score


def _by_sentence_transformers(model: str, folder: Path) -> PairScorer:
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


def download_models(name: str, settings: "Settings") -> None:
    """Load the models of a combination, which downloads what is not on this machine."""
    chosen = COMBINATIONS[name]
    if chosen.embedding is not None:
        choose_local(settings, "fastembed", chosen.embedding.name, None).load()
    if chosen.reranker is not None:
        own = settings.model_copy(update={"reranker_model": chosen.reranker.name})
        load_cross_encoder(own, local_scorer(BundledModel()))
