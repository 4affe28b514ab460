"""Lines and paragraphs of a PDF's pages, from where their characters stand; it reads no outline."""

import itertools
import math
import re
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from webrag.ingestion.characters import one_line

# How the library writes a hyphen that only breaks a word at the end of a line.
_SOFT_HYPHENS = ("\x02", "\ufffe", "\u00ad")
_SOFT_HYPHEN = re.compile(f"[{''.join(_SOFT_HYPHENS)}]")
_BULLET = re.compile(
    r"[\u2022\u25aa\u25cf\u25e6\u2023\u00b7\u25a0\u25a1\u2013\u2043]\s+(?=\S)"
    r"|[-*]\s+(?=\S)|\(?[0-9a-z]{1,3}[.)]\s+(?=\S)"
)
_PLAIN_BULLET = re.compile(r"[\u2022\u25aa\u25cf\u25e6\u2023\u25a0\u25a1\u2043]\s+")
# Word writes bullets and ticks so, as characters of its symbol fonts.
_SYMBOL = re.compile(r"\A\s*[\uf020-\uf0ff](?=\s|\Z)")
_SENTENCE_END = (".", "!", "?", ":", ";")
_DIGITS = re.compile(r"\d+|\b[ivxlc]+\b")
_ROMAN = r"(?=[ivxlc])c{0,3}(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_DASHES = r"[\s\u2013\u2014-]*"
_NUMBER_ALONE = re.compile(rf"{_DASHES}(?:\d{{1,5}}|{_ROMAN}){_DASHES}", re.IGNORECASE)
_LEAST_PAGES_OF_RUNNING_LINE = 3
_MOST_RUNNING_LINES = 12
_LEAST_HEADINGS = 3  # fewer large lines may be anything
_MOST_HEADING_LINES = 3
_MAX_TITLE_CHARS = 150
_MOST_TITLE_LINES = 5
_SAME_SIZE = 1.06
_WITHIN_TEXT = (".", ",", ";")
# Lines of one paragraph are this much closer than those of two, in multiples of the usual step.
_PARAGRAPH_STEP = 1.35
_SHORT_LINE = 0.8
_LEAST_STEPS = 3
_OTHER_SIZE = 1.15
# Letters whose widths differ in every font but those that give all characters one width.
_SAMPLED_LETTERS = 12
_LEAST_LETTERS = 4
_MAX_INDENT = 80
_SAMPLED_ANGLES = 40
_SAMPLED_GAPS = 300
# Between two cells or columns, in heights of the line; justified words stand closer.
_WIDE_GAP = 1.0
_GAP = re.compile(r"(?<=\S) +(?=\S)")
_BROKEN = re.compile(r"[^\W\d_]-\Z")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*+")
_BREAK = "\x02"
_BROKEN_WORD = re.compile(rf"(?<![^\W\d_])([^\W\d_]++){_BREAK}([^\W\d_]++)")
# Fewer lines side by side may be anything.
_LEAST_COLUMN = 4
_LEAST_BLANKS = 3
_LEAST_ROWS = 3
_SAME_PLACE = 2.0  # points
_PAIR = 2
_SAME_WIDTH = 1.06  # the library widens letters that reach out of their box
_EMPTY_LINE_STEP = 1.7
_LEADERS = re.compile(r"(?:\s?\.){5,300}+\s?(?:\d{1,5}|[ivxlc]{1,8})?\Z")
_PAGE_NUMBER = re.compile(r"\A(\d{1,5})\b|\b(\d{1,5})\Z")


class Cell(NamedTuple):
    """A part of a line that a wide gap sets apart; positions in points."""

    text: str
    left: float
    right: float


@dataclass(frozen=True)
class Line:
    """One line of a page; positions in points, right and up as the page is read.

    Attributes:
        base: Lower edge of the first character; `bottom` is that of the last one, as the library
            joins some lines to one.
        breaks_word: The last word goes on in the next line.
        advance: Width of each of its characters where all have one, as listings do; 0 where they
            differ, None where it has too few letters to tell.
        cells: Its parts, where wide gaps part it.
    """

    text: str
    left: float
    right: float
    top: float
    base: float
    bottom: float
    breaks_word: bool = False
    advance: float | None = 0.0
    cells: tuple[Cell, ...] = ()

    @property
    def height(self) -> float:
        """Of its characters."""
        return self.top - self.base


