"""Compares texts by the bundled static embedding; it ranks nothing."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Meaning", "TextEncoder"]

_REMEMBERED = 2_048


class TextEncoder(Protocol):
    """Gives a text's vector at once, on this machine."""

    def get_text_embedding(self, text: str) -> Sequence[float]:
        """The vector of a text."""


class Meaning:
    """Similarity of texts; safe to share between threads.

    Args:
        encoder: Any quick one.
    """

    def __init__(self, encoder: TextEncoder) -> None:
        @lru_cache(maxsize=_REMEMBERED)
        def vector(text: str) -> NDArray[np.float64]:
            return np.asarray(encoder.get_text_embedding(text), dtype=np.float64)

        self._vector = vector

    def similarity(self, left: str, right: str) -> float:
        """Cosine of two texts, [-1, 1]; 0 when one has no word the encoder knows."""
        one, other = self._vector(left), self._vector(right)
        norm = float(np.linalg.norm(one) * np.linalg.norm(other))
        return float(one @ other) / norm if norm else 0.0
