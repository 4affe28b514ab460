"""What is special about a stretch of a page: kinds of content, images, the HTML it came from.

Combines the markdown's own structure with the HTML, compared by visible text in page order; where
the two do not clearly agree, the HTML says nothing. Cuts nothing.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urljoin

from .html_page import HtmlImage, HtmlPage, text_key
from .metadata import FLAG_KEYS, LOSSY_FLAGS, Flag
from .outline import Image, Outline, TextRun

# HTML may hold an image in a stretch that has no text of its own; file names are no description.
_FILE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif")
# Longer words about an image describe no picture, and every one of them is embedded.
_MAX_WORDS_CHARS = 2_000
_MAX_IMAGE_TEXT_CHARS = 8_000
_MAX_IMAGES_CHARS = 200_000
# Snippets repeat the tags around them: more than this is markup that nobody reads twice.
_MOST_HTML = 2
_LEAST_HTML_CHARS = 1_000_000

# Share of the letters of a stretch that must have been found in the HTML,
# and of foreign ones that may lie between.
_MIN_FOUND: Final = 0.8
_MAX_FOREIGN: Final = 0.1


class Stretch:
    """Rich content of one range of the markdown.

    Attributes:
        flags: Every flag with its value.
        images: Images in page order, as plain dictionaries; those of a page of images, not all.
        image_text: Alternative texts and captions that the markdown itself does not show.
    """

    def __init__(self, flags: dict[str, bool], images: list[Image], text: str) -> None:
        self.flags = flags
        self.images: list[dict[str, Any]] = list(_described(images))
        words = dict.fromkeys(
            word for each in self.images for word in (each["alt"], each["caption"])
        )
        unseen = (word for word in words if _is_telling(word) and word not in text)
        self.image_text = ". ".join(_within(unseen, _MAX_IMAGE_TEXT_CHARS))

    @property
    def is_lossy(self) -> bool:
        """Whether markdown loses structure that HTML keeps."""
        return any(value and flag in LOSSY_FLAGS for flag, value in self.flags.items())


class RichContent:
    """Rich content of one page.

    Args:
        text: The markdown.
        outline: Its structure.
        html: The page's main content as HTML; None or empty when there is none.
        base_url: What relative image addresses of the HTML are resolved against.
    """

    def __init__(self, text: str, outline: Outline, html: str | None, base_url: str = "") -> None:
        self._text = text
        self._marks = {
            flag: Intervals((mark.start, mark.end) for mark in outline.marks if mark.flag == flag)
            for flag in FLAG_KEYS
        }
        self._aligned = AlignedHtml(html, outline.runs) if html else None
        self._images = self._all_images(outline, base_url)
        self._image_places = [image.position for image in self._images]
        self._html_left = _MOST_HTML * len(html or "") + _LEAST_HTML_CHARS

    def stretch(self, start: int, end: int, *, after: int) -> Stretch:
        """Rich content between two offsets.

        Args:
            start: First character.
            end: End of the text.
            after: Where the next stretch starts; images between `end` and it are this one's.
        """
        flags = {flag for flag, places in self._marks.items() if places.touches(start, end)}
        if self._aligned is not None:
            place = self._aligned.locate(start, end)
            flags |= self._aligned.flags(*place) if place else set()
        first = bisect_left(self._image_places, start)
        last = bisect_left(self._image_places, after)
        return Stretch(
            {flag: flag in flags for flag in FLAG_KEYS},
            self._images[first:last],
            self._text[start:end],
        )

    def html(self, start: int, end: int) -> str | None:
        """The HTML a stretch came from; None when that is unsure."""
        if self._aligned is None or self._html_left <= 0:
            return None
        place = self._aligned.locate(start, end)
        snippet = self._aligned.snippet(*place) if place else None
        self._html_left -= len(snippet or "")
        return snippet

    def _all_images(self, outline: Outline, base_url: str) -> list[Image]:
        images = list(outline.images)
        known = {urljoin(base_url, image.url) for image in images}
        if self._aligned is not None:
            for image, position in self._aligned.images():
                url = urljoin(base_url, image.url)
                if url not in known:
                    images.append(Image(url, image.alt, image.caption, position))
        return sorted(images, key=lambda image: image.position)


def _described(images: Iterable[Image]) -> Iterator[dict[str, Any]]:
    left = _MAX_IMAGES_CHARS
    for image in images:
        alt, caption = image.alt[:_MAX_WORDS_CHARS], image.caption[:_MAX_WORDS_CHARS]
        left -= len(alt) + len(caption) + len(image.url)
        if left < 0:
            return
        yield {"url": image.url, "alt": alt, "caption": caption, "position": image.position}


def _within(words: Iterable[str], most: int) -> Iterator[str]:
    for word in words:
        most -= len(word)
        if most < 0:
            return
        yield word


def _is_telling(words: str) -> bool:
    return len(words) > 2 and not words.lower().endswith(_FILE_ENDINGS)


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
