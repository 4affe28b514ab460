"""The ranking figures LlamaIndex also has, computed the same way; pure functions over ids."""

import math
from collections.abc import Collection, Sequence

__all__ = ["hit_rate", "ndcg", "reciprocal_rank"]


def hit_rate(expected: Collection[str], retrieved: Sequence[str]) -> float:
    """1.0 when anything expected was retrieved, else 0.0; LlamaIndex's `HitRate`."""
    return float(any(each in expected for each in retrieved))


def reciprocal_rank(expected: Collection[str], retrieved: Sequence[str]) -> float:
    """1 / place of the first expected id, 0.0 without one; LlamaIndex's `MRR` of one question."""
    ranks = (rank for rank, each in enumerate(retrieved, start=1) if each in expected)
    return 1.0 / next(ranks, math.inf)


def ndcg(expected: Collection[str], retrieved: Sequence[str]) -> float:
    """Discounted gain of the order divided by that of the best one; LlamaIndex's `NDCG`.

    Relevance is binary and the gain at place i is 1 / log2(i + 1), as in Järvelin and Kekäläinen
    (2002). Within [0, 1] as long as no expected id is retrieved twice.

    Args:
        expected: At least one id.
        retrieved: Best first.
    """
    gain = sum(_discount(i) for i, each in enumerate(retrieved, start=1) if each in expected)
    return gain / sum(_discount(i) for i in range(1, len(expected) + 1))


def _discount(place: int) -> float:
    return 1.0 / math.log2(place + 1)
