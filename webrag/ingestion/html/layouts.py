"""Makes elements of layouts that stand for them, and each row of a table readable alone.

The only text it removes is what removed controls leave behind (empty rows, titles without their
contents, lone separators) and what tables show without saying anything: lines drawn in them, the
rows that only draw one, and tables of empty cells.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import pairwise, takewhile
from typing import Final

from selectolax.lexbor import LexborNode

from webrag.ingestion.formats.markdown import names_columns
from webrag.ingestion.html.tree import (
    BLOCK_TAGS,
    CELL_LINE,
    ancestors,
    attribute,
    drop,
    element,
    inline_text,
    is_blank,
    move_children,
    next_element,
    outermost,
    rename,
    replace_with_contents,
    select,
)

_HEADINGS = "h1, h2, h3, h4, h5, h6"
_ROLE_CELLS = "[role=columnheader], [role=rowheader], [role=cell], [role=gridcell]"
_MOST_COLUMNS = 12
_LEAST_QUESTIONS: Final = 3  # fewer may be what a text asks its readers
_MOST_HEADING_CHARS: Final = 120
_NO_SECTIONS: Final = frozenset({"li", "td", "th", "dd", "blockquote", "figure", "details"})
# Doxygen and Scribble set each line of code in a box or a row, without any `<pre>`.
_CODE_BOXES = (
    "div.fragment:has(div.line):not(:has(pre)), .SCodeFlow > table, table.RktBlk, table.SVerbatim"
)
_SECTION: Final = re.compile(r"(\d{1,3}(?:\.\d{1,3}){1,4})\.? ([^\W\d_]).{0,100}[^\s.,:;!]")
_TOC_TITLE: Final = re.compile(r"(?:table of )?contents:?|on this page:?", re.IGNORECASE)


def rewrite_layouts(root: LexborNode) -> None:
    """Make headings, tables, code blocks and sections of what only looks like them."""
    for box in outermost(select(root, _CODE_BOXES)):
        rename(box, "pre")
    # Doxygen aligns the parameters of a function with a table.
    for table in select(root, "table.memname"):
        table.replace_with(element("p", element("code", inline_text(table))))
    _set_in_line(root)
    _lift_table_headings(root)
    _unwrap_section_lists(root)
    for grid in reversed(select(root, ".summary-table, div[role=table], div[role=grid]")):
        if rows := _rows_of(grid):
            _tabulate(grid, rows)
    _raise_questions(root)
    _raise_numbered(root)
    _drop_contents_titles(root)
    _drop_lone_dots(root)
    _flatten_headings(root)


def name_page(root: LexborNode) -> None:
    """Make the title a heading that Doxygen writes into a plain box.

    To be called before content is told from what is around it, where a title stays.
    """
    title = root.css_first(".headertitle > .title")
    if title is not None and root.css_first("h1") is None:
        title.replace_with(element("h1", inline_text(title)))


def _set_in_line(root: LexborNode) -> None:
    """YARD sets a paragraph into the line of the name and type that it is about."""
    for box in select(root, "li > div.inline"):
        first = next(box.iter(include_text=False), None)
        if first is not None and first.tag == "p":
            first.unwrap()
        box.unwrap()


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
    name = "" if first is None else inline_text(first)
    text = inline_text(item)
    return bool(name) and text.startswith(name) and len(text) > len(name)


def _rows_of(grid: LexborNode) -> list[list[LexborNode]]:
    """The cells of a table that is made of boxes.

    Javadoc lays those of its summaries side by side, header cells first; others say by roles only
    what is a table.
    """
    cells = list(grid.iter(include_text=False))
    columns = sum("table-header" in attribute(cell, "class").split() for cell in cells)
    if 0 < columns <= _MOST_COLUMNS and len(cells) % columns == 0:
        return [cells[start : start + columns] for start in range(0, len(cells), columns)]
    rows = [select(row, _ROLE_CELLS) for row in select(grid, "[role=row]")]
    return rows if grid.css_first("table, pre") is None and all(rows) else []


def _tabulate(grid: LexborNode, rows: Sequence[Sequence[LexborNode]]) -> None:
    table = grid.parser.create_node("table")
    grid.insert_before(table, move=True)
    for number, row in enumerate(rows):
        line = grid.parser.create_node("tr")
        table.insert_child(line, move=True)
        for cell in row:
            line.insert_child(rename(cell, "td" if number else "th"), move=True)
    grid.decompose()


def _raise_questions(root: LexborNode) -> None:
    """Make headings of bold lines that ask, where several stand beside each other."""
    asking: list[tuple[LexborNode, list[LexborNode], str]] = []
    level = 1
    for node in select(root, f"{_HEADINGS}, p"):
        if node.tag != "p":
            level = int((node.tag or "h1")[1])
        elif (bold := _bold_line(node)) and inline_text(bold[-1]).endswith(("?", "\uff1f")):
            asking.append((node, bold, f"h{min(level + 1, 6)}"))
    beside = Counter(line.parent.mem_id for line, _, _ in asking if line.parent)
    for line, bold, tag in asking:
        if line.parent is not None and beside[line.parent.mem_id] >= _LEAST_QUESTIONS:
            heading = line.parser.create_node(tag)
            line.insert_before(heading, move=True)
            for part in bold:
                move_children(part, heading)
            drop(bold)
            if not shows_something(line):
                line.decompose()


def _raise_numbered(root: LexborNode) -> None:
    """Make headings of titles such as "4.5.1 Setup" that stand alone where links can lead to."""
    for line in select(root, "p[id], p:has(> a[name]), p:has(> a[id])"):
        title = _SECTION.fullmatch(inline_text(line))
        dots = title[1].count(".") if title else 0
        # "2.5 cups of flour" is an amount.
        is_title = title is not None and (dots > 1 or not title[2].islower())
        if is_title and not any(above.tag in _NO_SECTIONS for above in ancestors(line)):
            rename(line, f"h{min(dots + 1, 6)}")


def _bold_line(line: LexborNode) -> list[LexborNode]:
    """The bold words that a paragraph, or its first line, consists of."""
    bold: list[LexborNode] = []
    for child in takewhile(lambda each: each.tag != "br", _shown_children(line)):
        if child.tag not in ("strong", "b"):
            return []
        bold.append(child)
        if [each.tag for each in _shown_children(child)][-1:] == ["br"]:
            break
    is_short = sum(len(inline_text(each)) for each in bold) <= _MOST_HEADING_CHARS
    is_placed = any(above.tag in _NO_SECTIONS for above in ancestors(line))
    return bold if is_short and not is_placed else []


def _shown_children(node: LexborNode) -> Iterator[LexborNode]:
    children = node.iter(include_text=True)
    return (e for e in children if not e.is_text_node or (e.text_content or "").strip())


def _drop_contents_titles(root: LexborNode) -> None:
    """The title of a table of contents that was removed with the page's navigation."""
    drop(box for box in select(root, "details") if _TOC_TITLE.fullmatch(inline_text(box)))
    for heading in select(root, _HEADINGS):
        following = next_element(heading)
        ends = following is None or following.tag in _HEADINGS.split(", ")
        if ends and _TOC_TITLE.fullmatch(inline_text(heading)):
            heading.decompose()


