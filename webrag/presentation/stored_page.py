"""Stored text as safe HTML with marks at exact offsets; it passes no markup of a page through.

Everything is rendered from the stored Markdown, the text that offsets refer to: tags of a page are
not kept in it, and what looks like one is shown as text.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from llama_index.node_parser.webrag.blocks import PAGE_OPTIONS, read_events

from webrag.presentation.untrusted import clean_block, one_line
from webrag.retrieval.markup import CELL_BAR

if TYPE_CHECKING:
    from webrag.corpus.models import PageImage

# Only these names ever stand behind an angle bracket; values of the parser never do.
_TAGS: Final = {
    "Paragraph": "p",
    "Item": "li",
    "Emphasis": "em",
    "Strong": "strong",
    "Strikethrough": "del",
    "Subscript": "sub",
    "Superscript": "sup",
    "DefinitionList": "dl",
    "DefinitionListTitle": "dt",
    "DefinitionListDefinition": "dd",
    "TableRow": "tr",
    "BlockQuote": "blockquote",
}
# What is wider than the screen scrolls by itself, with the keyboard as well.
_FRAMES: Final = {
    "CodeBlock": ('<pre tabindex="0"><code>', "</code></pre>"),
    "HtmlBlock": ('<pre tabindex="0">', "</pre>"),
    "Table": (
        '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>',
        "</tbody></table></div>",
    ),
    "Image": ('<span class="image">Image: ', "</span>"),
}
_BLOCKS: Final = frozenset({"p", "li", "dt", "dd", "blockquote"})
_MAX_CONTENTS_CHARS: Final = 120
_TABLE_ROW: Final = re.compile(r"\|.*\|[ \t]*\Z")
_TABLE_RULE: Final = re.compile(r"\|(?:[ \t]*+:?-++:?[ \t]*+\|)++[ \t]*(?:\n|\Z)")


@dataclass(frozen=True)
class Mark:
    """A citation on a page: `text[start:end]` is marked and bears the number."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Heading:
    """A line of the contents, its id in the HTML and its level from 1, as on the page."""

    anchor: str
    level: int
    text: str


@dataclass(frozen=True)
class PageHTML:
    """A page to be shown inside another document."""

    html: str
    contents: tuple[Heading, ...]


def page_html(
    text: str, marks: Sequence[Mark] = (), images: Sequence["PageImage"] = ()
) -> PageHTML:
    """Render Markdown as HTML of which no letter comes from the page unescaped.

    The first piece of each mark, which may overlap, has the id `c` and its number. Takes time in
    proportion to the text; a server lets a thread of its own do it.
    """
    renderer = _Renderer(text, marks, images)
    for name, value, start, end in read_events(text, PAGE_OPTIONS):
        renderer.take(name, value, start, end)
    renderer.show_images(len(text))
    return PageHTML("".join(renderer.out), tuple(renderer.contents))


def passage_html(text: str, start: int, end: int, marks: Sequence[Mark] = ()) -> str:
    """Render part of a Markdown text as `page_html` does, without anything to go to by an id.

    What the part lies in is shown with it: a table with its header, an item with its number, code
    as code. Rows at the beginning of a text, cut from their table, are a table all the same.
    """
    first, _, rest = text.partition("\n")
    if _TABLE_ROW.match(first) and not _TABLE_RULE.match(rest):
        head = empty_table_head(first)
        moved = [Mark(each.number, each.start + len(head), each.end + len(head)) for each in marks]
        return passage_html(head + text, start + len(head), end + len(head), moved)
    renderer = _Renderer(text, marks, part=(start, end))
    for event in read_events(text, PAGE_OPTIONS):
        if renderer.reaches(*event):
            renderer.take(*event)
    return "".join(renderer.out)


def empty_table_head(row: str) -> str:
    """The lines that make a table of rows like this one: without a header they are none."""
    width = len(CELL_BAR.findall(row)) - 1
    return "|" + "  |" * width + "\n|" + "---|" * width + "\n"


