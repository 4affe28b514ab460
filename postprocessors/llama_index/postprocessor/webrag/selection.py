"""Decides for the filters, in plain functions of texts and numbers; it knows no nodes.

The packages of LlamaIndex take a second to load, and whoever has no nodes needs none of them.
"""

import re
from collections.abc import Collection, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

_WORD = re.compile(r"\w+")
_SHINGLE_WORDS = 3
_YEAR_S = 365.25 * 86_400

Shingles = frozenset[tuple[str, ...]]
T = TypeVar("T", bound=Hashable)


def shingles(text: str) -> Shingles:
    """Distinct word 3-grams, case folded; the whole text when it has fewer words."""
    words = _WORD.findall(text.casefold())
    if len(words) < _SHINGLE_WORDS:
        return frozenset([tuple(words)])
    return frozenset(zip(*(words[at:] for at in range(_SHINGLE_WORDS)), strict=False))


def jaccard(left: Shingles, right: Shingles) -> float:
    """Shared share of two sets, [0, 1]; 0.0 when both are empty."""
    shared = len(left & right)
    total = len(left) + len(right) - shared
    return shared / total if total else 0.0


def is_repetition(left: Shingles, right: Shingles, ceiling: float) -> bool:
    """Tell whether the likeness of two sets is above `ceiling`."""
    smaller, larger = sorted((len(left), len(right)))
    # Jaccard cannot exceed the ratio of the sizes, which spares most intersections.
    return smaller > ceiling * larger and jaccard(left, right) > ceiling


def choose_distinct(
    scores: Sequence[float],
    sets: Sequence[Shingles],
    *,
    ceiling: float,
    diversity: float = 0.0,
    top_n: int | None = None,
) -> list[int]:
    """Choose the places of texts that repeat none chosen before, by maximal marginal relevance.

    A text more alike than `ceiling` to a chosen one is a repetition. Equal scores, on any scale,
    keep their order; without `diversity`, the weight of being unlike what is chosen, it is that of
    the scores.
    """
    relevance = shares_of_range(scores)
    left = sorted(range(len(sets)), key=lambda at: -scores[at])
    nearest = dict.fromkeys(left, 0.0)
    chosen: list[int] = []

    def worth(at: int) -> float:
        return (1 - diversity) * relevance[at] - diversity * nearest[at]

    while left and (top_n is None or len(chosen) < top_n):
        best = max(left, key=worth)
        chosen.append(best)
        left = [
            at for at in left if at != best and not is_repetition(sets[at], sets[best], ceiling)
        ]
        if diversity:
            for at in left:
                nearest[at] = max(nearest[at], jaccard(sets[at], sets[best]))
    return chosen


def within_budget(sizes: Iterable[int], budget: int) -> int:
    """Count those that fit a budget together, from the first on; the first always does."""
    kept = spent = 0
    for size in sizes:
        spent += size
        if kept and spent > budget:
            break
        kept += 1
    return kept


def fill_budget(sizes: Iterable[int], budget: int) -> list[int]:
    """The places of what fits a budget; what is too long makes room for what comes later."""
    kept = []
    for place, size in enumerate(sizes):
        if size <= budget:
            budget -= size
            kept.append(place)
    return kept


def neighbours_in_order(ways: Iterable[Iterable[T]], matched: Collection[T]) -> list[T]:
    """Order the neighbours of matches, those of the best first, none twice and no match itself."""
    return list(dict.fromkeys(each for way in ways for each in way if each not in matched))


def depth_weight(depth: float, *, rate: float, floor: float) -> float:
    """Give the factor of a score, `depth` links away from where the search began."""
    return max(1.0 - depth * rate, floor)


def age_s(dated: datetime, now: datetime) -> float:
    """Seconds since a date, UTC where it names no zone; 0.0 for one in the future."""
    aware = dated if dated.tzinfo else dated.replace(tzinfo=UTC)
    return max((now - aware).total_seconds(), 0.0)


def age_years(dated: datetime, now: datetime) -> float:
    """`age_s` in years of 365.25 days."""
    return age_s(dated, now) / _YEAR_S


def shares_of_range(scores: Sequence[float]) -> list[float]:
    """Scores as shares of their range; 1.0 for all when they are equal."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]
