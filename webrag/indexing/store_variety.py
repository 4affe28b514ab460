"""Maximal marginal relevance over vectors. Does no I/O.

LlamaIndex's own function compares a candidate with the previous choice only, so the third choice
may repeat the first.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["select_varied"]


def select_varied(
    query: NDArray[np.float64], vectors: NDArray[np.float64], limit: int, *, threshold: float
) -> list[tuple[int, float]]:
    """Choose vectors that are near the query and unlike each other.

    Args:
        query: Shape (dimensions,).
        vectors: Shape (candidates, dimensions); a zero vector is similar to nothing.
        limit: Choices at most.
        threshold: 0 to 1; 1 is nearness alone, 0 variety alone.

    Returns:
        Row and score of each choice in the order chosen. The score is `threshold` times the
        cosine with the query, less `1 - threshold` times the largest cosine with earlier choices.
    """
    rows = _normalised(vectors)
    relevance = rows @ _normalised(query[None])[0]
    overlap = np.zeros(len(rows))
    is_free = np.ones(len(rows), bool)
    chosen: list[tuple[int, float]] = []
    for _ in range(min(limit, len(rows))):
        scores = threshold * relevance - (1.0 - threshold) * overlap
        best = int(np.argmax(np.where(is_free, scores, -np.inf)))
        chosen.append((best, float(scores[best])))
        is_free[best] = False
        cosines = rows @ rows[best]
        overlap = cosines if len(chosen) == 1 else np.maximum(overlap, cosines)
    return chosen


def _normalised(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = np.divide(
        vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0
    )
    return scaled