def _drop_lone_dots(root: LexborNode) -> None:
    """Rustdoc sets dots between a version and controls that were removed."""
    for version in select(root, "span.since"):
        for beside in list(version.parent.iter(include_text=True)) if version.parent else []:
            if beside.is_text_node and not (beside.text_content or "").strip("· \n"):
                beside.remove()


def _flatten_headings(root: LexborNode) -> None:
    """GitBook builds headings of boxes, one of them for the mark that links to the heading.

    Gi-docgen draws a sign between the parts of a name, in an empty box.
    """
    for heading in select(root, _HEADINGS):
        for box in select(heading, "span.sep"):
            if not inline_text(box):
                box.replace_with(" ")
        boxes = select(heading, "div, p")
        drop(box for box in boxes if not inline_text(box) and box.css_first("img") is None)
        for box in select(heading, "div, p"):
            if box.prev is not None:
                box.insert_before(" ")
            box.unwrap()


# As browsers and spreadsheets: a wrong number must not make a table of millions of cells.
_MOST_SPAN: Final = 200
_MOST_CELLS: Final = 50_000
_BLOCKS: Final = ", ".join(sorted(BLOCK_TAGS - {"td", "th"}))
_LARGE_BLOCKS: Final = "td h1, td h2, td h3, td table"


def rewrite_tables(root: LexborNode) -> None:
    """Unwrap tables that only place blocks, lay out the others as rows, drop those that are empty.

    A column without a name becomes a list.
    A line drawn in a cell parts its text; a row that shows nothing else is no row.
    """
    for table in reversed(select(root, "table")):
        if not shows_something(table):
            table.decompose()
        elif _is_layout(table):
            unwrap_table(table)
        elif _is_column(table) and not _begins_with_name(table):
            _list(table)
        else:
            _lay_out(table)


def shows_something(node: LexborNode) -> bool:
    """Tell whether an element has text, an image, a control or a formula."""
    return bool(node.text().strip()) or node.css_first("img, input, math") is not None


