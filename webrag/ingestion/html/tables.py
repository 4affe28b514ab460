"""Tells tables of data from tables that only lay a page out; it rewrites no data."""

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.tree import ancestors, attribute, replace_with_contents, select

__all__ = ["unwrap_layout_tables", "unwrap_table"]


def unwrap_layout_tables(root: LexborNode) -> None:
    """Replace tables that only place blocks on the page by these blocks."""
    for table in reversed(select(root, "table")):
        is_layout = attribute(table, "role") in ("presentation", "none")
        cells = select(table, "td, th")
        holds_blocks = table.css_first("td pre, td h1, td h2, td h3, td table") is not None
        if is_layout or (holds_blocks and len(cells) <= 2) or not cells:
            unwrap_table(table)


def unwrap_table(table: LexborNode) -> None:
    """Replace a table by the contents of its cells, each as a block of its own."""
    replace_with_contents(table, _own_cells(table))


def _own_cells(table: LexborNode) -> list[LexborNode]:
    cells = select(table, "td, th, caption")
    return [cell for cell in cells if _table_of(cell) == table.mem_id]


def _table_of(cell: LexborNode) -> int | None:
    return next((above.mem_id for above in ancestors(cell) if above.tag == "table"), None)