class Block(NamedTuple):
    """A paragraph, an item of a list that begins with `- `, or a listing with its line ends.

    A table has rows and no text.
    """

    text: str
    is_code: bool = False
    rows: tuple[tuple[str, ...], ...] = ()


class _Boxes:
    """Places of a page's characters, of which turned ones are turned back."""

    def __init__(self, text_page: pdfium.PdfTextPage) -> None:
        self._page = text_page
        self.last = text_page.count_chars() - 1
        step = max(self.last, 0) // _SAMPLED_ANGLES + 1
        angles = (
            pdfium_c.FPDFText_GetCharAngle(text_page, index)
            for index in range(0, self.last + 1, step)
        )
        turns = Counter(round(angle / (math.pi / 2)) % 4 for angle in angles if angle >= 0)
        self.turn = turns.most_common(1)[0][0] if turns else 0

    def at(self, index: int) -> tuple[float, float, float, float]:
        """Left, lower, right and upper edge of a character."""
        left, low, right, high = self._page.get_charbox(min(index, self.last), loose=True)
        turned = (
            (left, low, right, high),
            (-high, left, -low, right),
            (-right, -high, -left, -low),
            (low, -right, high, -left),
        )
        return turned[self.turn]


def page_lines(page: pdfium.PdfPage) -> list[Line]:
    """Return a page's lines, those of each column together."""
    with closing(page.get_textpage()) as text_page:
        boxes = _Boxes(text_page)
        lines = list(_lines(boxes, text_page.get_text_range()))
        if boxes.turn and not page.get_rotation():
            lines.sort(key=lambda line: -line.base)  # the library takes such lines from below
        return _column_by_column(lines)


def _lines(boxes: _Boxes, text: str) -> Iterator[Line]:
    position = 0
    for raw in text.splitlines(keepends=True):
        visible = raw.rstrip("\r\n")
        shown = _clean(visible)
        if shown:
            lead = len(visible) - len(visible.lstrip())
            first = position + lead
            end = position + len(visible.rstrip("".join(_SOFT_HYPHENS) + " ")) - 1
            start, stop = boxes.at(first), boxes.at(max(first, end))
            yield Line(
                text=shown,
                left=start[0],
                right=stop[2],
                top=start[3],
                base=start[1],
                bottom=stop[1],
                breaks_word=visible.rstrip().endswith(_SOFT_HYPHENS),
                advance=_advance(boxes, position, visible),
                cells=_cells(boxes, first, visible.strip()),
            )
        position += len(raw)