def _lay_out(table: LexborNode) -> None:
    _lift_nested(table)
    rows = [row for row in _own(table, "tr") if _cells(row)]
    # They count for the spans of other rows, which write their text into them.
    empty = {row.mem_id for row in rows if not shows_something(row)}
    _repeat_spans(rows)
    is_parted = _is_header_parted(rows, empty)
    drop(row for row in rows if row.mem_id in empty)
    rows = _lift_titles(table, [row for row in rows if row.mem_id not in empty])
    # Rows of other sizes place things, and are stored as paragraphs.
    is_even = len({len(_cells(row)) for row in rows}) == 1
    for column in zip(*map(_cells, rows), strict=True) if is_even else ():
        drop(() if any(map(shows_something, column)) else column)
    if is_even and len(rows) > 1 and not (is_parted or _is_header(rows[0], rows[1:])):
        _add_header(rows[0])
    _join_headers(rows)
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
    """Tell a table that only places large blocks, or lists side by side."""
    cells = [cell for cell in own_cells(table) if shows_something(cell)]
    if attribute(table, "role") in ("presentation", "none") or not cells:
        return True
    holds_blocks = table.css_first(f"{_LARGE_BLOCKS}, td pre") is not None
    if holds_blocks and len(cells) <= 2:
        return True
    if _is_column(table):
        return len(cells) == 1 or holds_blocks or table.css_first("td > p + p") is not None
    has_lists = table.css_first("td > ul, td > ol, td > dl") is not None
    return has_lists and len(_own(table, "tr")) == 1 and not _names_columns(table)


def _is_column(table: LexborNode) -> bool:
    """Tell a table of one column without a name, whose rows are a list and no lines of code."""
    is_single = all(len(_cells(row)) == 1 for row in _own(table, "tr"))
    is_code = table.css_first("td[class*=code]") is not None
    return is_single and not is_code and not _names_columns(table)


def _begins_with_name(table: LexborNode) -> bool:
    first, *others = filter(shows_something, _own(table, "tr"))
    return bool(others) and _is_header(first, others)


def _names_columns(table: LexborNode) -> bool:
    return table.css_first("th, thead, caption") is not None


def _list(table: LexborNode) -> None:
    items = table.parser.create_node("ul")
    table.insert_before(items, move=True)
    for cell in filter(shows_something, own_cells(table)):
        items.insert_child(rename(cell, "li"), move=True)
    table.decompose()


def _lift_nested(table: LexborNode) -> None:
    """Make lines of a table of names and values in a cell; others stand behind the outer table."""
    for inner in reversed(_own(table, "table")):
        rows = [[*filter(shows_something, _cells(row))] for row in _own(inner, "tr")]
        if any(map(_compares, rows)) or inner.css_first("h1, h2, h3, pre") is not None:
            table.insert_after(inner, move=True)
            continue
        captions = [[each] for each in _own(inner, "caption") if shows_something(each)]
        for row in filter(None, [*captions, *rows]):
            line = inner.parser.create_node("div")
            inner.insert_before(line, move=True)
            for cell in row:
                inside = list(cell.iter(include_text=True))
                drop([*takewhile(is_blank, inside), *takewhile(is_blank, reversed(inside))])
                line.insert_child(" ")
                move_children(cell, line)
        inner.decompose()


def _compares(row: Sequence[LexborNode]) -> bool:
    """Tell a row of more than a name and its value, and one that names two columns."""
    return len(row) > 2 or (len(row) == 2 and all(cell.tag == "th" for cell in row))


def _cells(row: LexborNode) -> list[LexborNode]:
    return [cell for cell in row.iter(include_text=False) if cell.tag in ("td", "th")]


def _lift_titles(table: LexborNode, rows: list[LexborNode]) -> list[LexborNode]:
    """Put lines over the whole table, if it begins with one, above their rows; give the last rows.

    The others become tables of their own, whose first row may name columns; where it does not,
    the names of the first hold on.
    """
    if sum(len(_cells(row)) > 1 for row in rows) < 2 or not _is_title(rows[0]):
        return rows
    part: list[LexborNode] = []
    names: list[LexborNode] | None = None
    for row in rows:
        if not _is_title(row):
            cells = _cells(row)
            if names is None:
                names = [_copy(cell) for cell in cells if cell.tag == "th"]
            elif not part and len(names) == len(cells) and all(e.tag == "td" for e in cells):
                row.insert_before(element("tr", ""))
                part += filter(None, [row.prev])
                for name in names:
                    part[0].insert_child(name)
            part.append(row)
            continue
        if part:
            above = table.parser.create_node("table")
            table.insert_before(above, move=True)
            for each in part:
                above.insert_child(each, move=True)
            _lay_out(above)
        table.insert_before(rename(_cells(row)[0], "div"), move=True)
        row.decompose()
        part = []
    return part


