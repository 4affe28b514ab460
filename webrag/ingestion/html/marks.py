"""Private-use marks that survive the conversion and show where links, headings and terms are.

It places marks in a parsed page and reads them back from markdown; it converts nothing.
"""

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.tree import BLOCK_TAGS

# Stands for a backslash of the page while the converter's own escapes are told from it.
BACKSLASH = "\ue010"
TERM_END = "\ue005"
TERM_START = "\ue006"
HEADING = "\ue003"
QUOTE = "\ue007"
# Stands where the page shows a number between two lines of code.
LINE_NUMBER = "\ue008"
_LINK_END_BASE = 0x100000
_LINK_BASE = 0xF0000
MAX_LINKS = 20_000

_MARK = re.compile(f"[{HEADING}\U000f0000-\U0010ffff]")
_COMBINING_AFTER_MARK = re.compile(f"(?<!{_MARK.pattern})({_MARK.pattern}++)([\u0300-\u036f]++)")


@dataclass(frozen=True)
class Span:
    """Where a link's text lies in the markdown, end excluded."""

    start: int
    end: int


def link_marks(number: int) -> tuple[str, str]:
    """Return the marks before and after the `number`-th link, below `MAX_LINKS`."""
    return chr(_LINK_BASE + number), chr(_LINK_END_BASE + number)


def mark_start(node: LexborNode, mark: str) -> None:
    """Put a mark before the first visible character of an element.

    Inside leading blocks, so that it does not become a paragraph of its own; elements that hold
    no prose there (lists, code, tables) are left alone.
    """
    if node.tag in ("ul", "ol", "pre", "table", "dl", "hr"):
        return
    child = node.first_child
    while child is not None and _is_blank(child):
        child = child.next
    if child is None:
        node.insert_child(mark)
    elif child.is_text_node:
        text = child.text_content or ""
        lead = len(text) - len(text.lstrip())
        child.replace_with(f"{text[:lead]}{mark}{text[lead:]}")
    elif child.tag in BLOCK_TAGS:
        mark_start(child, mark)
    else:
        child.insert_before(mark)


def mark_end(node: LexborNode, mark: str) -> None:
    """Put a mark after the last visible character of an element, as `mark_start` does before."""
    child = node.last_child
    while child is not None and _is_blank(child):
        child = child.prev
    if child is None:
        node.insert_child(mark)
    elif child.is_text_node:
        text = child.text_content or ""
        kept = len(text.rstrip())
        child.replace_with(f"{text[:kept]}{mark}{text[kept:]}")
    elif child.tag in BLOCK_TAGS:
        mark_end(child, mark)
    else:
        child.insert_after(mark)


def _is_blank(node: LexborNode) -> bool:
    if node.is_comment_node:
        return True
    return node.is_text_node and not (node.text_content or "").strip()


def read_marks(marked: str) -> tuple[str, dict[int, Span], list[int]]:
    """Return text without marks, each link's span in it, and where headings begin.

    A link whose end got lost ends where it starts.
    """
    marked = _COMBINING_AFTER_MARK.sub(r"\2\1", marked)
    pieces: list[str] = []
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    headings: list[int] = []
    length = 0
    position = 0
    for match in _MARK.finditer(marked):
        piece = marked[position : match.start()]
        pieces.append(piece)
        length += len(piece)
        position = match.end()
        code = ord(match.group())
        if match.group() == HEADING:
            headings.append(length)
        elif code >= _LINK_END_BASE:
            ends[code - _LINK_END_BASE] = length
        else:
            starts.setdefault(code - _LINK_BASE, length)
    pieces.append(marked[position:])
    spans = {n: Span(start, max(start, ends.get(n, start))) for n, start in starts.items()}
    return "".join(pieces), spans, headings