def _advance(boxes: _Boxes, start: int, text: str) -> float | None:
    letters = [place for place, char in enumerate(text) if char.isascii() and char.isalpha()]
    sampled: dict[str, float] = {}
    for place in letters[:: len(letters) // _SAMPLED_LETTERS + 1]:
        left, _, right, _ = boxes.at(start + place)
        sampled[text[place]] = right - left
        if max(sampled.values()) > min(sampled.values()) * _SAME_WIDTH:
            return 0.0
    return statistics.median(sampled.values()) if len(sampled) >= _LEAST_LETTERS else None


def _cells(boxes: _Boxes, start: int, text: str) -> tuple[Cell, ...]:
    low, high = boxes.at(start)[1::2]
    widest = (high - low) * _WIDE_GAP
    edges = [0]
    for gap in _GAP.finditer(text):
        if boxes.at(start + gap.end())[0] - boxes.at(start + gap.start() - 1)[2] > widest:
            edges += [gap.start(), gap.end()]
    if len(edges) == 1:
        return ()
    parts = zip(edges[::2], [*edges[1::2], len(text)], strict=True)
    return tuple(
        Cell(_clean(text[begin:end]), boxes.at(start + begin)[0], boxes.at(start + end - 1)[2])
        for begin, end in parts
    )


def _column_by_column(lines: list[Line]) -> list[Line]:
    """Part lines that hold one of each of two columns, and read the left column first.

    Lines over both columns stay where they are.
    """
    middle = _gutter(lines)
    if middle is None:
        return lines
    ordered: list[Line] = []
    beside: list[Line] = []
    for line in lines:
        parts = _parted(line, middle)
        if parts is None:
            ordered += [*beside, line]
            beside = []
        else:
            ordered += filter(None, parts[:1])
            beside += filter(None, parts[1:])
    return ordered + beside


def _gutter(lines: Sequence[Line]) -> float | None:
    """Find the gap that parts most lines in two columns of sentences, and no table."""
    gaps = [
        (left.right, right.left) for line in lines for left, right in itertools.pairwise(line.cells)
    ]
    middles = [(begin + end) / 2 for begin, end in gaps[:: len(gaps) // _SAMPLED_GAPS + 1]]
    found = max(middles, key=lambda at: sum(begin < at < end for begin, end in gaps), default=None)
    if found is None:
        return None
    parted = [parts for line in lines if line.cells and (parts := _parted(line, found))]
    left = [part for part, other in parted if part is not None and other is not None]
    right = [part for other, part in parted if part is not None and other is not None]
    is_column = len(left) >= max(_LEAST_COLUMN, len(lines) // 2)
    return found if is_column and all(map(_is_prose, (left, right))) else None


def _is_prose(column: Sequence[Line]) -> bool:
    widths = [line.right - line.left for line in column]
    is_full = statistics.median(widths) > _SHORT_LINE * max(widths)
    return is_full and statistics.median(line.text.count(" ") for line in column) >= _LEAST_BLANKS


def _parted(line: Line, middle: float) -> tuple[Line | None, Line | None] | None:
    """Part a line left and right of a place; None for one that reaches across."""
    cells = line.cells or (Cell(line.text, line.left, line.right),)
    if any(cell.left < middle < cell.right for cell in cells):
        return None
    sides = [cell for cell in cells if cell.right <= middle], [c for c in cells if c.left >= middle]
    left, right = (_of_cells(line, side) for side in sides)
    return left, right


def _of_cells(line: Line, cells: Sequence[Cell]) -> Line | None:
    if not cells or len(cells) == len(line.cells) or not line.cells:
        return line if cells else None
    text = " ".join(cell.text for cell in cells)
    is_last = cells[-1] is line.cells[-1]
    breaks_word = line.breaks_word if is_last else bool(_BROKEN.search(text))
    return replace(
        line,
        text=text[:-1] if breaks_word and not is_last else text,
        left=cells[0].left,
        right=cells[-1].right,
        breaks_word=breaks_word,
        cells=tuple(cells) if len(cells) > 1 else (),
    )


def _clean(text: str) -> str:
    text = _SYMBOL.sub("\u2022", text, count=1)
    return _BREAK.join(map(one_line, _SOFT_HYPHEN.split(text))).strip(_BREAK)


def without_steps(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages, empty those whose lines the next one has in place: slides that show line by line.

    Their last step holds all of them.
    """
    shown = [{(line.text, line.left, line.base) for line in lines} for lines in pages]
    steps = [here <= following for here, following in itertools.pairwise(shown)]
    return [[] if is_step else lines for lines, is_step in zip(pages, [*steps, False], strict=True)]


def without_running_lines(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """Return the pages without lines that head or end most, or three in a row; page numbers too."""
    usual = _usual_height(pages)
    least = max(_LEAST_PAGES_OF_RUNNING_LINE, len(list(filter(None, pages))) // 2)
    left_out = _running(pages, least, usual) | _heads_of_chapters(pages, usual)
    left_out |= _page_numbers(pages, least, usual)
    return [[line for line in lines if id(line) not in left_out] for lines in pages]


def _running(pages: Sequence[list[Line]], least: int, usual: float) -> set[int]:
    """Ids of outermost lines that so many pages have, and of those that are outermost then.

    These stay on the first page: pages of one form have more in common than a head. A row of more
    than two cells is the header of a table.
    """
    found: set[int] = set()
    ends = [_ends(lines) for lines in pages]
    for turn in range(_MOST_RUNNING_LINES // 2):
        # Further in, a number that differs may be what the page tells.
        key_of = partial(_running_key, usual=usual, with_numbers=turn > 0)
        counts = Counter(key for lines in ends for key in set(map(key_of, lines)))
        running = {id(line) for lines in ends for line in lines if counts[key_of(line)] >= least}
        if not running:
            break
        found |= running
        rest = ([line for line in lines if id(line) not in found] for lines in pages[1:])
        ends = [[line for line in _ends(lines) if len(line.cells) <= _PAIR] for lines in rest]
    return found


def _heads_of_chapters(pages: Sequence[list[Line]], usual: float) -> set[int]:
    """Ids of outermost lines that three pages in a row, or every other one, have in small type.

    A row of more than two cells is the header of a table that goes on over the pages.
    """
    found: set[int] = set()
    for place, step in itertools.product((0, -1), (1, 2)):
        ends = [lines[place] if lines else None for lines in pages]
        for held in zip(ends, ends[step:], ends[2 * step :], strict=False):
            small = (line for line in held if line and not _is_large(line, usual))
            lines = [line for line in small if len(line.cells) <= _PAIR]
            if len(lines) == len(held) and len({line.text.casefold() for line in lines}) == 1:
                found |= set(map(id, lines))
    return found


def _usual_height(pages: Iterable[Sequence[Line]]) -> float:
    """Height of most characters, to a tenth of a point."""
    heights: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            heights[round(line.height, 1)] += len(line.text)
    return heights.most_common(1)[0][0] if heights else 0.0


def _is_large(line: Line, usual: float) -> bool:
    return line.height > usual * _OTHER_SIZE


class Heading(NamedTuple):
    """A heading that an outline or large type names; the page counts from 0, the level from 1."""

    title: str
    level: int
    page: int


def large_headings(pages: Sequence[Sequence[Line]]) -> list[Heading]:
    """Find what the pages show in larger type than their text; nothing where that is seldom."""
    usual = _usual_height(pages)
    sizes = _sizes({line.height for lines in pages for line in lines if _is_large(line, usual)})
    found: list[Heading] = []
    for number, lines in enumerate(pages):
        widest = max((line.right for line in lines), default=0.0)
        sized = itertools.groupby(lines, key=lambda line: sizes.get(line.height, 0))
        groups = [(size, list(group)) for size, group in sized]
        for (size, held), below in itertools.zip_longest(groups, groups[1:]):
            goes_on = below is not None and below[1][0].text[:1].islower()
            is_within = goes_on and held[-1].right >= widest * _SHORT_LINE
            title = _joined(held)
            if size and len(held) <= _MOST_HEADING_LINES and not is_within and _is_title(title):
                found.append(Heading(title, size, number))
    levels = sorted({heading.level for heading in found})
    ranked = [each._replace(level=min(levels.index(each.level) + 1, 6)) for each in found]
    return ranked if len(ranked) >= _LEAST_HEADINGS else []


def _sizes(heights: Iterable[float]) -> dict[float, int]:
    """Number heights from the largest, nearly equal ones alike."""
    sizes: dict[float, int] = {}
    largest, size = math.inf, 0
    for height in sorted(heights, reverse=True):
        if height * _SAME_SIZE < largest:
            largest, size = height, size + 1
        sizes[height] = size
    return sizes


def _is_title(text: str) -> bool:
    letters = sum(map(str.isalpha, text))
    is_worded = letters > max(2, sum(not char.isspace() for char in text) / 2)
    is_short = len(text) <= _MAX_TITLE_CHARS and not text.endswith(_WITHIN_TEXT)
    return is_worded and is_short and text[0].isalnum() and _LEADERS.search(text) is None


def _page_numbers(pages: Sequence[list[Line]], least: int, usual: float) -> set[int]:
    """Ids of outermost lines that are a number alone, or begin or end with that of their page."""
    firsts = Counter(
        number - place
        for place, lines in enumerate(pages)
        for number in {number for line in _ends(lines) for number in _numbers_at_ends(line)}
    )
    first = next((first for first, count in firsts.most_common(1) if count >= least), None)
    alone = {
        id(line) for lines in pages for line in _ends(lines) if _NUMBER_ALONE.fullmatch(line.text)
    }
    return alone | {
        id(line)
        for place, lines in enumerate(pages)
        for line in (*lines[:1], *lines[-1:])
        if first is not None
        and first + place in _numbers_at_ends(line)
        and not _is_large(line, usual)
    }


def _numbers_at_ends(line: Line) -> list[int]:
    return [int(found[1] or found[2]) for found in _PAGE_NUMBER.finditer(line.text)]


def _ends(lines: list[Line]) -> list[Line]:
    return [*lines[:2], *lines[-2:]]


def without_leaders(lines: Sequence[Line], *, has_outline: bool) -> list[Line]:
    """The lines without rows of dots that lead to a page number, as in tables of contents.

    Such lines are left out where an outline names the same headings at their places.
    """
    found = [(line, _LEADERS.search(line.text)) for line in lines]
    return [
        line
        if leaders is None
        else replace(line, text=line.text[: leaders.start()].rstrip(), right=line.left)
        for line, leaders in found
        if leaders is None or not (has_outline or leaders.start() == 0)
    ]


def _running_key(line: Line, usual: float, *, with_numbers: bool) -> tuple[str, bool]:
    """Its text, with its numbers or without.

    A title in large type is not what later pages repeat of it.
    """
    text = line.text.casefold()
    return text if with_numbers else _DIGITS.sub("#", text), _is_large(line, usual)


def with_hyphens(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The pages with broken words joined, with a hyphen where the document writes it elsewhere."""
    words = {
        word for lines in pages for line in lines for word in _WORD.findall(line.text.casefold())
    }
    kept = {word for word in words if "-" in word and word.replace("-", "") not in words}

    def joint(match: re.Match[str]) -> str:
        return "-" if f"{match[1]}-{match[2]}".casefold() in kept else ""

    def mended(line: Line, following: Line | None) -> Line:
        text = _BROKEN_WORD.sub(lambda match: match[1] + joint(match) + match[2], line.text)
        text = text.replace(_BREAK, "")
        if line.breaks_word and following is not None:
            match = _BROKEN_WORD.search(f"{text}{_BREAK}{following.text}")
            if match is not None and joint(match):
                return replace(line, text=f"{text}-", breaks_word=False)
        return line if text == line.text else replace(line, text=text)

    return [[mended(*pair) for pair in itertools.zip_longest(lines, lines[1:])] for lines in pages]


def blocks_of(lines: Sequence[Line]) -> list[Block]:
    """Return lines joined to paragraphs, those of listings as they stand, and tables."""
    blocks: list[Block] = []
    rest: list[Line] = []
    for has_cells, group in itertools.groupby(_celled(lines), key=lambda pair: pair[1]):
        held = [line for line, _ in group]
        rows = _rows(held) if has_cells else ()
        if rows:
            blocks += [*_texts(rest), Block("", rows=rows)]
            rest = []
        else:
            rest += held
    return [*blocks, *_texts(rest)]


def _texts(lines: Sequence[Line]) -> Iterator[Block]:
    """The listings and paragraphs of lines that are no table."""
    for is_code, group in itertools.groupby(_told_apart(lines), key=lambda pair: pair[1]):
        part = [line for line, _ in group]
        if is_code:
            yield Block(_listing(part), is_code=True)
        else:
            yield from map(Block, _paragraphs(part))


def _celled(lines: Sequence[Line]) -> Iterator[tuple[Line, bool]]:
    """Each line, and whether it may be of a table: with gaps, or going on with a cell above it.

    Of two columns the second is often a text of its own, as that below a term.
    """
    starts: list[float] = []  # of the columns but the first
    most = 0
    top, above = 0.0, None
    for line, is_fixed in _by_width(lines):
        has_cells = bool(line.cells) and not is_fixed
        if has_cells:
            most = max(most if starts else 0, len(line.cells))
            top = top if starts else line.top
            starts += [cell.left for cell in line.cells[1:]]
        elif most <= _PAIR or above is None or not _goes_on(above, line, starts, top):
            starts = []
        above = line
        yield line, bool(starts)


def _goes_on(above: Line, below: Line, starts: Sequence[float], top: float) -> bool:
    """A line begins where a column does and stands in the row above, or right below it."""
    is_near = above.bottom - below.base <= above.height * _OTHER_SIZE and below.top <= top
    return is_near and any(abs(below.left - start) < _SAME_PLACE for start in starts)


def _rows(lines: Sequence[Line]) -> tuple[tuple[str, ...], ...]:
    """The cells of lines under each other, each in its column; nothing when they form none."""
    if sum(bool(line.cells) for line in lines) < _LEAST_ROWS:
        return ()
    for lefts in (_apart(lines), _shared(lines)):
        rows = _placed(lines, lefts)
        # A column of marks is a margin, such as the prompts of a listing.
        columns = zip(*rows, strict=True)
        if len(lefts) > 1 and rows and all(any(map(str.isalnum, "".join(c))) for c in columns):
            return tuple(map(tuple, rows))
    return ()


def _apart(lines: Sequence[Line]) -> list[float]:
    """Left edges of columns between which no cell reaches."""
    columns: list[list[float]] = []
    for cell in sorted((cell for line in lines for cell in line.cells), key=lambda cell: cell.left):
        if columns and (cell.left < columns[-1][1] or cell.left == columns[-1][0]):
            columns[-1][1] = max(columns[-1][1], cell.right)
        else:
            columns.append([cell.left, cell.right])
    return [left for left, _ in columns]


def _shared(lines: Sequence[Line]) -> list[float]:
    """Left edges that cells of most rows share: one too near to the next reaches over it."""
    begun = Counter(round(cell.left) for line in lines for cell in line.cells)
    least = sum(bool(line.cells) for line in lines) / 2
    return sorted(left - _SAME_PLACE for left, count in begun.items() if count > least)


def _placed(lines: Sequence[Line], lefts: Sequence[float]) -> list[list[str]]:
    rows: list[list[str]] = []
    for line in lines:
        if line.cells:
            rows.append([""] * len(lefts))
        for cell in line.cells or (Cell(line.text, line.left, line.right),):
            at = bisect_right(lefts, cell.left) - 1
            if at < 0 or (rows[-1][at] and line.cells):
                return []
            rows[-1][at] = f"{rows[-1][at]} {cell.text}".strip()
    return rows


def _told_apart(lines: Sequence[Line]) -> Iterator[tuple[Line, bool]]:
    usual = _usual_step(lines)
    widest = max((line.right for line in lines), default=0.0)
    end = 0
    for may_be_code, group in itertools.groupby(_by_width(lines), key=lambda pair: pair[1]):
        held = [line for line, _ in group]
        start, end = end, end + len(held)
        above, below = lines[max(0, start - 1) : start], lines[end : end + 1]
        is_code = may_be_code and not (
            any(_runs_on(each, held[0], usual, widest) for each in above)
            or (len(held) == 1 and any(_runs_on(held[0], each, usual, 0.0) for each in below))
        )
        yield from ((line, is_code) for line in held)


def _by_width(lines: Sequence[Line]) -> Iterator[tuple[Line, bool]]:
    """Each line, and whether its characters have one width; few letters are as those above."""
    is_fixed = False
    for line in lines:
        is_fixed = is_fixed if line.advance is None else line.advance > 0
        yield line, is_fixed


def _runs_on(above: Line, below: Line, usual: float, widest: float) -> bool:
    """One paragraph goes on, as far as steps and the right margin tell."""
    step = above.bottom - below.base
    is_near = 0 < step <= usual * _PARAGRAPH_STEP
    return is_near and above.right >= widest * _SHORT_LINE and not above.text.endswith(":")


def _usual_step(lines: Sequence[Line]) -> float:
    """Between lines of a paragraph: the most of those below full lines that are no gaps."""
    full = max((line.right for line in lines), default=0.0) * _SHORT_LINE
    pairs = [(above, above.bottom - below.base) for above, below in itertools.pairwise(lines)]
    # What is less than a line high parts the parts of a formula.
    steps = [(above, step) for above, step in pairs if step > above.height * _SHORT_LINE]
    within = sorted(step for above, step in steps if above.right >= full)
    if len(within) >= _LEAST_STEPS:
        return within[len(within) // 4]
    return statistics.median_low([step for _, step in pairs if step > 0] or [0.0])


def _listing(lines: Sequence[Line]) -> str:
    margin = min(line.left for line in lines)
    advance = max(line.advance or 0.0 for line in lines)
    usual = _usual_step(lines)
    written = [_indented(lines[0], margin, advance)]
    for above, below in itertools.pairwise(lines):
        if usual and above.bottom - below.base > usual * _EMPTY_LINE_STEP:
            written.append("")
        written.append(_indented(below, margin, advance))
    return "\n".join(written)


def _indented(line: Line, margin: float, advance: float) -> str:
    return " " * min(round((line.left - margin) / advance), _MAX_INDENT) + line.text


def _paragraphs(lines: Sequence[Line]) -> list[str]:
    usual = _usual_step(lines)
    tops = (below.base > above.top for above, below in itertools.pairwise(lines))
    columns = [*itertools.accumulate(tops, initial=0)]
    widest: dict[int, float] = {}
    for column, line in zip(columns, lines, strict=True):
        widest[column] = max(widest.get(column, 0.0), line.right)
    groups: list[list[Line]] = [[lines[0]]]
    for column, (above, below) in zip(columns, itertools.pairwise(lines), strict=False):
        is_short = above.right < above.left + (widest[column] - above.left) * _SHORT_LINE
        if _begins_paragraph(above, below, usual, is_short=is_short):
            groups.append([])
        groups[-1].append(below)
    return [_PLAIN_BULLET.sub("- ", _joined(group), count=1) for group in groups]


def _begins_paragraph(above: Line, below: Line, usual: float, *, is_short: bool) -> bool:
    step = above.bottom - below.base
    if above.breaks_word:
        return False
    if step < 0:  # at the top of the next column, where a sentence may continue
        return above.text.endswith(_SENTENCE_END) or not below.text[:1].islower()
    if usual and step > usual * _PARAGRAPH_STEP:
        return True
    sizes = sorted((above.height, below.height))
    if sizes[0] > 0 and sizes[1] / sizes[0] > _OTHER_SIZE:
        return True
    gaps = [{round(cell.left) for cell in line.cells[1:]} for line in (above, below)]
    if _BULLET.match(below.text) or gaps[0] & gaps[1]:  # or two rows of too few for a table
        return True
    return is_short and (above.text.endswith(_SENTENCE_END) or not below.text[:1].islower())


def largest_lines(lines: Sequence[Line]) -> str:
    """Return the text of the largest lines that follow each other, "" when all are of a size."""
    if not lines:
        return ""
    usual = statistics.median(line.height for line in lines)
    largest = max(line.height for line in lines)
    if largest < usual * _OTHER_SIZE:
        return ""
    first = next(index for index, line in enumerate(lines) if line.height * _SAME_SIZE > largest)
    title = list(itertools.takewhile(lambda e: e.height > largest / _OTHER_SIZE, lines[first:]))
    return _joined(title[:3]) if len(title) <= _MOST_TITLE_LINES else ""


def _joined(lines: Sequence[Line]) -> str:
    pieces: list[str] = []
    for line in lines:
        pieces.append(line.text)
        ends_in_hyphen = line.text.endswith("-") and not line.text.endswith(" -")
        pieces.append("" if line.breaks_word or ends_in_hyphen else " ")
    return "".join(pieces).strip()
