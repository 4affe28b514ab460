"""Tells of a stretch of a page its kinds of content, its images and the HTML it came from.

Combines the markdown's own structure with the HTML, compared by visible text in page order; where
the two do not clearly agree, the HTML says nothing. Cuts nothing.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Final, TypedDict
from urllib.parse import urljoin

from rapidfuzz.distance import LCSseq
from selectolax.lexbor import LexborHTMLParser, LexborNode

from .outline import FLAG_KEYS, LOSSY_FLAGS, Flag, Image, Outline, TextRun

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
# Pairs of runs, for each of which the alignment keeps a bit.
_MOST_COMPARED: Final = 400_000_000


class Stretch(TypedDict):
    """Rich content of one range of the markdown, as fields of a chunk.

    `image_text` holds alternative texts and captions that the markdown itself does not show,
    `html` what the range came from, where markdown loses structure that HTML keeps.
    """

    flags: dict[str, bool]
    images: list[dict[str, Any]]
    image_text: str
    html: str | None


class RichContent:
    """Rich content of one page, by its markdown's outline and its main content as HTML, if any."""

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

    def of(self, start: int, end: int, after: int, *, with_html: bool) -> Stretch:
        """Rich content between two offsets; images up to `after`, where the next starts, too."""
        flags = {flag for flag, places in self._marks.items() if places.touches(start, end)}
        html = None
        if self._aligned is not None and (place := self._aligned.locate(start, end)):
            flags |= self._aligned.flags(*place)
            if with_html and flags & LOSSY_FLAGS and self._html_left > 0:
                html = self._aligned.snippet(*place)
                self._html_left -= len(html or "")
        first = bisect_left(self._image_places, start)
        last = bisect_left(self._image_places, after)
        images = list(_described(self._images[first:last]))
        words = dict.fromkeys(word for each in images for word in (each["alt"], each["caption"]))
        unseen = (
            word
            for word in words
            if len(word) > 2
            and not word.lower().endswith(_FILE_ENDINGS)
            and word not in self._text[start:end]
        )
        return {
            "flags": {flag: flag in flags for flag in FLAG_KEYS},
            "images": images,
            "image_text": ". ".join(_within(unseen, _MAX_IMAGE_TEXT_CHARS)),
            "html": html,
        }

    def _all_images(self, outline: Outline, base_url: str) -> list[Image]:
        images = list(outline.images)
        known = {urljoin(base_url, image.url) for image in images}
        if self._aligned is not None:
            found = (
                replace(each, url=urljoin(base_url, each.url)) for each in self._aligned.images()
            )
            images += (each for each in found if each.url not in known)
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


class AlignedHtml:
    """A page's main content as HTML, laid beside the text runs of its markdown."""

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
        return (self._page.render(first, after) or "").strip() or None

    def flags(self, first: int, after: int) -> set[Flag]:
        """Kinds of rich content within a range of runs."""
        return {flag for flag, places in self._marks.items() if places.touches(first, after)}

    def images(self) -> Iterator[Image]:
        """Images at the markdown offset they stand at; left out when that is unsure."""
        for image in self._page.images:
            run = image.position
            if (before := self._back.get(run - 1)) is not None:
                yield replace(image, position=self._runs[before].end)
            elif (after := self._back.get(run)) is not None:
                yield replace(image, position=self._runs[after].start)


def _align(here: Sequence[str], there: Sequence[str]) -> dict[int, int]:
    """Pairs of equal runs, as many as go in the same order; none of pages that are too long."""
    pairs: dict[int, int] = {}
    if len(here) * len(there) <= _MOST_COMPARED:
        for part in LCSseq.opcodes(here, there):
            if part.tag == "equal":
                here_range = range(part.src_start, part.src_end)
                pairs.update(zip(here_range, range(part.dest_start, part.dest_end), strict=True))
    return pairs


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
        """Tell if any number of `start` to `end - 1` lies in one of the ranges."""
        at = bisect_right(self._ends, start)
        return at < len(self._starts) and self._starts[at] < end


