"""The parts of a page: lines and the cost of cutting before them, units, headings, content.

With the names of the metadata keys that parsed nodes carry. Knows nothing of the parser that finds
the blocks, nor of chunk sizes.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

Flag = Literal[
    "has_table", "has_code", "has_math", "has_definition_list", "has_admonition", "has_steps"
]

CHUNK_LEVEL: Final = "chunk_level"
CHUNK_INDEX: Final = "chunk_index"
HEADING: Final = "heading"
HEADING_PATH: Final = "heading_path"
SECTION: Final = "section"
TOKEN_START: Final = "token_start"  # noqa: S105 - counts, not secrets
TOKEN_END: Final = "token_end"  # noqa: S105 - counts, not secrets
LINE: Final = "line"
IMAGES: Final = "images"
IMAGE_TEXT: Final = "image_text"
HTML: Final = "html"

FLAG_KEYS: Final[tuple[Flag, ...]] = get_args(Flag)
# Numbered steps survive as markdown; everything else loses structure that HTML keeps.
LOSSY_FLAGS: Final[frozenset[Flag]] = frozenset(FLAG_KEYS) - {"has_steps"}


_LINE_END: Final = re.compile(r"\r\n|\n|\r")
# Terms of definition lists and pseudo headings end up as short lines that are no sentence.
_LABEL: Final = re.compile(
    r"[ \t>]*(?:(?:\*\*|__).{1,100}(?:\*\*|__)[:.]?|.{0,79}[^.!?,;:\u2026\s])"
)


class BreakCost:
    """The cost of cutting before a unit, beside the loss of an uneven size (which is 0 to 1).

    Ordered by how much a reader loses; the values were chosen by looking at the chunks of real
    documentation pages. Below about 0.2 size decides, above 1 a cut is a last resort.
    """

    HEADING = -0.5
    BLOCK = 0.0
    TERM = 0.05
    ITEM = 0.1
    INSIDE_ITEM = 0.2
    TABLE_ROW = 0.3
    CODE_GAP = 0.3
    AFTER_INTRODUCTION = 0.5
    SENTENCE = 0.6
    RAW_LINE = 0.8
    AFTER_LABEL = 1.5
    WORD = 2.0
    KEEP = 3.0
    AFTER_HEADING = 5.0
    CHARACTER = 8.0


@dataclass(slots=True)
class Piece:
    """Whole lines that belong together, or a part of them; pieces touch each other.

    Attributes:
        tokens: Size, white space at its end included; 0 before it is counted.
        cost: Cost of cutting before it.
        prose: Whether it has sentences; code, table rows and raw HTML are cut by line.
        level: Heading level 1 to 6; 0 for everything else.
    """

    start: int
    end: int
    tokens: int
    cost: float
    prose: bool
    level: int = 0


class LineTable:
    """The page's lines and what is known about cutting before each.

    `cost` is None where no block is known to start; `joined` lines continue the unit of the line
    before; `raw` ones are code, tables and HTML; `level` is of lines that start a heading, else 0;
    `paragraph` lines start one outside lists and quotes.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        self.cost: list[float | None] = [None] * len(self.starts)
        self.joined = bytearray(len(self.starts))
        self.raw = bytearray(len(self.starts))
        self.level = bytearray(len(self.starts))
        self.paragraph = bytearray(len(self.starts))

    def at(self, offset: int) -> int:
        """Number of the line that holds an offset."""
        return bisect_right(self.starts, offset) - 1

    def last(self, start: int, end: int) -> int:
        """Number of the last line of a range that may end with a line break."""
        return self.at(max(start, end - 1))

    def is_blank(self, line: int) -> bool:
        """True if a line has nothing but white space."""
        content = self.content(line)
        return not content or content.isspace()

    def content(self, line: int) -> str:
        """A line with its line break."""
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[line] : end]

    def open(self, line: int, cost: float) -> None:
        """Note the outermost block that starts on a line; later ones lie inside it."""
        if self.cost[line] is None:
            self.cost[line] = cost

    def join(self, first: int, last: int) -> None:
        """Keep lines after `first` up to `last` in one unit with it."""
        count = min(last, len(self.starts) - 1) - first
        if count > 0:
            self.joined[first + 1 : first + 1 + count] = b"\x01" * count

    def units(self) -> list[Piece]:
        """Units of the whole text, which they partition from its first non-blank line on."""
        firsts: list[int] = []
        for line in range(len(self.starts)):
            is_quote_gap = not self.raw[line] and not self.content(line).strip("> \t\r\n")
            if self.is_blank(line) or (firsts and is_quote_gap):
                continue
            # A heading always stands for itself, whatever inline ranges claim.
            if not firsts or not self.joined[line] or self.level[line]:
                firsts.append(line)
        units: list[Piece] = []
        for number, line in enumerate(firsts):
            start = self.starts[line]
            end = self.starts[firsts[number + 1]] if number + 1 < len(firsts) else len(self.text)
            cost = self._cost(line, units[-1] if units else None)
            units.append(Piece(start, end, 0, cost, not self.raw[line], self.level[line]))
        return units

    def _cost(self, line: int, previous: Piece | None) -> float:
        own = self.cost[line]
        cost = BreakCost.BLOCK if own is None else own
        if previous is None:
            return cost
        if previous.level:
            # Deeper headings stay with the one above them, a new section does not.
            follows = not self.level[line] or self.level[line] > previous.level
            return BreakCost.AFTER_HEADING if follows else BreakCost.HEADING
        if self.level[line] or not previous.prose:
            return cost
        before = self.text[previous.start : previous.end].rstrip()
        is_label = len(before) < 200 and _LABEL.fullmatch(before)
        if is_label and self.paragraph[self.at(previous.start)]:
            return max(cost, BreakCost.AFTER_LABEL)
        if before.endswith((":", "\uff1a")):
            return cost + BreakCost.AFTER_INTRODUCTION
        return cost


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: where its line starts, its level and its plain text."""

    start: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class TableBody:
    """The rows of a table below its header, whose cells are its columns."""

    start: int
    end: int
    columns: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of the page that has one kind of rich content."""

    start: int
    end: int
    flag: Flag


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the page; `position` is a character offset in its markdown."""

    url: str
    alt: str
    caption: str
    position: int


class TextRun(NamedTuple):
    """Visible text between two block boundaries, with its place in the markdown."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class Outline:
    """The parts of a page, in page order."""

    units: list[Piece] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    tables: list[TableBody] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    runs: list[TextRun] = field(default_factory=list)
