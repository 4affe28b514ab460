"""Scores passages with a small linear model, on this machine and without any download; pure.

Imports nothing of LlamaIndex, which takes seconds; `LocalRerank` is the same as a postprocessor.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from llama_index.postprocessor.webrag.rerank_features import (
    FEATURES,
    FeatureExtractor,
    Known,
    Passage,
    Question,
)
from llama_index.postprocessor.webrag.token_vectors import TokenEncoder
from llama_index.postprocessor.webrag.wordings import AskedWording
from numpy.typing import NDArray

_Analyze = Callable[[str], Sequence[str]]


class LocalScorer:
    """Scores passages as `LocalRerank` does; thread-safe.

    Args:
        encoder: Static embedding for the features of meaning; None leaves these out.
        analyze: Turns a text into terms, in order.
        analyze_question: Turns a question into the distinct terms that matter.
        cache_size: Passages remembered between calls.
    """

    def __init__(
        self,
        encoder: TokenEncoder | None,
        analyze: _Analyze,
        analyze_question: _Analyze,
        *,
        cache_size: int = 4096,
    ) -> None:
        self.encoder = encoder
        self.analyze = analyze
        self.analyze_question = analyze_question
        self._extractor = FeatureExtractor(analyze, encoder, cache_size)

    def features(
        self,
        asked: Sequence[tuple[str, Mapping[str, float] | None, Known]],
        passages: Sequence[Passage],
    ) -> list[NDArray[np.float64]]:
        """For each question (its text, weights of its terms, what is known) the features."""
        return self._extractor.extract_each(
            [
                (Question(text, tuple(dict.fromkeys(self.analyze_question(text))), idf), known)
                for text, idf, known in asked
            ],
            passages,
        )

    def score_passages(
        self, passages: Sequence[Passage], wordings: Sequence[AskedWording]
    ) -> list[list[float]]:
        """For each wording of a question, itself among them, the score of every passage."""
        asked = [
            (each.text, each.idf or None, Known(each.similarity, each.page_lexical))
            for each in wordings
        ]
        return [
            [calibrated(float(raw)) for raw in weighted_sum(features)]
            for features in self.features(asked, passages)
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
