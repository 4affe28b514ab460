"""Which part of a page's HTML a stretch of its markdown came from.

Compares visible text in page order; where the two do not clearly agree, there is no answer.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from .blocks import TextRun
from .intervals import Intervals
from .metadata import FLAG_KEYS, Flag

__all__ = ["AlignedHtml", "HtmlImage"]

_NOT_WORD: Final = re.compile(r"[\W_]+")
_INLINE: Final = re.compile(
    r"a|abbr|acronym|b|bd[io]|big|br|cite|code|data|del|dfn|em|font|i|img|ins|kbd|label|mark|q|rp|rt"
    r"|ruby|s|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr"
    r"|math|m(?:[ions]|row|frac|sqrt|root|sup|sub|subsup|text|style|space)|semantics|annotation"
)
_SKIPPED: Final = frozenset(
    {"script", "style", "template", "noscript", "head", "svg", "iframe", "object", "-comment"}
)
_ADMONITION: Final = re.compile(
    r"(?:^|[\s_-])(?:admonition(?:block)?|alert|callout|note|tip|hint|important|warning|caution|"
    r"danger)(?:$|[\s_-])",
    re.I,
)
_MATH: Final = re.compile(r"(?:^|[\s_-])(?:math|katex|mathjax|latex)(?:$|[\s_-])", re.I)
# Deeper nesting is not a page's structure; serialising it would exhaust the stack.
_MAX_DEPTH: Final = 200
# Share of a stretch's letters that must have been found, and of foreign ones that may lie between.
_MIN_FOUND: Final = 0.8
_MAX_FOREIGN: Final = 0.1


@dataclass(slots=True)
class _Element:
    node: LexborNode
    tag: str
    first: int
    after: int = 0
    children: list["_Element"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HtmlImage:
    """An image of the HTML; `run` is the number of text runs that begin before it."""

    url: str
    alt: str
    caption: str
    run: int


class AlignedHtml:
    """A page's HTML, laid beside the text runs of its markdown.

    Args:
        html: Main content of the page.
        runs: Text runs of the markdown, in page order.
    """

    def __init__(self, html: str, runs: Sequence[TextRun]) -> None:
        self._page = _Page(html)
        self._marks = {
            flag: Intervals((begin, end) for mark, begin, end in self._page.marks if mark == flag)
            for flag in FLAG_KEYS
        }
        self._runs = runs
        self._starts = [run.start for run in runs]
        self._keys = [_key(run.text) for run in runs]
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


class _Page:
    """The element tree of a page with the text runs each element spans."""

    def __init__(self, html: str) -> None:
        self.keys: list[str] = []
        self.marks: list[tuple[Flag, int, int]] = []
        self.images: list[HtmlImage] = []
        self.root: _Element | None = None
        self._text: list[str] = []
        self._tree = LexborHTMLParser(html)
        body = self._tree.body
        if body is not None:
            self._read(body)

    def _read(self, body: LexborNode) -> None:
        self.root = _Element(body, "body", 0)
        path = [self.root]
        node = body.child
        while node is not None:
            tag = node.tag or ""
            if tag == "-text":
                self._add_text(node, path)
            elif tag not in _SKIPPED:
                element = self._enter(node, tag, path)
                if node.child is not None:
                    path.append(element)
                    node = node.child
                    continue
                self._leave(element)
            while node.next is None and len(path) > 1:
                element = path.pop()
                self._leave(element)
                node = element.node
            node = node.next
        self._flush()
        self.root.after = len(self.keys)

    def _add_text(self, node: LexborNode, path: Sequence[_Element]) -> None:
        text = node.text_content or ""
        element = _Element(node, "-text", len(self.keys))
        path[-1].children.append(element)
        # Code may be wrapped in a few levels of highlighting.
        if any(outer.tag == "pre" for outer in path[-6:]):
            for line in text.splitlines(keepends=True):
                self._text.append(line)
                if line.endswith(("\n", "\r")):
                    self._flush()
        else:
            self._text.append(text)
        element.after = len(self.keys) + (1 if self._has_text() else 0)

    def _has_text(self) -> bool:
        return any(not text.isspace() for text in self._text)

    def _enter(self, node: LexborNode, tag: str, path: Sequence[_Element]) -> _Element:
        if not _INLINE.fullmatch(tag):
            self._flush()
        element = _Element(node, tag, len(self.keys))
        path[-1].children.append(element)
        if tag == "br":
            self._text.append(" ")
        elif tag == "img":
            self._add_image(node)
        return element

    def _leave(self, element: _Element) -> None:
        if not _INLINE.fullmatch(element.tag):
            self._flush()
        # Text of the run being collected belongs to an inline element's own run.
        pending = _INLINE.fullmatch(element.tag) is not None and self._has_text()
        element.after = len(self.keys) + (1 if pending else 0)
        flag = _flag(element)
        if flag is not None:
            self.marks.append((flag, element.first, element.after))

    def _add_image(self, node: LexborNode) -> None:
        attributes = node.attributes
        url = attributes.get("src") or attributes.get("data-src") or ""
        if url and not url.startswith("data:"):
            alt = " ".join((attributes.get("alt") or "").split())
            run = len(self.keys) + (1 if self._has_text() else 0)
            self.images.append(HtmlImage(url, alt, _caption(node), run))

    def _flush(self) -> None:
        key = _key("".join(self._text))
        self._text = []
        if key:
            self.keys.append(key)

    def render(self, first: int, after: int) -> str | None:
        if self.root is None:
            return None
        parts: list[str] = []
        try:
            for child in _overlapping(self.root.children, first, after):
                _render(child, first, after, parts, _MAX_DEPTH)
        except RecursionError:
            return None
        return "".join(parts)


def _overlapping(children: Sequence[_Element], first: int, after: int) -> Iterator[_Element]:
    begin = bisect_right(children, first, key=lambda child: child.after)
    for child in children[begin:]:
        if child.first >= after:
            return
        yield child


def _render(element: _Element, first: int, after: int, parts: list[str], depth: int) -> None:
    if depth == 0:
        raise RecursionError
    inside = first <= element.first and element.after <= after
    if inside or not element.children:
        parts.append(element.node.html or "")
        return
    parts.append(_open_tag(element))
    for child in _overlapping(element.children, first, after):
        _render(child, first, after, parts, depth - 1)
    parts.append(f"</{element.tag}>")


def _open_tag(element: _Element) -> str:
    attributes = "".join(
        f' {name}="{escape(value or "")}"' for name, value in element.node.attributes.items()
    )
    return f"<{element.tag}{attributes}>"


def _flag(element: _Element) -> Flag | None:
    plain: dict[str, Flag] = {
        "pre": "has_code",
        "math": "has_math",
        "dl": "has_definition_list",
    }
    if element.tag in plain:
        return plain[element.tag]
    if element.tag == "ol":
        items = sum(child.tag == "li" for child in element.children)
        return "has_steps" if items > 1 else None
    attributes = element.node.attributes
    if element.tag == "table":
        return None if attributes.get("role") in ("presentation", "none") else "has_table"
    names = attributes.get("class") or ""
    if element.tag in ("div", "aside", "section", "blockquote") and _ADMONITION.search(names):
        return "has_admonition"
    return "has_math" if _MATH.search(names) else None


def _caption(node: LexborNode) -> str:
    parent = node.parent
    for _ in range(4):
        if parent is None:
            break
        if parent.tag == "figure":
            caption = parent.css_first("figcaption", default=None)
            return " ".join(caption.text().split()) if caption is not None else ""
        parent = parent.parent
    return " ".join((node.attributes.get("title") or "").split())


def _key(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _NOT_WORD.sub("", text.casefold())


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
