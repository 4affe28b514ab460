"""Makes each row of a table readable alone: spans repeated, lines of a cell apart, headers one."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.tree import (
    BLOCK_TAGS,
    CELL_LINE,
    ancestors,
    attribute,
    drop,
    element,
    inline_text,
    replace_with_contents,
    select,
)

# As browsers and spreadsheets: a wrong number must not make a table of millions of cells.
_MOST_SPAN: Final = 200
_MOST_CELLS: Final = 50_000
# Cells that reach into the rows below, by column, and into how many of them.
_Below: TypeAlias = dict[int, tuple[LexborNode, int]]
_BLOCKS: Final = ", ".join(sorted(BLOCK_TAGS - {"td", "th"}))
_LARGE_BLOCKS: Final = "td h1, td h2, td h3, td table"


def rewrite_tables(root: LexborNode) -> None:
    """Unwrap tables that only place blocks, and lay out the others as plain rows and columns."""
    for table in reversed(select(root, "table")):
        if _is_layout(table):
            unwrap_table(table)
            continue
        _lift_nested(table)
        _fill_spans(table)
        for cell in own_cells(table):
            if cell.tag != "caption":
                _part_lines(cell)


def unwrap_table(table: LexborNode) -> None:
    """Replace a table by the contents of its cells, each as a block of its own."""
    replace_with_contents(table, own_cells(table))


def own_cells(table: LexborNode) -> list[LexborNode]:
    """The cells and captions of a table, without those of tables in it."""
    return _own(table, "td, th, caption")


def _own(table: LexborNode, selector: str) -> list[LexborNode]:
    return [node for node in select(table, selector) if _table_of(node) == table.mem_id]


def _table_of(node: LexborNode) -> int | None:
    return next((above.mem_id for above in ancestors(node) if above.tag == "table"), None)


def _is_layout(table: LexborNode) -> bool:
    cells = own_cells(table)
    if attribute(table, "role") in ("presentation", "none") or not cells:
        return True
    holds_blocks = table.css_first(f"{_LARGE_BLOCKS}, td pre") is not None
    return holds_blocks and len(cells) <= 2


def _lift_nested(table: LexborNode) -> None:
    """A table in a cell stands behind the table around it, which has no place for its rows."""
    for inner in reversed(select(table, "table")):
        # A selector finds the element it is asked of as well.
        if inner.mem_id != table.mem_id and _table_of(inner) == table.mem_id:
            table.insert_after(inner, move=True)


def _fill_spans(table: LexborNode) -> None:
    rows = [row for row in _own(table, "tr") if _cells(row)]
    if not rows:
        return
    spans = "[rowspan], [colspan]"
    if any(row.css_first(spans) is not None for row in rows):
        _repeat_spans(rows)
    heads = _header_rows(rows)
    if len(heads) > 1:
        _join_headers(heads)


def _cells(row: LexborNode) -> list[LexborNode]:
    return [cell for cell in row.iter(include_text=False) if cell.tag in ("td", "th")]


def _repeat_spans(rows: Sequence[LexborNode]) -> None:
    width = max(sum(_span(cell, "colspan") for cell in _cells(row)) for row in rows)
    if width * len(rows) > _MOST_CELLS:
        return
    below: _Below = {}
    for row in rows:
        _fill_row(row, width, below)


def _fill_row(row: LexborNode, width: int, below: _Below) -> None:
    cells = _cells(row)
    column = 0
    for cell in cells:
        column = _copy_from_above(below, column, cell)
        across, down = _span(cell, "colspan"), _span(cell, "rowspan")
        if across == width and len(cells) == 1:
            return  # a line over the whole table is said once
        for name in ("rowspan", "colspan"):
            if name in cell.attributes:
                del cell.attrs[name]  # the converter would count it again
        for place in range(column, column + across):
            if down > 1:
                below[place] = (cell, down - 1)
        for _ in range(across - 1):
            cell.insert_after(_copy(cell))
        column += across
    while column in below:
        row.insert_child(_copy(_taken(below, column)))
        column += 1


def _copy_from_above(below: _Below, column: int, cell: LexborNode) -> int:
    while column in below:
        cell.insert_before(_copy(_taken(below, column)))
        column += 1
    return column


def _taken(below: _Below, column: int) -> LexborNode:
    cell, left = below.pop(column)
    if left > 1:
        below[column] = (cell, left - 1)
    return cell


def _copy(cell: LexborNode) -> LexborNode:
    """Its text alone: a link is at one place."""
    return element(cell.tag or "td", inline_text(cell))


def _span(cell: LexborNode, name: str) -> int:
    written = attribute(cell, name).strip()
    number = int(written) if written.isdecimal() and len(written) < 6 else 1
    return max(1, min(number, _MOST_SPAN))


def _header_rows(rows: Sequence[LexborNode]) -> list[LexborNode]:
    """The rows that a table begins with and that hold nothing but headers."""
    heads: list[LexborNode] = []
    for row in rows[:-1]:
        if any(cell.tag != "th" for cell in _cells(row)):
            break
        heads.append(row)
    return heads


def _join_headers(heads: Sequence[LexborNode]) -> None:
    """Name each column by all headers above it, the upper first."""
    columns = [[inline_text(cell) for cell in _cells(row)] for row in heads]
    if len({len(row) for row in columns}) > 1:
        return
    for place, cell in enumerate(_cells(heads[0])):
        names = list(dict.fromkeys(row[place] for row in columns if row[place]))
        if len(names) > 1 or inline_text(cell) not in names:
            made = element("th", " ".join(names))
            cell.insert_before(made)
            cell.decompose()
    drop(heads[1:])


def _part_lines(cell: LexborNode) -> None:
    """Mark where a line of a cell ends; a row of the stored text is one line."""
    if not cell.css_first("br, p, div, li, pre, dd, blockquote"):
        return
    for pre in select(cell, "pre"):
        _part_code(pre)
    for rest in select(cell, "br"):
        rest.replace_with(CELL_LINE)
    for block in select(cell, _BLOCKS):
        block.insert_before(CELL_LINE)
        block.insert_after(CELL_LINE)
        block.unwrap()


def _part_code(pre: LexborNode) -> None:
    lines = [line for line in (pre.text() or "").split("\n") if line.strip()]
    for place, line in enumerate(lines):
        if place:
            pre.insert_before(CELL_LINE)
        pre.insert_before(element("code", line))
    pre.decompose()
