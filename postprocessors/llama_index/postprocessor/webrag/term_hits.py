"""Finds the question's terms in a passage, and says what share of the question they are."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

__all__ = ["TermHits", "bigram_share", "coverage", "find_hits"]


class TermHits(NamedTuple):
    """Where a passage holds terms of the question.

    Attributes:
        terms: Those it holds anywhere.
        windows: Those that each of its windows holds.
        bigrams: Pairs that follow each other.
    """

    terms: frozenset[str]
    windows: tuple[frozenset[str], ...]
    bigrams: frozenset[tuple[str, str]]


def find_hits(
    terms: Sequence[str], window_starts: Sequence[int], wanted: frozenset[str]
) -> TermHits:
    """Find wanted terms.

    Args:
        terms: All terms of a passage, in order.
        window_starts: Ascending places in `terms`; what stands before the first is in no window.
        wanted: Terms of the question.
    """
    places = [place for place, term in enumerate(terms) if term in wanted]
    windows: list[set[str]] = [set() for _ in window_starts]
    for place in places:
        window = bisect_right(window_starts, place) - 1
        if window >= 0:
            windows[window].add(terms[place])
    return TermHits(
        frozenset(terms[place] for place in places),
        tuple(map(frozenset, windows)),
        frozenset((terms[a], terms[b]) for a, b in pairwise(places) if b == a + 1),
    )


def coverage(found: frozenset[str], weights: Mapping[str, float]) -> float:
    """Share of the weight of the question's terms that was found."""
    total = sum(weights.values()) if found else 0.0
    if total <= 0:
        return 0.0
    return sum(weight for term, weight in weights.items() if term in found) / total


def bigram_share(found: frozenset[tuple[str, str]], terms: Sequence[str]) -> float:
    """Share of the question's neighbouring terms that are neighbours in the passage."""
    wanted = list(pairwise(terms))
    return sum(pair in found for pair in wanted) / len(wanted) if wanted else 0.0
