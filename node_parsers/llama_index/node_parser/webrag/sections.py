"""Which stretches of a page become parents, from its headings and sizes alone."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from .segmentation import Piece, Segmenter

__all__ = ["plan_parents"]


def plan_parents(
    pieces: Sequence[Piece], segmenter: Segmenter, *, limit: int, lead: int
) -> list[list[Piece]]:
    """Group a page's pieces into parents.

    A section with all its subsections is one parent when it fits; otherwise its own text and its
    subsections are parents of their own. So no parent holds a heading of its own or a higher
    level, and an edit changes the parents of the sections around it only.

    Args:
        pieces: The whole page.
        segmenter: Cuts stretches that have no other boundaries into even groups.
        limit: Tokens of a parent at most.
        lead: Own text of a section up to this many tokens goes with its first subsection.
    """
    return list(_Planner(pieces, segmenter, limit, lead).plan())


class _Planner:
    def __init__(
        self, pieces: Sequence[Piece], segmenter: Segmenter, limit: int, lead: int
    ) -> None:
        self._pieces = pieces
        self._segmenter = segmenter
        self._limit = limit
        self._lead = lead
        self._sums = [0, *accumulate(piece.tokens for piece in pieces)]
        self._headings = [index for index, piece in enumerate(pieces) if piece.level]

    def plan(self) -> Iterator[list[Piece]]:
        count = len(self._pieces)
        first = self._headings[0] if self._headings else count
        if first:
            yield from self._split(0, first)
        for begin, end in self._sections(0, len(self._headings)):
            yield from self._section(self._headings[begin], begin, end)

    def _sections(self, first: int, after: int) -> list[tuple[int, int]]:
        """Sections, as ranges of heading numbers, none of which lies in another."""
        found: list[tuple[int, int]] = []
        begin = first
        for number in range(first + 1, after + 1):
            if number == after or self._level(number) <= self._level(begin):
                if begin < number:
                    found.append((begin, number))
                begin = number
        return found

    def _level(self, number: int) -> int:
        return self._pieces[self._headings[number]].level

    def _place(self, number: int) -> int:
        return self._headings[number] if number < len(self._headings) else len(self._pieces)

    def _section(self, start: int, first: int, after: int) -> Iterator[list[Piece]]:
        """Parents of the section of heading `first`, which begins with the lead at `start`."""
        end = self._place(after)
        if self._fits(start, end):
            yield list(self._pieces[start:end])
            return
        own_end = self._place(first + 1)
        inner = self._sections(first + 1, after) if first + 1 < after else []
        if inner and self._sums[own_end] - self._sums[start] <= self._lead:
            own_end = start
        else:
            yield from self._split(start, own_end)
        for number, (begin, stop) in enumerate(inner):
            place = own_end if number == 0 else self._place(begin)
            yield from self._section(place, begin, stop)

    def _fits(self, start: int, end: int) -> bool:
        if self._sums[end] - self._sums[start] > self._limit:
            return False
        return self._segmenter.fits(self._pieces[start:end], self._limit)

    def _split(self, start: int, end: int) -> list[list[Piece]]:
        return self._segmenter.split(self._pieces[start:end], self._limit)
