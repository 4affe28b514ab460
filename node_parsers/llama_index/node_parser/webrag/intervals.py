"""Sets of number ranges that answer whether a range touches them, in logarithmic time."""

from bisect import bisect_right
from collections.abc import Iterable

__all__ = ["Intervals"]


class Intervals:
    """Half-open ranges, in any order, overlapping or not; empty ones count as one number."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted((start, max(end, start + 1)) for start, end in ranges):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def touches(self, start: int, end: int) -> bool:
        """Whether any number of `start` to `end - 1` lies in one of the ranges."""
        at = bisect_right(self._ends, start)
        return at < len(self._starts) and self._starts[at] < end
