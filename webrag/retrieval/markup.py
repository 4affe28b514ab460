"""Reads stored markdown as blocks of plain pieces with offsets."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from math import inf
from typing import Any, Literal

import pyromark
from llama_index.node_parser.webrag.blocks import read_events

CELL_BAR = re.compile(r"(?<!\\)\|")
"""The bars around and between cells; a bar inside a cell has a backslash before it."""

BlockKind = Literal["prose", "heading", "code", "row", "html"]

_OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
_INLINE = {"Emphasis", "Strong", "Strikethrough", "Link", "Image", "Superscript", "Subscript"}
_KINDS: dict[str, BlockKind] = {
    "Heading": "heading",
    "CodeBlock": "code",
    "TableHead": "row",
    "TableRow": "row",
    "HtmlBlock": "html",
}
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*$", re.MULTILINE)
# The end of a line of code before the next of which the page shows a number has exactly one blank;
# prose has its lines unbroken.
_NUMBERED_LINE = re.compile(r"(?<! ) \r?\n")
# Other texts that begin with blanks are listings, or prose of files with a margin.
_WITHIN_ITEM = re.compile(r"\A(?: {2,3}(?=\S(?s:.)*\n {4,5}\|)| {4,20}(?=(?:[-*+]|\d{1,9}[.)]) ))")
_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_CELL = re.compile(r"(?:\\.|[^|\\])+")
# Taken to the end where it is not closed, so that no later one is looked for from each sign on.
_TAG = re.compile(r"<[^>]*+>?")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text and what the reader sees of it: without escapes and marks of inline code."""

    start: int
    end: int
    plain: str


@dataclass(slots=True)
class Block:
    """Text that stands in one place: a paragraph, a heading, code, or a table row.

    From its first piece to the last it holds no marker of a list, fence, quote, heading or table.
    Atoms of inline markup, cells that are not empty and tags of HTML are ranges of the source.
    """

    kind: BlockKind
    pieces: list[Piece] = field(default_factory=list)
    atoms: list[tuple[int, int]] = field(default_factory=list)
    cells: list[tuple[int, int]] = field(default_factory=list)
    tags: list[tuple[int, int]] = field(default_factory=list)

    @property
    def start(self) -> int:
        """Offset where the block's text begins, inline markup included."""
        return min([self.pieces[0].start, *(atom[0] for atom in self.atoms[:1])])

    @property
    def end(self) -> int:
        """Offset where it ends, inline markup included."""
        return max([self.pieces[-1].end, *(atom[1] for atom in self.atoms[-1:])])


# A passage is read for its citation, its finest quotation and again for the next question: a third
# of a search's time on this side of Postgres went into parsing the same texts.
@lru_cache(maxsize=256)
def read_blocks(text: str) -> tuple[Block, ...]:
    """Read markdown, of a part of a page too, as blocks; they are shared, not to be changed."""
    if _is_within_numbers(text):
        return (Block("code", list(_lines(text, 0, len(text)))),)
    cut = _inner_fence(text)
    if cut is None:
        return tuple(_parse(text, 0))
    code = Block("code", list(_lines(text, 0, cut[0])))
    return (code, *_parse(text, cut[1])) if code.pieces else tuple(_parse(text, cut[1]))


def _is_within_numbers(text: str) -> bool:
    """Tell whether a part without a fence comes from the middle of a listing with line numbers."""
    if _FENCE.search(text) is not None or "```" in text or "~~~" in text:
        return False
    count = sum(1 for _ in _NUMBERED_LINE.finditer(text))
    return count > 1 and 2 * count >= text.strip().count("\n")


def plain_text(markdown: str) -> str:
    """Give markdown without markup, blocks on lines of their own, cells of a row between tabs."""
    return plain_span(markdown, 0, len(markdown))


def plain_span(text: str, start: int, end: int) -> str:
    """Give a span of `text` without markup, or as it is where nothing but markup lies inside."""
    parts = []
    for block in read_blocks(text):
        plain = "".join(_visible(text, block, start, end))
        if plain.strip():
            parts.append(plain if block.kind == "code" else plain.strip())
    return "\n".join(part.strip("\n") for part in parts) or text[start:end].strip()


