"""Leads from places in a stored text to lines of the file it was made of; reads nothing."""

import re
from bisect import bisect_right
from itertools import accumulate

from webrag.ingestion.models import Anchor

__all__ = ["line_anchors"]

_NOT_WORDS = re.compile(r"[\W_]+")
_LINK_TARGET = re.compile(r"\]\([^)\s]*(?:\s[^)]*)?\)|\]\[[^\]]*\]|<https?:[^>]*>")
# Letters and digits of a line that are looked for: all of it first, then its beginning.
_WHOLE, _BEGINNING = 32, 12
# How far ahead: a chapter for words that stand only once, some lines for those that do not.
_FAR, _NEAR = 20_000, 400


def line_anchors(source: str, text: str) -> tuple[Anchor, ...]:
    """Anchors `L<number>` for the lines of a text whose source is laid out differently.

    A line without one of its own counts on from the last anchor before it, one for each line end
    between them, so text that was taken over as it is needs a single anchor. What is not found
    in the source, such as a heading made of a title, gets none.

    Args:
        source: The file, with its markup.
        text: What is stored of it, in the same order.
    """
    words = [_words(_LINK_TARGET.sub("]", line)) for line in source.splitlines()]
    joined = "".join(words)
    starts = [0, *accumulate(map(len, words))]
    anchors: list[Anchor] = []
    at = offset = 0
    expected = -1
    for line in text.split("\n"):
        found = _find(joined, _words(line), at)
        if found is not None:
            at, end = found
            number = bisect_right(starts, at)
            if number != expected:
                anchors.append(Anchor(char_start=offset, fragment=f"L{number}"))
                expected = number
            at = end
        offset += len(line) + 1
        expected += expected >= 0
    return tuple(anchors)


def _find(joined: str, words: str, at: int) -> tuple[int, int] | None:
    for length in (_WHOLE, _BEGINNING):
        wanted = words[:length]
        if not wanted:
            return None
        reach = _FAR if len(wanted) >= _BEGINNING else _NEAR
        found = joined.find(wanted, at, at + reach)
        if found >= 0:
            return found, found + len(wanted)
    return None


def _words(line: str) -> str:
    return _NOT_WORDS.sub("", line.casefold())
