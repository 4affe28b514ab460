"""A page's HTML as a sequence of text runs, with the elements that span them.

Reads and cuts HTML; knows nothing about the markdown made from it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from .metadata import Flag

_NOT_WORD: Final = re.compile(r"[\W_]+")
_INLINE: Final = re.compile(
    r"a|abbr|acronym|b|bd[io]|big|br|cite|code|data|del|dfn|em|font|i|img|ins|kbd|label|mark|q|rp|rt"
    r"|ruby|s|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr|math"
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
# A formula's other forms; pages show none of them.
_ANNOTATIONS: Final = frozenset({"annotation", "annotation-xml"})
# Deeper nesting is not a page's structure; serialising it would exhaust the stack.
_MAX_DEPTH: Final = 200


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


class HtmlPage:
    """The element tree of a page with the text runs each element spans.

    Attributes:
        keys: Letters and digits of each run, in page order.
        marks: Kinds of rich content with the range of runs they span.
        images: Images that are not inlined data.
    """

    def __init__(self, html: str) -> None:
        self.keys: list[str] = []
        self.marks: list[tuple[Flag, int, int]] = []
        self.images: list[HtmlImage] = []
        self._root: _Element | None = None
        self._text: list[str] = []
        self._is_blank = True
        self._captions: dict[int, str] = {}
        self._tree = LexborHTMLParser(html)
        body = self._tree.body
        if body is not None:
            self._read(body)

    def _read(self, body: LexborNode) -> None:
        self._root = _Element(body, "body", 0)
        path = [self._root]
        node = body.child
        while node is not None:
            tag = node.tag or ""
            if tag == "-text":
                self._add_text(node, path)
            elif tag not in _SKIPPED:
                element = self._enter(node, tag, path)
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

    def _add_text(self, node: LexborNode, path: Sequence[_Element]) -> None:
        text = node.text_content or ""
        element = _Element(node, "-text", len(self.keys))
        path[-1].children.append(element)
        # Code may be wrapped in a few levels of highlighting.
        if any(outer.tag == "pre" for outer in path[-6:]):
            for line in text.splitlines(keepends=True):
                self._say(line)
                if line.endswith(("\n", "\r")):
                    self._flush()
        else:
            self._say(text)
        element.after = len(self.keys) + (1 if self._has_text() else 0)

    def _say(self, text: str) -> None:
        self._text.append(text)
        self._is_blank = self._is_blank and text.isspace()

    def _has_text(self) -> bool:
        return not self._is_blank

    def _enter(self, node: LexborNode, tag: str, path: Sequence[_Element]) -> _Element:
        if not _INLINE.fullmatch(tag):
            self._flush()
        element = _Element(node, tag, len(self.keys))
        path[-1].children.append(element)
        if tag == "br":
            self._say(" ")
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
            self.images.append(HtmlImage(url, alt, self._caption(node), run))

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
        key = text_key("".join(self._text))
        self._text = []
        self._is_blank = True
        if key:
            self.keys.append(key)

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
    parts.append(_open_tag(element))
    for child in _overlapping(element.children, first, after):
        _render(child, first, after, parts, depth - 1)
    parts.append(f"</{element.tag}>")


def _some_lines(element: _Element, first: int, after: int) -> str:
    """Those lines of code that lie in a range of runs; each line with words is a run."""
    run = element.first
    lines: list[str] = []
    for line in (element.node.text_content or "").splitlines(keepends=True):
        if first <= run < after:
            lines.append(line)
        run += bool(text_key(line))
    return escape("".join(lines), quote=False)


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


def _formula_text(math: LexborNode) -> Iterator[str]:
    """Visible text in the order it is read in: a root's degree stands before what is under it."""
    waiting = [math]
    while waiting:
        node = waiting.pop()
        tag = node.tag or ""
        if tag == "-text":
            yield node.text_content or ""
        elif tag not in _ANNOTATIONS:
            shown = [child for child in node.iter(include_text=True) if _shows(child)]
            is_root = tag == "mroot" and len(shown) == 2
            waiting.extend(shown if is_root else reversed(shown))


def _shows(node: LexborNode) -> bool:
    is_blank = node.is_text_node and (node.text_content or "").isspace()
    return not is_blank and node.tag not in _SKIPPED


def text_key(text: str) -> str:
    """What a text is compared by: its letters and digits, in one case."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _NOT_WORD.sub("", text.casefold())