def _visible(text: str, block: Block, start: int, end: int) -> Iterator[str]:
    previous: Piece | None = None
    cells = [first for first, _ in block.cells] if block.kind == "row" else []
    tags = [first for first, _ in block.tags]
    for piece in block.pieces:
        if piece.end <= start or piece.start >= end:
            continue
        if previous is not None:
            gap = (previous.end, piece.start)
            new_cell = _first_from(cells, gap[0]) <= gap[1]
            has_tag = _first_from(tags, gap[0]) < gap[1]
            yield _separator(text[slice(*gap)], block.kind, new_cell=new_cell, has_tag=has_tag)
        yield _clip(text, piece, start, end)
        previous = piece


def _first_from(offsets: Sequence[int], start: int) -> float:
    at = bisect_left(offsets, start)
    return offsets[at] if at < len(offsets) else inf


def _separator(gap: str, kind: BlockKind, *, new_cell: bool, has_tag: bool) -> str:
    if new_cell:
        return "\t"
    if kind == "code":
        return "\n"
    if has_tag:
        return "\n" if re.search(r"<br\b", gap, re.IGNORECASE) else ""
    return " " if "\n" in gap else ""


def _clip(text: str, piece: Piece, start: int, end: int) -> str:
    if start <= piece.start and end >= piece.end:
        return piece.plain
    at = text[piece.start : piece.end].find(piece.plain)
    if at < 0:
        return piece.plain
    first = piece.start + at
    return piece.plain[max(0, start - first) : max(0, end - first)]


def _inner_fence(text: str) -> tuple[int, int] | None:
    """Find the fence line that closes a block of code which began before the text."""
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()].rstrip(" \t")
        after = text[fence.end() :]
        opened = re.search(r"^ {0,3}(`{3,}|~{3,})", before, re.MULTILINE)
        if opened or not before.strip() or before.endswith("\n\n"):
            return None
        return (fence.start(), fence.end()) if not after.strip() or after[:2] == "\n\n" else None
    return None


def _parse(text: str, base: int) -> Iterator[Block]:
    reader = _BlockReader(text)
    for name, payload, start, end in read_events(_with_item(text[base:]), _OPTIONS):
        reader.feed(name, payload, base + start, base + end)
    reader.flush()
    return iter(reader.blocks)


