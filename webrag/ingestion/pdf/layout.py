"""Lines and paragraphs of a PDF's pages, from where their characters stand; it reads no outline."""

import itertools
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pypdfium2 as pdfium

from webrag.ingestion.characters import collapse, normalize_characters, strip_private_use

# How the library writes a hyphen that only breaks a word at the end of a line.
_SOFT_HYPHENS = ("\x02", "\ufffe", "\u00ad")
_BULLET = re.compile(
    r"[\u2022\u25aa\u25cf\u25e6\u2023\u00b7\u25a0\u25a1\u2013\u2043]\s+(?=\S)"
    r"|[-*]\s+(?=\S)|\(?[0-9a-z]{1,3}[.)]\s+(?=\S)"
)
_PLAIN_BULLET = re.compile(r"[\u2022\u25aa\u25cf\u25e6\u2023\u25a0\u25a1\u2043]\s+")
_SENTENCE_END = (".", "!", "?", ":", ";")
_DIGITS = re.compile(r"\d+|\b[ivxlc]+\b")
_LEAST_PAGES_OF_RUNNING_LINE = 3
# Lines of one paragraph are this much closer than those of two, in multiples of the usual step.
_PARAGRAPH_STEP = 1.35
_SHORT_LINE = 0.8
_OTHER_SIZE = 1.15
# Letters whose widths differ in every font but those that give all characters one width.
_SAMPLED_LETTERS = 12
_LEAST_LETTERS = 4
_MAX_INDENT = 80
_SAME_WIDTH = 1.06  # the library widens letters that reach out of their box
_EMPTY_LINE_STEP = 1.7
_LEADERS = re.compile(r"(?:\s?\.){5,300}+\s?(?:\d{1,5}|[ivxlc]{1,8})?\Z")
_PAGE_NUMBER = re.compile(r"\A(\d{1,5})\b|\b(\d{1,5})\Z")


@dataclass(frozen=True)
class Line:
    """One line of a page; positions in points, from the page's lower left corner.

    Attributes:
        top: Of the first character.
        base: Lower edge of the first character.
        bottom: Lower edge of the last one; the library joins some lines to one.
        breaks_word: The last word goes on in the next line.
        advance: Width of each of its characters where all have one, as listings do; 0 where they
            differ, None where it has too few letters to tell.
    """

    text: str
    left: float
    right: float
    top: float
    base: float
    bottom: float
    breaks_word: bool = False
    advance: float | None = 0.0

    @property
    def height(self) -> float:
        """Of its characters."""
        return self.top - self.base


class Block(NamedTuple):
    """A paragraph, an item of a list that begins with `- `, or a listing with its line ends."""

    text: str
    is_code: bool = False


def page_lines(page: pdfium.PdfPage) -> list[Line]:
    """Return a page's lines, in the order the file gives them."""
    text_page = page.get_textpage()
    try:
        text = text_page.get_text_range()
        return list(_lines(text_page, text))
    finally:
        text_page.close()


def _lines(text_page: pdfium.PdfTextPage, text: str) -> Iterator[Line]:
    position = 0
    last = text_page.count_chars() - 1
    for raw in text.splitlines(keepends=True):
        visible = raw.rstrip("\r\n")
        shown = _clean(visible)
        if shown:
            lead = len(visible) - len(visible.lstrip())
            first = min(position + lead, last)
            end = min(position + len(visible.rstrip("".join(_SOFT_HYPHENS) + " ")) - 1, last)
            boxes = [text_page.get_charbox(index, loose=True) for index in (first, max(first, end))]
            yield Line(
                text=shown,
                left=boxes[0][0],
                right=boxes[1][2],
                top=boxes[0][3],
                base=boxes[0][1],
                bottom=boxes[1][1],
                breaks_word=visible.rstrip().endswith(_SOFT_HYPHENS),
                advance=_advance(text_page, position, visible),
            )
        position += len(raw)


