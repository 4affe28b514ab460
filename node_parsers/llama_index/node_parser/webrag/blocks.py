"""Markdown to units: the pieces of a page that are kept whole when they fit.

Reads block structure and source ranges from a CommonMark parser; decides nothing about chunk sizes.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyromark
from pyromark import Options

from .outline import BreakCost, Heading, Image, LineTable, Mark, Outline, TableBody, TextRun

PAGE_OPTIONS: Final = (
    Options.ENABLE_TABLES
    | Options.ENABLE_MATH
    | Options.ENABLE_GFM
    | Options.ENABLE_DEFINITION_LIST
    | Options.ENABLE_TASKLISTS
)
"""What the structure of a stored page is read with."""

_INLINE_TAGS: Final = frozenset(
    {"Emphasis", "Strong", "Strikethrough", "Superscript", "Subscript", "Link", "Image"}
)
# `$HOME:$PATH` parses as math; a formula has an operator, a command or a single symbol.
_FORMULA: Final = re.compile(r"[\\^{}=<>+*]|^\s*\w(_\w+)?\s*$")
_TEX_OPENER: Final = re.compile(r"\\[(\[]")
# What closes a formula, and how many characters it has at most.
_TEX_CLOSERS: Final = {"\\(": ("\\)", 500), "\\[": ("\\]", 2000)}
# Deeper nesting is no structure a reader sees; without a limit it would cost more than any cut.
_MAX_NESTING: Final = 8
_NESTING_COST: Final = 0.05
_NESTED_IN: Final = ("Item", "DefinitionListDefinition", "BlockQuote")
_ADMONITION: Final = re.compile(
    r"^[ \t>]*(?:(?:\*\*|__)(?:note|tip|hint|important|warning|caution|danger|attention|info)"
    r"[ \t]{0,3}[:.!]?[ \t]{0,3}(?:\*\*|__)|(?:!!!|:::)\s*\w)",
    re.I | re.M,
)

# The elements of the HTML standard, and those of its older versions.
_ELEMENT_NAMES: Final = """
    a abbr acronym address applet area article aside audio b base basefont bdi bdo big blink
    blockquote body br button canvas caption center cite code col colgroup data datalist dd del
    details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame
    frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd label legend
    li link main map mark marquee math menu meta meter nav nobr noframes noscript object ol
    optgroup option output p param picture pre progress q rb rp rt rtc ruby s samp script search
    section select slot small source span strike strong style sub summary sup svg table tbody td
    template textarea tfoot th thead time title tr track tt u ul var video wbr
