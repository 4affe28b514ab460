"""HTML tables to aligned text; cell contents are rendered by the caller's function."""

from collections.abc import Callable, Iterator, Sequence

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.tree import attribute

__all__ = ["table_to_text"]

# Cells beyond it are not padded to: alignment helps the eye, runs of blanks cost tokens.
_MAX_PADDING = 30
_MAX_SPAN = 50


def table_to_text(table: LexborNode, render_cell: Callable[[LexborNode], str]) -> str:
    """The table as pipe-delimited, aligned rows with a rule under the header.

    A cell that spans columns or rows stands in the first of its places; the others stay empty.

    Args:
        table: A `<table>` element.
        render_cell: Text of one cell; line breaks and pipes in it are dealt with here.

    Returns:
        An empty string when the table has no cells.
    """
    rows = [row for row in _grid(table, render_cell) if any(row)]
    if not rows:
        return ""
    width = max(map(len, rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    sizes = [min(_MAX_PADDING, max(3, *(len(row[i]) for row in rows))) for i in range(width)]
    lines = [_line(rows[0], sizes), "|" + "|".join("-" * (size + 2) for size in sizes) + "|"]
    lines += [_line(row, sizes) for row in rows[1:]]
    caption = table.css_first("caption")
    title = " ".join(render_cell(caption).split()) if caption is not None else ""
    return "\n".join(([title, ""] if title else []) + lines)


def _line(row: Sequence[str], sizes: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)) + " |"


def _grid(table: LexborNode, render_cell: Callable[[LexborNode], str]) -> list[list[str]]:
    grid: list[list[str]] = []
    reserved: dict[int, int] = {}
    for row in _rows(table):
        cells: list[str] = []
        for cell in _cells(row):
            _skip_reserved(cells, reserved)
            columns, rows = _span(cell, "colspan"), _span(cell, "rowspan")
            if rows > 1:
                reserved |= {len(cells) + i: rows for i in range(columns)}
            cells += [_flat(render_cell(cell))] + [""] * (columns - 1)
        _skip_reserved(cells, reserved)
        reserved = {column: left - 1 for column, left in reserved.items() if left > 1}
        grid.append(cells)
    return grid


def _skip_reserved(cells: list[str], reserved: dict[int, int]) -> None:
    while len(cells) in reserved:
        cells.append("")


def _rows(table: LexborNode) -> Iterator[LexborNode]:
    for child in table.iter(include_text=False):
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child.iter(include_text=False) if row.tag == "tr")


def _cells(row: LexborNode) -> Iterator[LexborNode]:
    return (cell for cell in row.iter(include_text=False) if cell.tag in ("td", "th"))


def _span(cell: LexborNode, name: str) -> int:
    value = (attribute(cell, name) or "1").strip()
    return min(_MAX_SPAN, max(1, int(value))) if value.isascii() and value.isdigit() else 1


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
