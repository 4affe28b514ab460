"""Likeness of two texts by the word triples they share; pure."""

import re

__all__ = ["Shingles", "is_repetition", "jaccard", "shingles"]

_WORD = re.compile(r"\w+")
_SHINGLE_WORDS = 3

Shingles = frozenset[tuple[str, ...]]


def shingles(text: str) -> Shingles:
    """Distinct word 3-grams, case folded; the whole text when it has fewer words."""
    words = _WORD.findall(text.casefold())
    count = max(len(words) - _SHINGLE_WORDS + 1, 1)
    return frozenset(tuple(words[at : at + _SHINGLE_WORDS]) for at in range(count))


def jaccard(left: Shingles, right: Shingles) -> float:
    """Shared share of two sets, [0, 1]; 0.0 when both are empty."""
    shared = len(left & right)
    total = len(left) + len(right) - shared
    return shared / total if total else 0.0


def is_repetition(left: Shingles, right: Shingles, ceiling: float) -> bool:
    """Whether the likeness of two sets is above `ceiling`."""
    smaller, larger = sorted((len(left), len(right)))
    # Jaccard cannot exceed the ratio of the sizes, which spares most intersections.
    return smaller > ceiling * larger and jaccard(left, right) > ceiling