"""
_ELEMENTS: Final = frozenset(_ELEMENT_NAMES.split())
_EMPTY_ELEMENTS: Final = frozenset(("br", "hr", "img", "input", "wbr"))
# An angle bracket that is neither escaped nor the frame of a link's target, and the tag, comment
# or address it may begin.
_ANGLE: Final = re.compile(r"(?<!\\)(?<!\]\()<(?:(/?)([A-Za-z][A-Za-z0-9-]*+)([^<>]*+)>|!--)?")
# Stands for an angle bracket of the text while it is parsed: punctuation too, but no markup.
_ANGLE_SIGN: Final = "\u2e22"
# The fields that tools put before the text of a file; longer ones are none.
_MAX_FRONT_MATTER: Final = 20_000
_FIELD: Final = re.compile(r"[\w\"'-]+[ \t]*[:=]|#|\[")
_FRONT_MATTER_FENCES: Final = ("---", "+++")  # of YAML and TOML


def parse_outline(text: str) -> Outline:
    """The outline of a markdown text; offsets are characters of `text`.

    Never fails: where the parser gives up, lines stand for blocks.
    """
    lines = LineTable(text)
    front = _front_matter_end(text)
    reader = _EventReader(_fenced(text, front), lines)
    reader.read()
    outline = reader.outline
    outline.units = lines.units()
    outline.marks = [mark for mark in outline.marks if mark.start >= front]
    outline.marks += (Mark(*each.span(), "has_admonition") for each in _ADMONITION.finditer(text))
    outline.marks += _tex_spans(text)
    return outline


def _front_matter_end(text: str) -> int:
    """The end of the fields that a file begins with, between two lines `---` or `+++`; or 0."""
    fence = text[:3]
    if fence not in _FRONT_MATTER_FENCES:
        return 0
    first, *fields = text[:_MAX_FRONT_MATTER].splitlines(keepends=True)
    if first.rstrip() != fence or not fields or not _FIELD.match(fields[0]):
        return 0
    end = len(first)
    for line in fields:
        end += len(line)
        if line.rstrip() == fence:
            return end
    return 0


def _fenced(text: str, front: int) -> str:
    """The text with its front matter as code, which has no headings; offsets stay."""
    if not front:
        return text
    closing = text.rindex(text[:3], 0, front)
    return f"```{text[3:closing]}```{text[closing + 3 :]}"


def read_events(text: str, options: Options) -> Iterator[tuple[str, Any, int, int]]:
    """Name, value and range of each event of the parser; ranges are characters of `text`.

    The value of an event that is only a name is None. Angle brackets that are no tags, as in
    `List<String>` or `<file>`, are text. Where the parser gives up, the whole is a block of code.
    """
    parsed = _with_plain_angles(text)
    char = _character_offsets(parsed)
    for event, byte_range in _parsed(parsed, options):
        name, value = _tag(event)
        if parsed is not text and isinstance(value, str):
            value = value.replace(_ANGLE_SIGN, "<")
        yield name, value, char[byte_range["start"]], char[byte_range["end"]]


def _parsed(text: str, options: Options) -> Iterable[tuple[Any, Any]]:
    try:
        return list(pyromark.events_with_range(text, options=options))
    except BaseException as error:
        # A panic of the Rust parser is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
    everything = {"start": 0, "end": len(text.encode())}
    events = ({"Start": {"CodeBlock": "Indented"}}, {"Text": text}, {"End": "CodeBlock"})
    return [(event, everything) for event in events]


def _with_plain_angles(text: str) -> str:
    """The text with another sign for each angle bracket that begins no tag; offsets stay.

    Pages in HTML are stored without any tag: what looks like one is what the page shows. Other
    markdown has tags, in pairs or with attributes.
    """
    if "<" not in text or _ANGLE_SIGN in text:
        return text
    names: dict[str, set[str]] = {"": set(), "/": set()}
    for found in _ANGLE.finditer(text):
        if found[2]:
            names[found[1]].add(found[2].lower())
    paired = (names[""] & names["/"]) | _EMPTY_ELEMENTS

    def shown(found: re.Match[str]) -> str:
        if found[2] is None:
            is_markup = found[0] != "<"
        else:
            name, rest = found[2].lower(), found[3]
            is_tag = name in _ELEMENTS and (name in paired or "=" in rest)
            is_markup = is_tag or rest.startswith("://")
        return found[0] if is_markup else _ANGLE_SIGN + found[0][1:]

    return _ANGLE.sub(shown, text)


def _tex_spans(text: str) -> Iterator[Mark]:
    """Formulas in TeX's own brackets; a search for the closing one is no scan by a pattern."""
    behind = 0
    # Where none closes any more, looking again at every opening bracket adds up.
    last = {closer: text.rfind(closer) for closer, _ in _TEX_CLOSERS.values()}
    for opener in _TEX_OPENER.finditer(text):
        start, inside = opener.span()
        closer, longest = _TEX_CLOSERS[opener.group()]
        if start < behind or last[closer] <= inside:
            continue
        end = text.find(closer, inside + 1, inside + longest + len(closer))
        if end >= 0:
            behind = end + len(closer)
            yield Mark(start, behind, "has_math")


def _character_offsets(text: str) -> Sequence[int]:
    """Character offset by byte offset; a byte inside a character gives that character."""
    if text.isascii():
        return range(len(text) + 1)
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    table = np.empty(len(data) + 1, dtype=np.int64)
    np.cumsum((data & 0xC0) != 0x80, out=table[:-1])
    table[:-1] -= 1
    table[-1] = len(text)
    return table.data


