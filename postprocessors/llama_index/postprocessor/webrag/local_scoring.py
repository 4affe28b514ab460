"""Scores passages on this machine, by a small linear model or a cross-encoder that was loaded.

Imports nothing of LlamaIndex, which takes seconds; `local_rerank` has the same as postprocessors.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Protocol, runtime_checkable

import numpy as np
from llama_index.postprocessor.webrag.rerank_features import (
    FEATURES,
    FeatureExtractor,
    Passage,
)
from llama_index.postprocessor.webrag.wordings import AskedWording, wordings_score
from numpy.typing import NDArray


class LocalScorer(FeatureExtractor):
    """Scores passages as `LocalRerank` does; thread-safe; without an encoder by words alone."""

    def score_passages(
        self, passages: Sequence[Passage], wordings: Sequence[AskedWording]
    ) -> list[list[float]]:
        """For each wording of a question, itself among them, the score of every passage."""
        return [
            [calibrated(float(raw)) for raw in weighted_sum(features)]
            for features in self.features(wordings, passages)
        ]


def weighted_sum(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over the known features, scaled up by the weight of the unknown ones."""
    weights = np.array([_model()["weights"][name] for name in FEATURES])
    known = ~np.isnan(features)
    share = (known * weights).sum(axis=1) / weights.sum()
    sums: NDArray[np.float64] = np.where(known, features, 0.0) @ weights / share
    return sums


def calibrated(raw: float) -> float:
    """Map a weighted sum to (0, 1); see `docs/experiments.md` for how the curve was fitted."""
    curve = _model()["calibration"]
    return 1.0 / (1.0 + math.exp(-curve["slope"] * (raw - curve["centre"])))


@lru_cache(maxsize=1)
def _model() -> Mapping[str, Mapping[str, Any]]:
    text = files(__package__).joinpath("local_rerank.json").read_text("utf-8")
    model: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return model


PairScorer = Callable[[str, Sequence[str]], Sequence[float]]


@runtime_checkable
class PassageScorer(Protocol):
    """Scores passages on this machine under all wordings at once, as `LocalRerank` does.

    In calls of their own, several threads would wait for one interpreter.
    """

    def score_passages(
        self, passages: Sequence[Passage], wordings: Sequence[AskedWording]
    ) -> list[list[float]]:
        """For each wording of a question, itself among them, the score of every passage."""


# Fewer than a reader looks at are no ranking.
_LEAST = 5
# Pairs of one call; more make no call faster on a processor, and delay the look at the clock.
_BATCH = 8
# About as long as a chunk with its title: 250 tokens.
_TYPICAL = "The replica follows its primary and applies every change that the log records. " * 16


def seconds_per_pair(model: PairScorer, *, clock: Callable[[], float] = time.monotonic) -> float:
    """Measure the seconds of a question with one passage of usual length, on this machine now."""
    question = "What does a replica follow?"
    model(question, [_TYPICAL])  # what is only done once
    started = clock()
    model(question, [_TYPICAL] * _BATCH)
    return (clock() - started) / _BATCH


@dataclass(eq=False, repr=False)
class CrossEncoderScorer:
    """Scores passages with a cross-encoder, those first that another scorer likes best.

    As many are read as fit into `timeout_s`, all wordings together, at the measured `pair_s`
    seconds per pair of question and passage, and none after its end. The others follow below the
    worst that was read, in the order of `first`. Thread-safe where the model is.
    """

    model: PairScorer
    first: PassageScorer
    _: KW_ONLY
    pair_s: float
    timeout_s: float = 5.0
    name: str = "cross-encoder"
    clock: Callable[[], float] = time.monotonic

    @property
    def pairs(self) -> int:
        """Pairs of question and passage that fit into the time."""
        return int(self.timeout_s / max(self.pair_s, 1e-6))

    def score_passages(
        self, passages: Sequence[Passage], wordings: Sequence[AskedWording]
    ) -> list[list[float]]:
        """Score every passage, in [0, 1], under each wording of a question, itself among them.

        Where there is no time for five passages under all wordings, RerankTimeoutError.
        """
        ends = self.clock() + self.timeout_s
        cheap = self.first.score_passages(passages, wordings)
        order = sorted(
            range(len(passages)),
            key=lambda place: -wordings_score([scores[place] for scores in cheap]),
        )
        least = min(_LEAST, len(passages))
        fitting = order[: self.pairs // max(len(wordings), 1)]
        if len(fitting) < least:
            raise self._too_slow(len(fitting), len(passages))
        read = self._read(passages, wordings, fitting, ends)
        if len(read) < least:
            raise self._too_slow(len(read), len(passages))
        return [
            _completed(scores, {at: found[number] for at, found in read.items()})
            for number, scores in enumerate(cheap)
        ]

    def _read(
        self,
        passages: Sequence[Passage],
        wordings: Sequence[AskedWording],
        places: Sequence[int],
        ends: float,
    ) -> dict[int, list[float]]:
        """Place of a passage to its score under each wording, until the time is over."""
        read: dict[int, list[float]] = {}
        for start in range(0, len(places), _BATCH):
            batch = places[start : start + _BATCH]
            texts = [passages[place].context for place in batch]
            columns = []
            for each in wordings:
                if self.clock() >= ends:
                    return read
                columns.append([_logistic(value) for value in self.model(each.text, texts)])
            read.update(zip(batch, map(list, zip(*columns, strict=True)), strict=True))
        return read

    def _too_slow(self, fit: int, wanted: int) -> Exception:
        # It brings an HTTP client along, which nothing on this machine needs.
        from llama_index.postprocessor.webrag.rerank_service import RerankTimeoutError

        return RerankTimeoutError(
            f"{self.name} reads {fit} of {wanted} passages in {self.timeout_s:g} s, too few to"
            " rank by; raise its time or take a smaller model.",
            provider="cross_encoder",
        )


def _completed(cheap: Sequence[float], read: dict[int, float]) -> list[float]:
    """Scores of all: those that were not read lie below the worst that was, in their own order."""
    if not read:
        return list(cheap)
    floor = min(read.values())
    return [read.get(place, floor * score) for place, score in enumerate(cheap)]


def _logistic(value: float) -> float:
    if math.isnan(value):
        return math.nan  # which whoever ranks by it refuses
    return 0.5 * (1 + math.tanh(float(value) / 2))  # never overflows