_WORD: Final = re.compile(r"[^\W_]+")
_ASCII_MARKS: Final = {code: None for code in range(128) if not chr(code).isalnum()}
_INLINE: Final = frozenset(
    """a abbr acronym b bdi bdo big br cite code data del dfn em font i img ins kbd label mark q rp
    rt ruby s samp small span strike strong sub sup time tt u var wbr math""".split()  # noqa: SIM905
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
_FLAGS: Final[dict[str, Flag]] = {
    "pre": "has_code",
    "math": "has_math",
    "dl": "has_definition_list",
}
# A formula's other forms; pages show none of them.
_ANNOTATIONS: Final = frozenset({"annotation", "annotation-xml"})
# Code may be wrapped in a few levels of highlighting.
_CODE_LEVELS: Final = 6
# Deeper nesting is not a page's structure; serialising it would exhaust the stack.
_MAX_DEPTH: Final = 200


@dataclass(slots=True)
class _Element:
    node: LexborNode
    tag: str
    first: int
    below_code: int  # how far it is below a `<pre>`, itself 0
    after: int = 0
    children: list["_Element"] = field(default_factory=list)


class HtmlPage:
    """The element tree of a page: letters and digits of each text run, and what spans them.

    `marks` are kinds of rich content with the range of runs they span; images are not inlined, and
    their position is the number of runs that begin before them.
    """

    def __init__(self, html: str) -> None:
        self.keys: list[str] = []
        self.marks: list[tuple[Flag, int, int]] = []
        self.images: list[Image] = []
        self._root: _Element | None = None
        self._text: list[str] = []
        self._is_blank = True
        self._captions: dict[int, str] = {}
        self._tree = LexborHTMLParser(html)
        body = self._tree.body
        if body is not None:
            self._read(body)

    def _read(self, body: LexborNode) -> None:
        self._root = _Element(body, "body", 0, _CODE_LEVELS)
        path = [self._root]
        node = body.child
        while node is not None:
            tag = node.tag or ""
            if tag == "-text":
                self._add_text(node, path[-1])
            elif tag not in _SKIPPED:
                element = self._enter(node, tag, path[-1])
                # A formula is one piece: its parts are no blocks, and it is never cut.
                if tag == "math":
                    for text in _formula_text(node):
                        self._say(text)
                elif node.child is not None:
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
        self._root.after = len(self.keys)

    def _add_text(self, node: LexborNode, around: _Element) -> None:
        text = node.text_content or ""
        element = _Element(node, "-text", len(self.keys), around.below_code)
        around.children.append(element)
        if around.below_code < _CODE_LEVELS and ("\n" in text or "\r" in text):
            for line in text.splitlines(keepends=True):
                self._say(line)
                if line.endswith(("\n", "\r")):
                    self._flush()
        else:
            self._say(text)
        element.after = len(self.keys) + (not self._is_blank)

    def _say(self, text: str) -> None:
        self._text.append(text)
        self._is_blank = self._is_blank and text.isspace()

    def _enter(self, node: LexborNode, tag: str, around: _Element) -> _Element:
        if tag not in _INLINE:
            self._flush()
        below_code = 0 if tag == "pre" else around.below_code + 1
        element = _Element(node, tag, len(self.keys), below_code)
        around.children.append(element)
        if tag == "br":
            self._say(" ")
        elif tag == "img":
            self._add_image(node)
        return element

    def _leave(self, element: _Element) -> None:
        is_inline = element.tag in _INLINE
        if not is_inline:
            self._flush()
        # Text of the run being collected belongs to an inline element's own run.
        pending = is_inline and not self._is_blank
        element.after = len(self.keys) + pending
        flag = _flag(element)
        if flag is not None:
            self.marks.append((flag, element.first, element.after))

    def _add_image(self, node: LexborNode) -> None:
        attributes = node.attributes
        url = attributes.get("src") or attributes.get("data-src") or ""
        if url and not url.startswith("data:"):
            alt = " ".join((attributes.get("alt") or "").split())
            run = len(self.keys) + (not self._is_blank)
            self.images.append(Image(url, alt, self._caption(node), run))

    def _caption(self, image: LexborNode) -> str:
        parent = image.parent
        for _ in range(4):
            if parent is None:
                break
            if parent.tag == "figure":
                # Looked for once: a figure of many images is searched as a whole each time.
                known = self._captions.get(parent.mem_id)
                if known is None:
                    caption = parent.css_first("figcaption", default=None)
                    known = " ".join(caption.text().split()) if caption is not None else ""
                    self._captions[parent.mem_id] = known
                return known
            parent = parent.parent
        return " ".join((image.attributes.get("title") or "").split())

    def _flush(self) -> None:
        if not self._is_blank and (key := text_key("".join(self._text))):
            self.keys.append(key)
        self._text = []
        self._is_blank = True

    def render(self, first: int, after: int) -> str | None:
        """The HTML of a range of runs; None when it is nested too deeply to be a page's."""
        if self._root is None:
            return None
        parts: list[str] = []
        try:
            for child in _overlapping(self._root.children, first, after):
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
        whole = inside or element.tag != "-text"
        parts.append((element.node.html or "") if whole else _some_lines(element, first, after))
        return
    attributes = (
        f' {name}="{escape(value or "")}"' for name, value in element.node.attributes.items()
    )
    parts.append(f"<{element.tag}{''.join(attributes)}>")
    for child in _overlapping(element.children, first, after):
        _render(child, first, after, parts, depth - 1)
    parts.append(f"</{element.tag}>")


def _some_lines(element: _Element, first: int, after: int) -> str:
    """The lines of code that lie in a range of runs; each line with words is a run."""
    run = element.first
    lines: list[str] = []
    for line in (element.node.text_content or "").splitlines(keepends=True):
        if first <= run < after:
            lines.append(line)
        run += bool(text_key(line))
    return escape("".join(lines), quote=False)


def _flag(element: _Element) -> Flag | None:
    if element.tag in _FLAGS:
        return _FLAGS[element.tag]
    if element.tag == "ol":
        items = sum(child.tag == "li" for child in element.children)
        return "has_steps" if items > 1 else None
    attributes = element.node.attributes
    if element.tag == "table":
        return None if attributes.get("role") in ("presentation", "none") else "has_table"
    names = attributes.get("class")
    if not names:
        return None
    if element.tag in ("div", "aside", "section", "blockquote") and _ADMONITION.search(names):
        return "has_admonition"
    return "has_math" if _MATH.search(names) else None


def _formula_text(math: LexborNode) -> Iterator[str]:
    """Visible text in the order it is read in: a root's degree stands before what is under it."""
    waiting = [math]
    while waiting:
        node = waiting.pop()
        tag = node.tag or ""
        if tag == "-text":
            yield node.text_content or ""
        elif tag not in _ANNOTATIONS:
            shown = [
                child
                for child in node.iter(include_text=True)
                if child.tag not in _SKIPPED
                and not (child.is_text_node and (child.text_content or "").isspace())
            ]
            is_root = tag == "mroot" and len(shown) == 2
            waiting.extend(shown if is_root else reversed(shown))


def text_key(text: str) -> str:
    """Give the letters and digits of a text, in one case, for comparing it."""
    if text.isascii():
        return text.lower().translate(_ASCII_MARKS)
    return "".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