class _EventReader:
    def __init__(self, text: str, lines: LineTable) -> None:
        self.text = text
        self.lines = lines
        self.outline = Outline()
        self._open: list[str] = []
        # How often each tag is open: counting in `_open` is quadratic in the depth of nesting.
        self._depth: Counter[str] = Counter()
        self._pieces: list[tuple[int, int, str]] = []
        self._heading: list[str] | None = None
        self._alt: list[str] | None = None
        self._row = 0
        self._table = (0, 0)  # the end of the one that is open, and the runs before it
        self._items: list[int] = []
        self._terms_before_definition = False

    def read(self) -> None:
        """Go through all events once."""
        for name, value, start, end in read_events(self.text, PAGE_OPTIONS):
            if value is None:
                self._bare(name, start, end)
            elif name == "Start":
                tag, data = _tag(value)
                self._start(tag, data, start, end)
            elif name == "End":
                tag, data = _tag(value)
                self._end(tag, data, start, end)
            else:
                self._inline(name, value, start, end)
        self._flush()

    def _bare(self, event: str, start: int, end: int) -> None:
        line = self.lines.at(start)
        if event == "Rule":
            self._flush()
            self.lines.open(line, self._block_cost())
            return
        self.lines.join(line, line + 1)
        self._inline("Text", " ", start, end)

    def _inline(self, name: str, value: Any, start: int, end: int) -> None:
        if name == "TaskListMarker":
            return
        in_block = self._open and self._open[-1] in ("CodeBlock", "HtmlBlock")
        if name != "Html" and not in_block:
            self.lines.join(self.lines.at(start), self.lines.last(start, end))
        if name in ("Html", "InlineHtml", "FootnoteReference"):
            return
        if name == "DisplayMath" or (name == "InlineMath" and _FORMULA.search(value)):
            self.outline.marks.append(Mark(start, end, "has_math"))
        if self._alt is not None:
            self._alt.append(value)
            return
        if self._heading is not None:
            self._heading.append(value)
        self._pieces.append((start, end, value))

    def _start(self, tag: str, data: Any, start: int, end: int) -> None:
        if tag in _INLINE_TAGS:
            self._start_inline(tag, data, start, end)
            return
        self._flush()
        line = self.lines.at(start)
        if tag == "Heading":
            self._start_heading(int(data["level"][1]), line, start, end)
        elif tag == "CodeBlock":
            self._start_code(data, line, start, end)
        elif tag == "HtmlBlock":
            self._raw_lines(line, self.lines.last(start, end), BreakCost.RAW_LINE)
        elif tag == "Table":
            self._row = 0
            self._table = (end, len(self.outline.runs))
            self._raw_lines(line, self.lines.last(start, end), BreakCost.KEEP)
            self.outline.marks.append(Mark(start, end, "has_table"))
        elif tag == "TableRow":
            self._row += 1
            self.lines.cost[line] = BreakCost.KEEP if self._row == 1 else BreakCost.TABLE_ROW
        else:
            self._start_container(tag, data, line, start, end)
        self._enter(tag)

    def _start_inline(self, tag: str, data: Any, start: int, end: int) -> None:
        self.lines.join(self.lines.at(start), self.lines.last(start, end))
        if tag == "Image" and self._alt is None:
            self._alt = []
            self.outline.images.append(Image(data["dest_url"], "", data["title"], start))
        self._enter(tag)

    def _start_heading(self, level: int, line: int, start: int, end: int) -> None:
        self.lines.cost[line] = BreakCost.HEADING
        self.lines.level[line] = level
        self.lines.join(line, self.lines.last(start, end))
        self.outline.headings.append(Heading(self.lines.starts[line], level, ""))
        self._heading = []

    def _start_code(self, data: Any, line: int, start: int, end: int) -> None:
        last = self.lines.last(start, end)
        fenced = data != "Indented"
        self._raw_lines(line, last, BreakCost.RAW_LINE)
        for number in range(line + 2, last + 1):
            if self.lines.is_blank(number - 1):
                self.lines.cost[number] = BreakCost.CODE_GAP
        if fenced and last > line:
            self.lines.cost[line + 1] = self.lines.cost[last] = BreakCost.KEEP
        self.outline.marks.append(Mark(start, end, "has_code"))

    def _raw_lines(self, first: int, last: int, cost: float) -> None:
        self.lines.open(first, self._block_cost())
        for line in range(first, last + 1):
            self.lines.raw[line] = 1
            self.lines.open(line, cost)

    def _start_container(self, tag: str, data: Any, line: int, start: int, end: int) -> None:
        cost = self._block_cost()
        if tag == "Item":
            cost = BreakCost.ITEM + _NESTING_COST * min(self._depth["List"], _MAX_NESTING)
            self._items[-1] += 1
        elif tag == "DefinitionListTitle":
            cost = BreakCost.TERM
            self._terms_before_definition = True
        elif tag == "DefinitionListDefinition":
            cost = BreakCost.KEEP if self._terms_before_definition else BreakCost.INSIDE_ITEM
            self._terms_before_definition = False
        elif tag == "List":
            self._items.append(0)
        elif tag == "DefinitionList":
            self.outline.marks.append(Mark(start, end, "has_definition_list"))
        elif tag == "BlockQuote" and data is not None:
            self.outline.marks.append(Mark(start, end, "has_admonition"))
            if line + 1 < len(self.lines.starts):  # a `[!NOTE]` line goes with what it labels
                self.lines.open(line + 1, BreakCost.KEEP)
        if tag == "Paragraph" and not self._open:
            self.lines.paragraph[line] = 1
        if tag != "TableHead":
            self.lines.open(line, cost)

    def _block_cost(self) -> float:
        nesting = min(sum(self._depth[tag] for tag in _NESTED_IN), _MAX_NESTING)
        if not nesting:
            return BreakCost.BLOCK
        return BreakCost.INSIDE_ITEM + _NESTING_COST * (nesting - 1)

    def _enter(self, tag: str) -> None:
        self._open.append(tag)
        self._depth[tag] += 1

    def _leave(self) -> None:
        self._depth[self._open.pop()] -= 1

    def _end(self, tag: str, data: Any, start: int, end: int) -> None:
        if tag in _INLINE_TAGS:
            self._leave()
            if tag == "Image" and not self._depth["Image"] and self._alt is not None:
                image = self.outline.images[-1]
                alt = " ".join("".join(self._alt).split())
                self.outline.images[-1] = Image(image.url, alt, image.caption, image.position)
                self._alt = None
            return
        self._flush()
        self._leave()
        if tag == "List" and self._items.pop() > 1 and data:
            self.outline.marks.append(Mark(start, end, "has_steps"))
        if tag == "TableHead":
            table_end, first = self._table
            cells = [cell for run in self.outline.runs[first:] if (cell := run.text.strip())]
            self.outline.tables.append(TableBody(end, table_end, " | ".join(cells)))
        if tag == "Heading" and self._heading is not None:
            heading = self.outline.headings[-1]
            title = " ".join("".join(self._heading).rstrip("\u00b6 ").split())
            self.outline.headings[-1] = Heading(heading.start, heading.level, title)
            self._heading = None

    def _flush(self) -> None:
        if not self._pieces:
            return
        if self._depth["CodeBlock"]:
            self.outline.runs += _code_runs(self._pieces)
        else:
            joined = "".join(piece[2] for piece in self._pieces)
            self.outline.runs.append(TextRun(self._pieces[0][0], self._pieces[-1][1], joined))
        self._pieces = []


def _tag(value: Any) -> tuple[str, Any]:
    if isinstance(value, str):
        return value, None
    ((name, data),) = value.items()
    return name, data


def _code_runs(pieces: list[tuple[int, int, str]]) -> Iterator[TextRun]:
    """One run per line of code: a block may be spread over several chunks."""
    for start, end, text in pieces:
        if end - start != len(text):
            yield TextRun(start, end, text)
            continue
        offset = start
        for line in text.splitlines(keepends=True):
            yield TextRun(offset, offset + len(line), line)
            offset += len(line)
