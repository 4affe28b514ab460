"""Finds the words two texts have in common, in order; long and repetitive ones stop nobody."""

from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import Final, Literal, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)

WordChange: TypeAlias = tuple[Literal["same", "removed", "added"], str]

# Of each text; rapidfuzz would keep a bit for every pair of more.
_MOST_COMPARED: Final = 2_000
# Pairs of equal words that are compared before another way is taken, some .05 s.
_MOST_PAIRS: Final = 500_000


def word_changes(old: str, new: str) -> tuple[WordChange, ...]:
    """Compare two texts word by word: what both have and what only one of them has, in order.

    Between the beginning and the end that both have, the first 2,000 words of each are compared;
    the others are all removed and added.
    """
    from rapidfuzz.distance import Postfix, Prefix

    first, second = old.split(), new.split()
    begin = Prefix.similarity(first, second)
    left, other_left = first[begin:], second[begin:]
    end = Postfix.similarity(left, other_left)
    between = matching_runs(
        left[: len(left) - end][:_MOST_COMPARED],
        other_left[: len(other_left) - end][:_MOST_COMPARED],
        most_pairs=_MOST_PAIRS,
    )
    runs = [
        Match(0, 0, begin),
        *(Match(begin + run.a, begin + run.b, run.size) for run in between),
        Match(len(first) - end, len(second) - end, end),
    ]
    parts: list[WordChange] = []
    done = other_done = 0
    for run in runs:
        pieces: tuple[WordChange, ...] = (
            ("removed", " ".join(first[done : run.a])),
            ("added", " ".join(second[other_done : run.b])),
            ("same", " ".join(first[run.a : run.a + run.size])),
        )
        parts += (piece for piece in pieces if piece[1])
        done, other_done = run.a + run.size, run.b + run.size
    return tuple(parts)


def matching_runs(first: Sequence[T], second: Sequence[T], *, most_pairs: int) -> list[Match]:
    """Find runs of words, or of numbers for them, that both sequences have, in order.

    The longest come first up to so many pairs of equal words; beyond, their length is no matter.
    """
    try:
        blocks = _Matcher(first, second, most_pairs).get_matching_blocks()
    except _TooRepetitiveError:
        from rapidfuzz.distance import LCSseq

        common = LCSseq.editops(first, second).as_matching_blocks()
        blocks = [Match(block.a, block.b, block.size) for block in common]
    return [block for block in blocks if block.size]


class _TooRepetitiveError(Exception):
    """Comparing runs of equal words would take too long."""


class _Matcher(SequenceMatcher[T]):
    """Finds the longest runs first; gives up where words repeat without end."""

    def __init__(self, first: Sequence[T], second: Sequence[T], most_pairs: int) -> None:
        super().__init__(None, first, second, autojunk=False)
        times = Counter(second)
        self._pairs = list(accumulate((1 + times[word] for word in first), initial=0))
        self._left = most_pairs

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        self._left -= self._pairs[-1 if ahi is None else ahi] - self._pairs[alo]
        if self._left < 0:
            raise _TooRepetitiveError
        return super().find_longest_match(alo, ahi, blo, bhi)
