"""Cutting a stretch of text into pieces of a wanted size at the least harmful places.

Works on any pieces with sizes and break costs; knows nothing about nodes or headings' meaning.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

from .outline import BreakCost, Piece

Tokenizer = Callable[[str], Sequence[Any]]

# Look-behinds keep runs of one character from being scanned once per character.
_SENTENCE_END: Final = re.compile(
    r"""(?<![.!?\u2026])[.!?\u2026]++["')\]\u00bb\u201d\u2019*_`]*+(?=\s+(?![a-z\s]))"""
    r"""|(?<![\u3002\uff01\uff1f])[\u3002\uff01\uff1f]++[\u300d\u300f\u201d\u2019]*+"""
    r"""|(?:(?<=\ \ )|(?<=\\))(?=\r?\n)"""
)
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|cf|vs|resp|approx|etc|no|fig|sec|eq|dr|mr|mrs|ms|prof|st)|\b[A-Z])\.$", re.I
)
_WORD: Final = re.compile(r"\S+")
# More candidates than this are thinned out, so that a page of one-word lines stays linear.
_MAX_CANDIDATES: Final = 128
# One unbroken run costs a BPE tokenizer more than linear time, and tiktoken's regular expression
# fails on very long white space. 4096 characters are harmless, and no word is that long.
_MAX_RUN: Final = 4096
_WIDE_SPACE: Final = re.compile(r"\s{64,}+")
_JOINERS: Final = "\u200d\ufe0f\ufe0e"


class TokenCounter:
    """Counts tokens with any tokenizer, in time linear in the text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        """Number of tokens of a text; exact unless it holds a run longer than 4096 characters."""
        if len(text) <= _MAX_RUN or _longest_run(text) <= _MAX_RUN:
            return len(self._tokenizer(text))
        parts = (text[at : at + _MAX_RUN] for at in range(0, len(text), _MAX_RUN))
        return sum(len(self._tokenizer(part)) for part in parts)


class Segmenter:
    """Cuts one text; sizes are tokens of that text."""

    def __init__(self, text: str, counter: TokenCounter) -> None:
        self._text = text
        self._counter = counter

    def split(self, pieces: Sequence[Piece], limit: int) -> list[list[Piece]]:
        """Group touching pieces, cutting those that are too large, into even groups covering them.

        Only a single character may have more tokens than `limit`.
        """
        fine = [part for piece in pieces for part in self._fit(piece, limit)]
        if limit <= 1:
            return [[piece] for piece in fine]
        groups: list[list[Piece]] = []
        starts = _cheapest_cuts(fine, limit)
        for first, after in zip(starts, [*starts[1:], len(fine)], strict=True):
            group = fine[first:after]
            excess = self._excess(group, limit)
            # Tokens of parts do not always add up to those of the whole: aim lower there.
            if excess and (len(group) > 1 or group[0].end - group[0].start > 1):
                groups += self.split(group, max(1, min(limit - excess, limit - 1)))
            else:
                groups.append(group)
        return groups

    def fits(self, pieces: Sequence[Piece], limit: int) -> bool:
        """Tell if the text of touching pieces has at most `limit` tokens."""
        return sum(piece.tokens for piece in pieces) <= limit and not self._excess(pieces, limit)

    def _excess(self, group: Sequence[Piece], limit: int) -> int:
        estimate = sum(piece.tokens for piece in group)
        if estimate < 0.9 * limit - 4:
            return 0
        start, end = trim(self._text, group[0].start, group[-1].end)
        return max(0, self._counter.count(self._text[start:end]) - limit)

    def _fit(self, piece: Piece, limit: int) -> Iterator[Piece]:
        """The piece itself, or its sentences, words or characters when it is over the limit."""
        if piece.tokens <= limit:
            yield piece
            return
        text = self._text[piece.start : piece.end]
        if self._counter.count(text.rstrip()) <= limit:
            yield piece
            return
        if piece.prose:
            ends = list(_sentence_ends(text))
            if len(ends) > 1:
                for part in self._parts(piece, ends, BreakCost.SENTENCE):
                    yield from self._fit(replace(part, prose=False), limit)
                return
        # A quarter of the limit: small enough to balance, and four bytes make a token at worst.
        yield from self._runs(piece, text, limit)

    def _runs(self, piece: Piece, text: str, limit: int) -> Iterator[Piece]:
        ends, mid_word = _run_ends(
            text,
            max(1, limit // 4),
            # Beyond four characters a token a word is cut unseen: counting it each time adds up.
            lambda word: len(word) <= 4 * limit and self._counter.count(word) <= limit,
        )
        for part in self._parts(piece, ends, BreakCost.WORD):
            if part.start - piece.start in mid_word:
                yield replace(part, cost=BreakCost.CHARACTER)
            else:
                yield part

    def _parts(self, piece: Piece, ends: Sequence[int], cost: float) -> Iterator[Piece]:
        begin = 0
        for number, end in enumerate(ends):
            part = self._text[piece.start + begin : piece.start + end]
            yield replace(
                piece,
                start=piece.start + begin,
                end=piece.start + end,
                tokens=self._counter.count(part),
                cost=cost if number else piece.cost,
                level=0 if number else piece.level,
            )
            begin = end


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without blank lines at its ends; the first line keeps its indentation."""
    content = text[start:end]
    stop = start + len(content.rstrip())
    first = end - len(content.lstrip())
    begin = first
    while begin > start and text[begin - 1] in " \t":
        begin -= 1
    at_line_start = begin == 0 or text[begin - 1] in "\r\n"
    return (begin if at_line_start else first), stop


