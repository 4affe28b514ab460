"""Merges the scores of the dense and the lexical leg; it does not fetch or drop candidates."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# The constant of reciprocal rank fusion as published; smaller values trust rank 1 more.
_RRF_CONSTANT = 60


def fuse_scores(
    lexical: Sequence[float] | NDArray[np.float64],
    similarity: Sequence[float] | NDArray[np.float64],
    page: Sequence[float] | NDArray[np.float64],
    *,
    lexical_weight: float = 0.4,
    page_weight: float = 0.2,
) -> NDArray[np.float64]:
    """One score per candidate from the values themselves, each divided by the best candidate's.

    A cosine is shifted by one first, so that its theoretical minimum becomes zero. The best
    possible score is `1 + page_weight`; the values compare within one call only.

    Args:
        lexical: BM25 of each candidate, >= 0.
        similarity: Cosine of each candidate, [-1, 1].
        page: BM25 of each candidate's page relative to the best page, [0, 1].
        lexical_weight: Share of BM25; the rest is dense.
        page_weight: Added share of the page.
    """
    dense = np.asarray(similarity, dtype=float) + 1.0
    return (
        lexical_weight * _relative(np.asarray(lexical, dtype=float))
        + (1.0 - lexical_weight) * _relative(dense)
        + page_weight * np.asarray(page, dtype=float)
    )


def fuse_ranks(
    lexical: Sequence[float] | NDArray[np.float64],
    similarity: Sequence[float] | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Reciprocal rank fusion: the sum of `1 / (60 + rank)` over both legs.

    Equal values share a rank. Candidates without any query term take no lexical share.
    """
    words = np.asarray(lexical, dtype=float)
    dense = np.asarray(similarity, dtype=float)
    lexical_share = np.where(words > 0, 1.0 / (_RRF_CONSTANT + _ranks(words)), 0.0)
    return lexical_share + 1.0 / (_RRF_CONSTANT + _ranks(dense))


def _relative(values: NDArray[np.float64]) -> NDArray[np.float64]:
    best = values.max() if len(values) else 0.0
    return values / best if best > 0 else np.zeros_like(values)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    better = len(values) - np.searchsorted(np.sort(values), values, side="right")
    return np.asarray(better + 1, dtype=np.float64)
