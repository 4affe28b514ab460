"""Which part of a page's HTML a stretch of its markdown came from.

Compares visible text in page order; where the two do not clearly agree, there is no answer.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from .html_page import HtmlImage, HtmlPage, text_key
from .intervals import Intervals
from .metadata import FLAG_KEYS, Flag
from .outline import TextRun

__all__ = ["AlignedHtml"]

# Share of a stretch's letters that must have been found, and of foreign ones that may lie between.
_MIN_FOUND: Final = 0.8
_MAX_FOREIGN: Final = 0.1


class AlignedHtml:
    """A page's HTML, laid beside the text runs of its markdown.

    Args:
        html: Main content of the page.
        runs: Text runs of the markdown, in page order.
    """

    def __init__(self, html: str, runs: Sequence[TextRun]) -> None:
        self._page = HtmlPage(html)
        self._marks = {
            flag: Intervals((begin, end) for mark, begin, end in self._page.marks if mark == flag)
            for flag in FLAG_KEYS
        }
        self._runs = runs
        self._starts = [run.start for run in runs]
        self._keys = [text_key(run.text) for run in runs]
        self._match = _align(self._keys, self._page.keys)
        self._back = {there: here for here, there in self._match.items()}

    def locate(self, start: int, end: int) -> tuple[int, int] | None:
        """Range of HTML runs that a stretch of markdown came from; None when that is unsure."""
        here = range(bisect_left(self._starts, start), bisect_left(self._starts, end))
        size = sum(len(self._keys[number]) for number in here)
        found = [number for number in here if number in self._match]
        found_size = sum(len(self._keys[number]) for number in found)
        if not found or found_size < _MIN_FOUND * size:
            return None
        first, last = self._match[found[0]], self._match[found[-1]]
        between = sum(len(key) for key in self._page.keys[first : last + 1])
        if between - found_size > _MAX_FOREIGN * size + (size - found_size):
            return None
        return first, last + 1

    def snippet(self, first: int, after: int) -> str | None:
        """The HTML of a range of runs, whole elements where they lie in it entirely."""
        parts = self._page.render(first, after)
        return parts.strip() or None if parts is not None else None

    def flags(self, first: int, after: int) -> set[Flag]:
        """Kinds of rich content within a range of runs."""
        return {flag for flag, places in self._marks.items() if places.touches(first, after)}

    def images(self) -> Iterator[tuple[HtmlImage, int]]:
        """Images with the markdown offset they stand at; left out when that is unsure."""
        for image in self._page.images:
            before, next_run = self._back.get(image.run - 1), self._back.get(image.run)
            if before is not None:
                yield image, self._runs[before].end
            elif next_run is not None:
                yield image, self._runs[next_run].start


def _align(here: Sequence[str], there: Sequence[str]) -> dict[int, int]:
    """Pairs of equal runs in the same order: unique ones first, then their neighbours."""
    pairs: dict[int, int] = {}
    anchors = [(-1, -1), *_anchors(here, there), (len(here), len(there))]
    for (left, low), (right, high) in pairwise(anchors):
        if left >= 0:
            pairs[left] = low
        pairs.update(_walk(here, there, (left + 1, right), (low + 1, high)))
    return pairs


def _anchors(here: Sequence[str], there: Sequence[str]) -> list[tuple[int, int]]:
    counts_here, counts_there = Counter(here), Counter(there)
    places = {key: number for number, key in enumerate(there) if counts_there[key] == 1}
    pairs = [
        (number, places[key])
        for number, key in enumerate(here)
        if key and counts_here[key] == 1 and key in places
    ]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for number, (_, value) in enumerate(pairs):
        at = bisect_left(tails, value)
        previous.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [value]
        ends[at : at + 1] = [number]
    chain: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = previous[at]
    return chain[::-1]


def _walk(
    here: Sequence[str], there: Sequence[str], mine: tuple[int, int], theirs: tuple[int, int]
) -> Iterator[tuple[int, int]]:
    """Pair equal runs between two anchors, from the front and then from the back."""
    begin, end = mine
    low, high = theirs
    while begin < end and low < high and here[begin] == there[low]:
        yield begin, low
        begin, low = begin + 1, low + 1
    while begin < end and low < high and here[end - 1] == there[high - 1]:
        end, high = end - 1, high - 1
        yield end, high