def _is_title(row: LexborNode) -> bool:
    cells = _cells(row)
    return len(cells) == 1 and _span(cells[0], "colspan") > 1


def _repeat_spans(rows: Sequence[LexborNode]) -> None:
    """Write the text of each cell into all places that it reaches into."""
    if all(row.css_first("[rowspan], [colspan]") is None for row in rows):
        return
    width = max(sum(_span(cell, "colspan") for cell in _cells(row)) for row in rows)
    if width * len(rows) > _MOST_CELLS:
        return
    below: defaultdict[int, list[LexborNode]] = defaultdict(list)
    for row in rows:
        _fill_row(row, width, below)


def _fill_row(row: LexborNode, width: int, below: defaultdict[int, list[LexborNode]]) -> None:
    """Repeat the cells of a row, and those that reach into it: each as often as rows are left."""
    cells = _cells(row)
    column = 0

    def reach_into(put: Callable[[LexborNode], None]) -> None:
        nonlocal column
        while below[column]:
            put(_copy(below[column].pop()))
            column += 1

    for cell in cells:
        reach_into(cell.insert_before)
        across, down = _span(cell, "colspan"), _span(cell, "rowspan")
        if across == width and len(cells) == 1:
            return  # a line over the whole table is said once
        for name in ("rowspan", "colspan"):
            if name in cell.attributes:
                del cell.attrs[name]  # the converter would count it again
        for place in range(column, column + across):
            below[place] = [cell] * (down - 1) or below[place]
        for _ in range(across - 1):
            cell.insert_after(_copy(cell))
        column += across
    reach_into(row.insert_child)


def _copy(cell: LexborNode) -> LexborNode:
    """Its text alone: a link is at one place."""
    return element(cell.tag or "td", inline_text(cell))


def _span(cell: LexborNode, name: str) -> int:
    written = attribute(cell, name).strip()
    number = int(written) if written.isdecimal() and len(written) < 6 else 1
    return max(1, min(number, _MOST_SPAN))


def _is_header_parted(rows: Sequence[LexborNode], empty: Set[int]) -> bool:
    """Tell whether empty rows, which may be drawn as lines, stand below the first row alone."""
    shown = [place for place, row in enumerate(rows) if row.mem_id not in empty]
    parted = [place for place, below in pairwise(shown) if below > place + 1]
    return len(shown) > 1 and parted == shown[:1]


def _is_header(first: LexborNode, others: Sequence[LexborNode]) -> bool:
    """Tell whether the first row of a table names its columns, as far as tags and texts tell."""
    cells = [cell for cell in _cells(first) if shows_something(cell)]
    if first.parent is not None and first.parent.tag == "thead":
        return True
    if first.css_first("th") is not None:
        return all(cell.tag == "th" for cell in cells)
    if all(map(_is_bold, cells)) and not all(map(_is_bold, _cells(others[0]))):
        return True
    return names_columns([[*map(inline_text, _cells(row))] for row in (first, *others)])


def _is_bold(cell: LexborNode) -> bool:
    bold = cell.css_first("b, strong")
    return bold is not None and inline_text(bold) == inline_text(cell)


def _add_header(first: LexborNode) -> None:
    """Put a row of nameless columns above the first: the stored text needs one to be a table."""
    header = element("tr", "")
    for _ in _cells(first):
        header.insert_child(element("th", ""))
    first.insert_before(header)


def _join_headers(rows: Sequence[LexborNode]) -> None:
    """Name each column by all headers above it, the upper first."""
    heads = list(takewhile(lambda row: all(cell.tag == "th" for cell in _cells(row)), rows[:-1]))
    columns = [[*map(inline_text, _cells(row))] for row in heads]
    if len(heads) < 2 or len({*map(len, columns)}) > 1:
        return
    for cell, *said in zip(_cells(heads[0]), *columns, strict=True):
        names = list(dict.fromkeys(filter(None, said)))
        if names != said[:1]:
            cell.replace_with(element("th", " ".join(names)))
    drop(heads[1:])


def _part_lines(cell: LexborNode) -> None:
    """Mark where a line of a cell ends; a row of the stored text is one line."""
    inner = next(cell.iter(), None)
    if inner is None or not cell.css_first("br, hr, p, div, li, pre, dd, blockquote"):
        return
    for pre in select(cell, "pre"):
        _part_code(pre)
    for end in select(cell, "br, hr"):
        end.replace_with(CELL_LINE)
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