def _with_item(text: str) -> str:
    """The text with a marker for the item that it begins within, whose margin is then no code."""
    found = _WITHIN_ITEM.match(text)
    if found is None:
        return text
    margin = found.end()
    return ("- " * (margin // 2)).ljust(margin) + text[margin:]


class _BlockReader:
    def __init__(self, text: str) -> None:
        self.blocks: list[Block] = []
        self._text = text
        self._block = Block("prose")
        self._inline_depth = 0
        self._line_end: int | None = None

    def feed(self, name: str, payload: Any, start: int, end: int) -> None:
        """Take the next event."""
        if name in {"SoftBreak", "HardBreak"}:
            self._line_end = end
            return
        if name == "Text" and self._text.endswith("\\", 0, start):
            start -= 1  # of the sign that it makes text of
        tag = ""
        if name in {"Start", "End"}:
            tag = payload if isinstance(payload, str) else str(next(iter(payload)))
        if self._line_end is not None and name != "End":
            if self._text[self._line_end : start].strip():
                self._cut_atoms(self._line_end)
                self.flush(keep_kind=True)
            self._line_end = None
        if tag in _INLINE:
            self._inline(name, start, end)
        elif tag == "TableCell":
            self._cell(name, start, end)
        elif tag:
            self.flush()
            if name == "Start":
                self._block.kind = _KINDS.get(tag, "prose")
        else:
            self._add(name, payload, start, end)

    def flush(self, *, keep_kind: bool = False) -> None:
        """Close the current block."""
        block, self._line_end = self._block, None
        self._block = Block(block.kind if keep_kind else "prose")
        if block.pieces:
            self.blocks.extend(self._rows_without_head(block) or [block])

    def _cut_atoms(self, line_end: int) -> None:
        """Markup that goes on below a quote marker ends with the line; its rest is the next's."""
        block = self._block
        if block.pieces:
            last = block.pieces[-1].end
            block.atoms = [
                (start, end if end <= line_end else max(last, start)) for start, end in block.atoms
            ]

    def _inline(self, name: str, start: int, end: int) -> None:
        self._inline_depth += 1 if name == "Start" else -1
        if name == "Start" and self._inline_depth == 1:
            self._block.atoms.append((start, end))

    def _cell(self, name: str, start: int, end: int) -> None:
        content = self._text[start:end].strip()
        if name == "Start" and content:
            first = self._text.index(content, start)
            self._block.cells.append((first, first + len(content)))

    def _add(self, name: str, payload: Any, start: int, end: int) -> None:
        if self._block.kind == "code":
            self._add_code(start, end)
        elif name == "Code":
            self._block.atoms += [(start, end)] if self._inline_depth == 0 else []
            self._block.pieces.append(Piece(start, end, payload))
        elif name in {"Text", "InlineMath", "DisplayMath"}:
            self._block.pieces.append(Piece(start, end, payload))
        elif name == "InlineHtml":
            self._block.tags.append((start, end))
        elif name == "Html":
            plain = _TAG.sub(lambda tag: "" if tag[0].endswith(">") else tag[0], payload)
            self._block.pieces += [Piece(start, end, plain)] if plain.strip() else []

    def _add_code(self, start: int, end: int) -> None:
        pieces = self._block.pieces
        if pieces and self._text[pieces[-1].end : start].strip():
            self.flush(keep_kind=True)
        self._block.pieces.extend(_lines(self._text, start, end))

    def _rows_without_head(self, block: Block) -> list[Block]:
        """Rows of a table whose head lies before the text; parsed as a paragraph of pipes."""
        if block.kind != "prose":
            return []
        lines = list(_lines(self._text, block.start, block.end))
        if not all(_ROW.match(line.plain) for line in lines):
            return []
        rows = [_row_block(self._text, line.start, line.end) for line in lines]
        return [row for row in rows if row.pieces]


def _row_block(text: str, start: int, end: int) -> Block:
    row = Block("row")
    for cell in _CELL.finditer(text, start, end):
        content = cell.group().strip()
        if content and not re.fullmatch(r":?-+:?", content):
            first = text.index(content, cell.start())
            span = (first, first + len(content))
            row.cells.append(span)
            breaks = [found.span() for found in _BREAK.finditer(text, *span)]
            row.tags += breaks
            ends = [first, *chain.from_iterable(breaks), span[1]]
            row.pieces += [
                Piece(low, high, re.sub(r"\\([|\\])", r"\1", text[low:high]))
                for low, high in zip(ends[::2], ends[1::2], strict=True)
                if text[low:high].strip()
            ]
    return row


def _lines(text: str, start: int, end: int) -> Iterator[Piece]:
    """The lines that are not blank, without line ends and blanks before them."""
    for line in re.finditer(r"[^\r\n]+", text[start:end]):
        if plain := line.group().rstrip():
            first = start + line.start()
            yield Piece(first, first + len(plain), plain)


@lru_cache(maxsize=256)
def longest_piece(text: str) -> tuple[int, int]:
    """Find the longest part of a chunk, as start and end, that no number of a line interrupts."""
    breaks: list[tuple[int, int]] = []
    for block in read_blocks(text):
        numbers = _numbers_in(text, block.start, block.end) if block.kind == "code" else []
        if numbers:
            # The first line has a number as well, between it and what stands above the block.
            above = len(text[: block.start].rstrip().rpartition("\n")[0].rstrip())
            breaks += [(above, block.start), *(found.span() for found in numbers)]
    starts = [0, *(end for _, end in breaks)]
    ends = [*(start for start, _ in breaks), len(text)]
    return max(zip(starts, ends, strict=True), key=lambda span: len(text[slice(*span)].split()))


def _numbers_in(text: str, start: int, end: int) -> list[re.Match[str]]:
    """Find the line numbers in a block of code; blanks at the end of a few lines are none."""
    found = list(_NUMBERED_LINE.finditer(text, start, end))
    return found if 2 * len(found) >= text.count("\n", start, end) else []
