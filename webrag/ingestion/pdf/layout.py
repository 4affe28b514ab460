"""Lines and paragraphs of a PDF's pages, from where their characters stand; it reads no outline."""

import itertools
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pypdfium2 as pdfium

from webrag.ingestion.characters import collapse, normalize_characters, strip_private_use

__all__ = ["Line", "largest_lines", "page_lines", "paragraphs", "without_running_lines"]

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


@dataclass(frozen=True)
class Line:
    """One line of a page; positions in points, from the page's lower left corner.

    Attributes:
        top: Of the first character.
        base: Lower edge of the first character.
        bottom: Lower edge of the last one; the library joins some lines to one.
        breaks_word: The last word goes on in the next line.
    """

    text: str
    left: float
    right: float
    top: float
    base: float
    bottom: float
    breaks_word: bool = False

    @property
    def height(self) -> float:
        """Of its characters."""
        return self.top - self.base


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
            )
        position += len(raw)


def _clean(text: str) -> str:
    for mark in _SOFT_HYPHENS:
        text = text.replace(mark, "")
    return collapse(normalize_characters(strip_private_use(text)))


def without_running_lines(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """Return the pages without the lines that head or end most of them, page numbers too."""
    ends = Counter(key for lines in pages for key in {_running_key(line) for line in _ends(lines)})
    least = max(_LEAST_PAGES_OF_RUNNING_LINE, len(pages) // 2)
    running = {key for key, count in ends.items() if count >= least} | {"#"}
    return [_trimmed(lines, running) for lines in pages]


def _ends(lines: list[Line]) -> list[Line]:
    return [*lines[:2], *lines[-2:]]


def _trimmed(lines: list[Line], running: set[str]) -> list[Line]:
    edge = {id(line) for line in _ends(lines) if _running_key(line) in running}
    return [line for line in lines if id(line) not in edge]


def _running_key(line: Line) -> str:
    return _DIGITS.sub("#", line.text.casefold())


def paragraphs(lines: Sequence[Line]) -> list[str]:
    """Return lines joined to paragraphs; a list's items are paragraphs that begin with `- `."""
    if not lines:
        return []
    steps = [above.bottom - below.base for above, below in itertools.pairwise(lines)]
    usual = statistics.median([step for step in steps if step > 0] or [0.0])
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
