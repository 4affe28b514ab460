"""Leads from places in a stored text to lines of the file it was made of; reads nothing."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from webrag.ingestion.models import Anchor

_NOT_WORDS = re.compile(r"[\W_]+")
# Where links lead, and the roles of words: in the source, and in no stored text.
_UNSEEN = re.compile(
    r":(?:[a-z]{1,20}+:){1,3}+(?=`)|\b(?:man|link[a-z]{1,20}+):(?=[\w.+-]{1,100}+\[\d)|"
    r"\]\([^)\s]{0,1000}+(?:\s[^)]{0,500}+)?\)|\]\[[^\]]{0,500}+\]|<https?:[^>]{0,1000}+>"
)
# Letters and digits of a line that are looked for: all of it first, then its beginning.
_WHOLE, _BEGINNING = 32, 12
# How far ahead: a chapter for words that stand only once, some lines for those that do not. Few
# words found far ahead are mostly another place's, and all between would lead nowhere.
_FAR, _NEAR = 20_000, 400
# Shorter beginnings of lines stand anywhere; so many in a row that are not found end a paragraph.
_LEAST, _MISSES = 4, 3


def line_anchors(source: str, text: str) -> tuple[Anchor, ...]:
    """Anchors `L<number>` for the lines of a text that is stored in its source's order.

    A place without one of its own counts on from the last anchor before it, one for each line end
    between them, so text that was taken over as it is needs a single anchor; a paragraph that was
    wrapped has one for each line that it was wrapped in. What is not found in the source, such as
    a heading made of a title, gets none.
    """
    lines = _Lines([_words(_UNSEEN.sub("]", line)) for line in source.splitlines()])
    anchors: list[Anchor] = []
    offset = expected = 0
    for line in text.split("\n"):
        for place, number in lines.of(line):
            if number != expected or place:
                anchors.append(Anchor(char_start=offset + place, fragment=f"L{number}"))
            expected = number
        offset += len(line) + 1
        expected += 1
    return tuple(anchors)


class _Lines:
    """The letters and digits of a source, walked through from its beginning."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._joined = "".join(words)
        self._starts = [0, *accumulate(map(len, words))]
        self._at = 0

    def of(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield the place in a stored line where each line of the source begins, and its number."""
        words = _words(line)
        found = _find(self._joined, words, self._at)
        if found is None:
            return
        start, self._at = found
        number = bisect_right(self._starts, start)
        yield 0, number
        if number < len(self._words) and self._starts[number] < start + len(words):
            yield from self._wrapped(line, words, number)

    def _wrapped(self, line: str, words: str, number: int) -> Iterator[tuple[int, int]]:
        places = [place for place, char in enumerate(line) for _ in _words(char)]
        if len(places) != len(words):
            return
        done = missed = 0
        while number < len(self._words) and done < len(words) and missed < _MISSES:
            wanted = self._words[number][:_WHOLE]
            at = words.find(wanted, done, done + _NEAR) if len(wanted) >= _LEAST else -1
            missed += at < 0
            number += 1
            if at >= 0:
                missed, done = 0, at + len(wanted)
                self._at = self._starts[number - 1] + len(wanted)
                yield places[at], number


def _find(joined: str, words: str, at: int) -> tuple[int, int] | None:
    for length in (_WHOLE, _BEGINNING):
        wanted = words[:length]
        if not wanted:
            return None
        reach = _FAR if len(wanted) == _WHOLE else _NEAR
        found = joined.find(wanted, at, at + reach)
        if found >= 0:
            return found, found + len(wanted)
    return None


def _words(line: str) -> str:
    return _NOT_WORDS.sub("", line.casefold())