def _advance(text_page: pdfium.PdfTextPage, start: int, text: str) -> float | None:
    letters = [place for place, char in enumerate(text) if char.isascii() and char.isalpha()]
    sampled: dict[str, float] = {}
    for place in letters[:: len(letters) // _SAMPLED_LETTERS + 1]:
        left, _, right, _ = text_page.get_charbox(start + place, loose=True)
        sampled[text[place]] = right - left
        if max(sampled.values()) > min(sampled.values()) * _SAME_WIDTH:
            return 0.0
    return statistics.median(sampled.values()) if len(sampled) >= _LEAST_LETTERS else None


def _clean(text: str) -> str:
    for mark in _SOFT_HYPHENS:
        text = text.replace(mark, "")
    return collapse(normalize_characters(strip_private_use(text)))


def without_running_lines(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """Return the pages without the lines that head or end most of them, page numbers too."""
    ends = Counter(key for lines in pages for key in {_running_key(line) for line in _ends(lines)})
    least = max(_LEAST_PAGES_OF_RUNNING_LINE, len(pages) // 2)
    running = {key for key, count in ends.items() if count >= least} | {"#"}
    first = _number_of_first(pages, least)
    return [
        _trimmed(lines, running, None if first is None else first + place)
        for place, lines in enumerate(pages)
    ]


def _number_of_first(pages: Sequence[list[Line]], least: int) -> int | None:
    """Which number the first page would bear, as most pages name theirs at an edge."""
    firsts = Counter(
        number - place
        for place, lines in enumerate(pages)
        for number in {number for line in _ends(lines) for number in _numbers_at_ends(line)}
    )
    ((first, count),) = firsts.most_common(1) or [(0, 0)]
    return first if count >= least else None


def _numbers_at_ends(line: Line) -> list[int]:
    return [int(found[1] or found[2]) for found in _PAGE_NUMBER.finditer(line.text)]


def _ends(lines: list[Line]) -> list[Line]:
    return [*lines[:2], *lines[-2:]]


def _trimmed(lines: list[Line], running: set[str], number: int | None) -> list[Line]:
    """Without running lines: those of most pages, and of a chapter's that name the page."""
    edge = {id(line) for line in _ends(lines) if _running_key(line) in running}
    outermost = (*lines[:1], *lines[-1:])
    edge |= {id(line) for line in outermost if number in _numbers_at_ends(line)}
    return [line for line in lines if id(line) not in edge]


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


def _running_key(line: Line) -> str:
    return _DIGITS.sub("#", line.text.casefold())


def blocks_of(lines: Sequence[Line]) -> list[Block]:
    """Return lines joined to paragraphs, and those of listings as they stand."""
    blocks: list[Block] = []
    for is_code, group in itertools.groupby(_told_apart(lines), key=lambda pair: pair[1]):
        held = [line for line, _ in group]
        blocks += [Block(_listing(held), True)] if is_code else map(Block, _paragraphs(held))
    return blocks


def _told_apart(lines: Sequence[Line]) -> Iterator[tuple[Line, bool]]:
    """Each line, and whether it is of a listing."""
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
    steps = [above.bottom - below.base for above, below in itertools.pairwise(lines)]
    return statistics.median_low([step for step in steps if step > 0] or [0.0])


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
    widest = max(line.right for line in lines)
    groups: list[list[Line]] = [[lines[0]]]
    for above, below in itertools.pairwise(lines):
        if _begins_paragraph(above, below, usual, widest):
            groups.append([])
        groups[-1].append(below)
    return [_PLAIN_BULLET.sub("- ", _joined(group), count=1) for group in groups]


def _begins_paragraph(above: Line, below: Line, usual: float, widest: float) -> bool:
    step = above.bottom - below.base
    if above.breaks_word:
        return False
    if step < 0 or (usual and step > usual * _PARAGRAPH_STEP):
        return not _goes_on(above, below) if step < 0 else True
    sizes = sorted((above.height, below.height))
    if sizes[0] > 0 and sizes[1] / sizes[0] > _OTHER_SIZE:
        return True
    if _BULLET.match(below.text):
        return True
    is_short = above.right < widest * _SHORT_LINE
    return is_short and (above.text.endswith(_SENTENCE_END) or not below.text[:1].islower())


def _goes_on(above: Line, below: Line) -> bool:
    """A sentence that continues at the top of the next column."""
    return not above.text.endswith(_SENTENCE_END) and below.text[:1].islower()


def largest_lines(lines: Sequence[Line]) -> str:
    """Return the text of the largest lines that follow each other, "" when all are of a size."""
    if not lines:
        return ""
    usual = statistics.median(line.height for line in lines)
    largest = max(line.height for line in lines)
    if largest < usual * _OTHER_SIZE:
        return ""
    first = next(index for index, line in enumerate(lines) if line.height == largest)
    title = itertools.takewhile(lambda line: line.height > largest / _OTHER_SIZE, lines[first:])
    return _joined(list(itertools.islice(title, 3)))


def _joined(lines: Sequence[Line]) -> str:
    pieces: list[str] = []
    for line in lines:
        pieces.append(line.text)
        ends_in_hyphen = line.text.endswith("-") and not line.text.endswith(" -")
        pieces.append("" if line.breaks_word or ends_in_hyphen else " ")
    return "".join(pieces).strip()