class _Renderer:
    """Writes a text, or of it a part with what that lies in."""

    def __init__(
        self,
        text: str,
        marks: Sequence[Mark],
        images: Sequence["PageImage"] = (),
        part: tuple[int, int] | None = None,
    ) -> None:
        self.out: list[str] = []
        self.contents: list[Heading] = []
        self._text = text
        self._marks = sorted(marks, key=lambda mark: (mark.start, mark.end, mark.number))
        self._anchored: set[int] = set()
        # What stands in the text as markup is shown with it.
        unseen = [each for each in images if not text.startswith("![", each.position)]
        self._images = sorted(unseen, key=lambda image: image.position, reverse=True)
        self._depth = 0
        self._cell = "td"
        self._heading: list[str] | None = None
        self._part = part
        self._shows_table = False
        self._numbers: list[int | None] = []

    def take(self, name: str, value: Any, start: int, end: int) -> None:
        if name in ("Start", "End"):
            kind, detail = next(iter(value.items())) if isinstance(value, dict) else (value, None)
            if name == "Start":
                self._enter(kind, detail, start)
            else:
                self._depth -= 1
                self._close(kind, detail)
        elif name in ("InlineMath", "DisplayMath"):
            self.out.append('<span class="math">')
            self.write(start, end)
            self.out.append("</span>")
        elif name == "SoftBreak":
            self.write(start, end)
        elif name == "HardBreak":
            self.out.append("<br>")
        elif name == "Rule":
            self.out.append("<hr>")
        elif name == "TaskListMarker":
            self.out.append("\u2611 " if value else "\u2610 ")
        elif isinstance(value, str):
            self._literal(name, value, start, end)

    def _count(self, name: str, value: Any) -> None:
        """Keep the numbers of items, those that are not shown among them."""
        is_list = isinstance(value, dict) and "List" in value
        if is_list and name == "Start":
            self._numbers.append(None if value["List"] is None else value["List"] - 1)
        elif is_list:
            self._numbers.pop()
        elif value == "Item" and name == "Start" and self._numbers[-1] is not None:
            self._numbers[-1] += 1

    def reaches(self, name: str, value: Any, start: int, end: int) -> bool:
        """Tell an event of the part, or of what it lies in; called for each, in order."""
        self._count(name, value)
        overlaps = self._part is None or (start < self._part[1] and end > self._part[0])
        if name == "Start" and isinstance(value, dict) and "Table" in value:
            self._shows_table = overlaps
        in_head = self._cell == "th" or (value == "TableHead" and name in ("Start", "End"))
        return overlaps or (in_head and self._shows_table)

    def show_images(self, until: int) -> None:
        while self._images and self._images[-1].position <= until:
            image = self._images.pop()
            words = dict.fromkeys(one_line(each) for each in (image.alt, image.caption))
            said = " \u2013 ".join(filter(None, words)) or "no description"
            self.out.append(f'<span class="image block" dir="auto">Image: {escape(said)}</span>')

    def write(self, start: int, end: int) -> None:
        """Write a piece of the text, cut where marks begin and end."""
        if self._part is not None and self._cell != "th":
            start, end = max(start, self._part[0]), min(end, self._part[1])
        here = [mark for mark in self._marks if mark.start < end and mark.end > start]
        cuts = {start, end}
        for mark in here:
            cuts |= {each for each in (mark.start, mark.end) if start < each < end}
        ordered = sorted(cuts)
        for first, last in pairwise(ordered):
            self._piece(
                self._text[first:last], [m for m in here if m.start < last and m.end > first]
            )

    def _literal(self, name: str, value: str, start: int, end: int) -> None:
        """Text the parser gives; escapes, entities and fences make it differ from its range."""
        at = self._text.find(value, start, end)
        opening, closing = ("<code>", "</code>") if name == "Code" else ("", "")
        self.out.append(opening)
        if at >= 0:
            self.write(at, at + len(value))
        else:
            self._piece(value, [m for m in self._marks if m.start < end and m.end > start])
        self.out.append(closing)

    def _piece(self, text: str, marks: Iterable[Mark]) -> None:
        if self._heading is not None:
            self._heading.append(text)
        shown = escape(clean_block(text))
        numbers = [mark.number for mark in marks]
        if not numbers or not shown:
            self.out.append(shown)
            return
        if self._part is not None:
            self.out.append(f"<mark>{shown}</mark>")
            return
        new = [number for number in numbers if number not in self._anchored]
        self._anchored.update(new)
        extra = "".join(f'<span id="c{number}"></span>' for number in new[1:])
        anchor = f' id="c{new[0]}" tabindex="-1"' if new else ""
        label = f' data-number="{" ".join(map(str, new))}"' if new else ""
        self.out.append(f"{extra}<mark{anchor}{label}>{shown}</mark>")

    def _enter(self, kind: str, detail: Any, start: int) -> None:
        if self._depth == 0:
            self.show_images(start)
        self._depth += 1
        self._open(kind, detail)
        if kind == "Item":
            self.show_images(start)

    def _open(self, kind: str, detail: Any) -> None:
        match kind:
            case "Heading":
                self._open_heading(detail)
            case "List":
                self.out.append("<ul>" if detail is None else f'<ol start="{int(detail)}">')
            case "TableHead":
                self._cell = "th"
                self.out.append("<thead><tr>")
            case "TableCell":
                self.out.append(f'<{self._cell} dir="auto">')
            case _ if kind in _FRAMES:
                self.out.append(_FRAMES[kind][0])
            case _ if (tag := _TAGS.get(kind)) is not None:
                number = self._numbers[-1] if kind == "Item" and self._numbers else None
                value = "" if number is None else f' value="{number}"'
                self.out.append(f'<{tag}{value} dir="auto">' if tag in _BLOCKS else f"<{tag}>")

    def _close(self, kind: str, detail: Any) -> None:
        match kind:
            case "Heading":
                self._close_heading(detail)
            case "List":
                self.out.append("</ol>" if detail else "</ul>")
            case "TableHead":
                self._cell = "td"
                self.out.append("</tr></thead><tbody>")
            case "TableCell":
                self.out.append(f"</{self._cell}>")
            case _ if kind in _FRAMES:
                self.out.append(_FRAMES[kind][1])
            case _ if (tag := _TAGS.get(kind)) is not None:
                self.out.append(f"</{tag}>")

    def _open_heading(self, detail: Any) -> None:
        """Headings are a level below the title of the page that shows them."""
        self._heading = []
        level = int(str(detail["level"])[1])
        anchor = f"s{len(self.contents) + 1}"
        self.contents.append(Heading(anchor, level, ""))
        place = f' id="{anchor}"' if self._part is None else ""
        self.out.append(f'<h{min(level + 1, 6)}{place} dir="auto">')

    def _close_heading(self, detail: Any) -> None:
        heading, words = self.contents[-1], "".join(self._heading or ())
        self._heading = None
        text = one_line(words, max_chars=_MAX_CONTENTS_CHARS) or "(no words)"
        self.contents[-1] = Heading(heading.anchor, heading.level, text)
        self.out.append(f"</h{min(int(str(detail)[1]) + 1, 6)}>")
