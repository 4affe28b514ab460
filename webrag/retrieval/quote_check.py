"""Looks a quotation up in a text: verbatim, displaced, reformatted or changed. No I/O here."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["MatchState", "QuoteMatch", "find_quote"]

MatchState = Literal["exact", "moved", "reformatted", "changed", "absent"]

# Two sentences about one thing share about half of their words; a corrected one shares more.
_LEAST_SIMILARITY = 0.6
_WORD = re.compile(r"\w+")
# Marks of Markdown, and what differs between a page and what is typed from it.
_IGNORED = frozenset("*_`\\#>|~\u00ad\u200b")
_TYPOGRAPHY = str.maketrans(
    "\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014",
    "\u0027\u0027\u0022\u0022----",
)


class QuoteMatch(BaseModel):
    """Where, and how well, a text holds a quotation.

    Attributes:
        state: `exact` the text holds it verbatim, at the place named if one was; `moved` verbatim,
            but elsewhere; `reformatted` the same words with other white space, markup or
            typographic signs; `changed` only a similar passage was found; `absent` not even that.
        text: What the text holds there, `text[char_start:char_end]`; None when absent.
        similarity: Share of words in common, [0, 1]; 1.0 unless changed or absent.
    """

    model_config = ConfigDict(frozen=True)

    state: MatchState
    text: str | None = None
    char_start: int | None = None
    char_end: int | None = None
    similarity: float = 1.0


def find_quote(text: str, quote: str, place: tuple[int, int] | None = None) -> QuoteMatch:
    """The best match of a quotation; of several verbatim ones, the nearest to its place.

    Linear in the length of the text.

    Args:
        text: What should hold the quotation, such as the stored markdown of a page.
        quote: What is claimed to be in it; not blank.
        place: Offsets between which it is claimed to stand; None for anywhere.
    """
    found = _nearest(_occurrences(text, quote), place)
    if found is not None:
        inside = place is None or (place[0] <= found and found + len(quote) <= place[1])
        return _match("exact" if inside else "moved", text, (found, found + len(quote)))
    span = _reformatted(text, quote, place)
    if span is not None:
        return _match("reformatted", text, span)
    similar = _most_similar(text, quote)
    if similar is None or similar[1] < _LEAST_SIMILARITY:
        return QuoteMatch(state="absent", similarity=similar[1] if similar else 0.0)
    return _match("changed", text, similar[0], similar[1])


def _match(
    state: MatchState, text: str, span: tuple[int, int], similarity: float = 1.0
) -> QuoteMatch:
    start, end = span
    return QuoteMatch(
        state=state,
        text=text[start:end],
        char_start=start,
        char_end=end,
        similarity=round(similarity, 3),
    )


def _occurrences(text: str, quote: str) -> Iterator[int]:
    start = text.find(quote)
    while start >= 0:
        yield start
        start = text.find(quote, start + 1)


def _nearest(starts: Iterator[int], place: tuple[int, int] | None) -> int | None:
    if place is None:
        return next(starts, None)
    return min(starts, key=lambda start: abs(start - place[0]), default=None)


def _reformatted(text: str, quote: str, place: tuple[int, int] | None) -> tuple[int, int] | None:
    wanted, _ = _essence(quote)
    if not wanted:
        return None
    held, offsets = _essence(text)
    near = None if place is None else (sum(offset < place[0] for offset in offsets), 0)
    start = _nearest(_occurrences(held, wanted), near)
    if start is None:
        return None
    return offsets[start], offsets[start + len(wanted) - 1] + 1


def _essence(text: str) -> tuple[str, list[int]]:
    """The characters that carry the wording, and the offset of each."""
    kept: list[str] = []
    offsets: list[int] = []
    for offset, char in enumerate(text):
        if char.isspace() or char in _IGNORED:
            continue
        if char < "\x80":
            kept.append(char)
            offsets.append(offset)
            continue
        for plain in unicodedata.normalize("NFKC", char).translate(_TYPOGRAPHY):
            kept.append(plain)
            offsets.append(offset)
    return "".join(kept), offsets


def _most_similar(text: str, quote: str) -> tuple[tuple[int, int], float] | None:
    """Span of the passage that shares most words with the quotation, and the share."""
    words = [match[0].casefold() for match in _WORD.finditer(quote)]
    places = [match.span() for match in _WORD.finditer(text)]
    held = [text[start:end].casefold() for start, end in places]
    if not words or not held:
        return None
    best = _fullest_window(held, words)
    # Additions make the passage longer than the quotation.
    low, high = max(0, best - len(words) // 2), min(len(held), best + 2 * len(words))
    blocks = SequenceMatcher(None, words, held[low:high], autojunk=False).get_matching_blocks()
    matched = [block for block in blocks if block.size]
    if not matched:
        return None
    first, last = low + matched[0].b, low + matched[-1].b + matched[-1].size - 1
    shared = sum(block.size for block in matched)
    span = (places[first][0], places[last][1])
    return span, 2 * shared / (len(words) + last - first + 1)


def _fullest_window(held: Sequence[str], words: Sequence[str]) -> int:
    """Start of the run of `len(words)` words that has most of them, each counted as often."""
    wanted = Counter(words)
    window: Counter[str] = Counter()
    best = best_start = shared = 0
    for end, word in enumerate(held):
        window[word] += 1
        shared += window[word] <= wanted[word]
        start = end - len(words)
        if start >= 0:
            left = held[start]
            shared -= window[left] <= wanted[left]
            window[left] -= 1
        if shared > best:
            best, best_start = shared, max(0, start + 1)
    return best_start