def _sentence_ends(text: str) -> Iterator[int]:
    last = len(text.rstrip())
    previous = 0
    for match in _SENTENCE_END.finditer(text, 0, last):
        end = match.end()
        is_abbreviated = _ABBREVIATION.search(text[max(0, end - 8) : end])
        # A sentence that ends before a hard line break would leave a piece of its two spaces.
        if end >= last or not text[previous:end].strip() or is_abbreviated:
            continue
        yield end
        previous = end
    yield len(text)


def _run_ends(text: str, max_chars: int, fits: Callable[[str], bool]) -> tuple[list[int], set[int]]:
    """Ends of runs of words of about `max_chars`, and those starts that lie inside a word.

    Only words that do not fit are cut.
    """
    ends: list[int] = []
    inside: set[int] = set()
    begin = previous = 0
    for match in _WORD.finditer(text):
        if match.end() - begin > max_chars and previous > begin:
            ends.append(previous)
            begin = previous
        while match.end() - begin > max_chars and not fits(text[begin : match.end()].lstrip()):
            cut = _safe_cut(text, begin + max_chars, begin, match.end())
            if cut >= match.end():
                break
            ends.append(cut)
            inside.add(cut)
            begin = cut
        previous = match.end()
    if not ends or ends[-1] != previous:
        ends.append(previous)
    ends[-1] = len(text)
    return ends, inside


def _safe_cut(text: str, cut: int, begin: int, end: int) -> int:
    """The nearest place from `cut` on that is not inside a combined character.

    Gives up after 32 characters: text can be made of marks alone.
    """
    for place in range(cut, min(end, cut + 32)):
        after, before = text[place], text[place - 1]
        joined = (
            unicodedata.category(after)[0] == "M"
            or after in _JOINERS
            or before == "\u200d"
            or "\U0001f3fb" <= after <= "\U0001f3ff"
            or (before == "\r" and after == "\n")
        )
        if not joined and not text[begin:place].isspace():
            return place
    return cut if not text[begin:cut].isspace() else end


def _cheapest_cuts(pieces: Sequence[Piece], limit: int) -> list[int]:
    """Indexes of the pieces that groups start with: least break costs and unevenness."""
    firsts = _thin_out(pieces, limit)
    totals = [0, *accumulate(piece.tokens for piece in pieces)]
    sums = [totals[first] for first in (*firsts, len(pieces))]
    unevenness = _unevenness(limit)
    # What everything before a place costs when a group starts there.
    before = [0.0] * len(firsts)
    origin = [0] * (len(firsts) + 1)
    for after in range(1, len(firsts) + 1):
        end = sums[after]
        origin[after] = after - 1
        least = before[after - 1] + unevenness[min(end - sums[after - 1], limit)]
        for first in range(after - 2, -1, -1):
            size = end - sums[first]
            if size > limit:
                break
            total = before[first] + unevenness[size]
            if total < least:
                least, origin[after] = total, first
        if after < len(firsts):
            before[after] = least + pieces[firsts[after]].cost
    cuts: list[int] = []
    at = len(firsts)
    while at:
        at = origin[at]
        cuts.append(firsts[at])
    return cuts[::-1]


@lru_cache(maxsize=64)
def _unevenness(limit: int) -> list[float]:
    """Cost of a group by its size; the fourth power evens sizes out and makes leftovers dear."""
    return [(1 - size / limit) ** 4 for size in range(limit + 1)]


def _thin_out(pieces: Sequence[Piece], limit: int) -> list[int]:
    if len(pieces) <= _MAX_CANDIDATES:
        return list(range(len(pieces)))
    firsts: list[int] = []
    size = 0
    floor = limit // 64
    for index, piece in enumerate(pieces):
        if firsts and not piece.level and size + piece.tokens <= floor:
            size += piece.tokens
            continue
        firsts.append(index)
        size = piece.tokens
    return firsts


def _longest_run(text: str) -> int:
    word = max(map(len, text.split()), default=0)
    space = max((match.end() - match.start() for match in _WIDE_SPACE.finditer(text)), default=0)
    return max(word, space)
