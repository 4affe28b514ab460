"""Loads cross-encoders of this process, from packages that are installed on request."""

import logging
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.postprocessor.webrag.cross_encoder_scoring import (
    CrossEncoderScorer,
    PairScorer,
    seconds_per_pair,
)

from webrag.errors import ConfigurationError
from webrag.extras import how_to_install
from webrag.settings.values import LOCAL_RERANKER_MODEL
from webrag.wiring.local_embeddings import locate, quiet_fastembed, quiet_loggers, quiet_reading

if TYPE_CHECKING:
    from llama_index.postprocessor.webrag.local_scoring import LocalScorer

    from webrag.settings import Settings

_log = logging.getLogger(__name__)


class _Library(NamedTuple):
    extra: str
    load: "Callable[[str, Path], PairScorer]"


def load_cross_encoder(settings: "Settings", first: "LocalScorer") -> CrossEncoderScorer:
    """Load the cross-encoder that the settings name, and measure how fast it is here.

    Takes seconds and, where its weights are not on this machine, a download: call this off the
    event loop.

    Args:
        settings: `RERANKER_MODEL`, `reranker_timeout` and `WEBRAG_DATA_DIR`, where weights are
            kept.
        first: Says which passages are read first.

    Raises:
        ConfigurationError: The extra is not installed, the folder does not exist, or the model
            cannot be loaded or does not give one score for each pair.
    """
    model = locate(
        settings.reranker_model or LOCAL_RERANKER_MODEL,
        variable="RERANKER_MODEL",
        example=LOCAL_RERANKER_MODEL,
    )
    score = _load(model, settings.data_dir / "models")
    pair_s = _measured(score, model)
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


def _load(model: str, folder: Path) -> PairScorer:
    library = _library(model)
    try:
        with quiet_loggers():
            return library.load(model, folder)
    except ImportError as error:
        raise ConfigurationError(
            f"The cross-encoder {model!r} needs packages that are not installed.",
            hint=how_to_install(library.extra),
        ) from error
    except Exception as error:
        raise _unusable(model, error, folder) from error


def _measured(score: PairScorer, model: str) -> float:
    try:
        return seconds_per_pair(score)
    except Exception as error:
        raise _unusable(model, error) from error


def _unusable(model: str, error: Exception, folder: Path | None = None) -> ConfigurationError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    is_download = folder is not None and not Path(model).is_absolute()
    hint = (
        "Check RERANKER_MODEL and the network: weights are downloaded once, from the Hugging Face"
        f" Hub, and kept in {folder}. RERANKER_PROVIDER=local needs none."
        if is_download
        else "Check that RERANKER_MODEL names a cross-encoder with one score and holds all its"
        " files."
    )
    return ConfigurationError(
        f"The cross-encoder {model!r} cannot be used: {reason[:300]}.", hint=hint
    )


def _library(model: str) -> _Library:
    """Fastembed for networks in ONNX, which need no PyTorch; sentence-transformers for others."""
    if Path(model).is_absolute():
        networks = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
        is_fastembeds = any((Path(model) / each).is_file() for each in networks)
    else:
        is_fastembeds = model == LOCAL_RERANKER_MODEL or _fastembed_lists(model)
    return _FASTEMBED if is_fastembeds else _HUGGINGFACE


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


_FASTEMBED = _Library("fastembed", _by_fastembed)
_HUGGINGFACE = _Library("huggingface", _by_sentence_transformers)
