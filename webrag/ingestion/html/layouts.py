"""Turns what generators lay out with neutral elements into the elements it stands for.

It works on the main content before anything is read from it. The only text it removes is what
removed controls leave behind: empty rows, titles without their contents, lone separators.
"""

import re
from collections.abc import Sequence
from typing import Final

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.tree import (
    ancestors,
    attribute,
    drop,
    element,
    inline_text,
    next_element,
    rename,
    select,
)

_HEADINGS = "h1, h2, h3, h4, h5, h6"
_MOST_COLUMNS = 12
_TOC_TITLE: Final = re.compile(r"(?:table of )?contents:?|on this page:?", re.IGNORECASE)


def rewrite_layouts(root: LexborNode) -> None:
    """Make headings, tables, code blocks and sections of what only looks like them."""
    _name_page(root)
    _number_code_lines(root)
    _name_icons(root)
    _flatten_prototypes(root)
    _lift_table_headings(root)
    _unwrap_section_lists(root)
    for grid in reversed(select(root, ".summary-table")):
        _tabulate_summary(grid)
    for grid in reversed(select(root, "div[role=table], div[role=grid]")):
        _tabulate_roles(grid)
    _drop_empty_items(root)
    _drop_contents_titles(root)
    _drop_lone_dots(root)
    _flatten_headings(root)


def _name_page(root: LexborNode) -> None:
    """Doxygen writes the page's title into a plain box."""
    title = root.css_first(".headertitle > .title")
    if title is not None and root.css_first("h1") is None:
        title.replace_with(element("h1", inline_text(title)))


def _number_code_lines(root: LexborNode) -> None:
    """Doxygen sets each line of code in a box of its own, without any `<pre>`."""
    for box in select(root, "div.fragment"):
        if box.css_first("div.line") is not None and box.css_first("pre") is None:
            rename(box, "pre")


def _name_icons(root: LexborNode) -> None:
    """AsciiDoc's notes may have only a picture for a title, which says its name when pointed at."""
    for cell in select(root, ".admonitionblock td.icon"):
        icon = cell.css_first("i[title]")
        if icon is not None and not inline_text(cell):
            title = element("div", attribute(icon, "title"))
            title.attrs["class"] = "title"
            icon.replace_with(title)


def _flatten_prototypes(root: LexborNode) -> None:
    """Doxygen aligns the parameters of a function with a table."""
    for table in select(root, "table.memname"):
        line = element("p", "")
        line.insert_child(element("code", inline_text(table)))
        table.replace_with(line)


def _lift_table_headings(root: LexborNode) -> None:
    """A heading that is a row of its table would not begin a section."""
    for row in select(root, "tr.heading"):
        heading = row.css_first(_HEADINGS)
        table = next((above for above in ancestors(row) if above.tag == "table"), None)
        if heading is not None and table is not None:
            table.insert_before(heading, move=True)
            row.decompose()
    drop(row for row in select(root, "tr[class^=separator]") if not inline_text(row))


def _unwrap_section_lists(root: LexborNode) -> None:
    """Javadoc makes list items of whole sections; their headings must not lie in a list."""
    for outer in reversed(select(root, "ul, ol")):
        items = [child for child in outer.iter(include_text=False) if child.tag == "li"]
        if items and all(_is_section(item) for item in items):
            for item in items:
                rename(item, "div")
            rename(outer, "div")


def _is_section(item: LexborNode) -> bool:
    first = item.css_first(_HEADINGS)
    if first is None:
        return False
    text = inline_text(item)
    name = inline_text(first)
    return bool(name) and text.startswith(name) and len(text) > len(name)


def _tabulate_summary(grid: LexborNode) -> None:
    """Javadoc lays the cells of its summaries side by side, header cells first."""
    cells = list(grid.iter(include_text=False))
    columns = sum("table-header" in attribute(cell, "class").split() for cell in cells)
    if 0 < columns <= _MOST_COLUMNS and len(cells) % columns == 0:
        rows = [cells[start : start + columns] for start in range(0, len(cells), columns)]
        _tabulate(grid, rows)


def _tabulate_roles(grid: LexborNode) -> None:
    """Some generators say by roles only what is a table."""
    cells = "[role=columnheader], [role=rowheader], [role=cell], [role=gridcell]"
    rows = [select(row, cells) for row in select(grid, "[role=row]")]
    if rows and grid.css_first("table, pre") is None and all(map(len, rows)):
        _tabulate(grid, rows)


def _tabulate(grid: LexborNode, rows: Sequence[Sequence[LexborNode]]) -> None:
    table = grid.parser.create_node("table")
    grid.insert_before(table, move=True)
    for number, row in enumerate(rows):
        line = grid.parser.create_node("tr")
        table.insert_child(line, move=True)
        for cell in row:
            line.insert_child(rename(cell, "td" if number else "th"), move=True)
    grid.decompose()


def _drop_empty_items(root: LexborNode) -> None:
    """Drop what removed buttons leave of their row."""
    items = select(root, "ul > li")
    drop(
        item
        for item in items
        if not inline_text(item) and item.css_first("img, pre, table, math, input") is None
    )


def _drop_contents_titles(root: LexborNode) -> None:
    """The title of a table of contents that was removed with the page's navigation."""
    drop(box for box in select(root, "details") if _is_title_only(box))
    for heading in select(root, _HEADINGS):
        following = next_element(heading)
        ends = following is None or following.tag in _HEADINGS.split(", ")
        if ends and _TOC_TITLE.fullmatch(inline_text(heading)):
            heading.decompose()


def _is_title_only(box: LexborNode) -> bool:
    title = box.css_first("summary")
    if title is None or not _TOC_TITLE.fullmatch(inline_text(title)):
        return False
    return inline_text(box) == inline_text(title)


def _drop_lone_dots(root: LexborNode) -> None:
    """Rustdoc sets dots between a version and controls that were removed."""
    for version in select(root, "span.since"):
        for beside in list(version.parent.iter(include_text=True)) if version.parent else []:
            if beside.is_text_node and not (beside.text_content or "").strip("· \n"):
                beside.remove()


def _flatten_headings(root: LexborNode) -> None:
    """GitBook builds headings of boxes, one of them for the mark that links to the heading."""
    for heading in select(root, _HEADINGS):
        boxes = select(heading, "div, p")
        drop(box for box in boxes if not inline_text(box) and box.css_first("img") is None)
        for box in select(heading, "div, p"):
            if box.prev is not None:
                box.insert_before(" ")
            box.unwrap()
