"""Names the columns of a markdown table for what is shown without its header row; pure."""

import re
from collections.abc import Iterable

__all__ = ["columns_at"]

_ROW = re.compile(r"[ \t>]*\|")
_RULE = re.compile(r"[ \t>]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*\Z")
_FENCE = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}(?=[^`]*\Z)|~{3,})(.*)")
# The bars around and between cells; a bar inside a cell has a backslash before it.
_BAR = re.compile(r"(?<!\\)\|")


def columns_at(text: str, offset: int) -> str | None:
    """The header of the table in whose body an offset lies, as `Name | Default`.

    Args:
        text: Markdown around the offset.
        offset: Where the part that is shown begins.

    Returns:
        None outside tables, in code, at the header itself, and when the text does not reach back
        to it.
    """
    begin = text.rfind("\n", 0, offset) + 1
    if not _ROW.match(text, begin):
        return None
    above = text[:begin].splitlines()
    if _ends_in_code(above):
        return None
    while above and _ROW.match(above[-1]):
        line = above.pop()
        if _RULE.match(line):
            return _joined(above[-1]) if above and _ROW.match(above[-1]) else None
    return None


def _ends_in_code(lines: Iterable[str]) -> bool:
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if found is None:
            continue
        if not fence:
            fence = found[1]
        elif found[1].startswith(fence) and not found[2].strip():
            fence = ""
    return bool(fence)


def _joined(row: str) -> str | None:
    cells = [cell.strip() for cell in _BAR.split(row)[1:-1]]
    return " | ".join(cells) if any(cells) else None
