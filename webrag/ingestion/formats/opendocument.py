"""OpenDocument texts, sheets and slides as Markdown, without what their readers do not see."""

import io
import zipfile
from copy import deepcopy
from typing import Any, Final

import anydoc
from lxml import etree

_NAMES: Final = ("drawing", "meta", "office", "presentation", "style", "table", "text")
_SPACES: Final = {name: f"urn:oasis:names:tc:opendocument:xmlns:{name}:1.0" for name in _NAMES}
_TABLE: Final = f"{{{_SPACES['table']}}}"
_KINDS: Final[dict[str, Any]] = {"presentation": "odp", "spreadsheet": "ods", "text": "odt"}
_PARTS: Final = ("content.xml", "meta.xml", "styles.xml")
# By the names of front matter.
_SAID: Final = {
    "title": "*[local-name() = 'title']",
    "author": "meta:initial-creator",
    "date": "meta:creation-date",
    "lastmod": "*[local-name() = 'date']",
}
# Styles of what is hidden, and those that are made of others.
_HIDING: Final = """
//style:style[*/@text:display = 'none' or */@table:display = 'false'
    or */@presentation:visibility = 'hidden'
    or contains($styles, concat('|', @style:parent-style-name, '|'))]/@style:name
"""
_RAISING: Final = "//style:style[starts-with(*/@style:text-position, 'super')]/@style:name"
_STYLED: Final = """
//*[contains($styles, concat('|', @drawing:style-name | @table:style-name | @text:style-name, '|'))]
"""
# What is hidden, deleted or a reviewer's, lists of what stands elsewhere, and margins of slides.
_UNSEEN: Final = """
//text:*[@text:is-hidden = 'true' or @text:display = 'none']
| //text:p[.//text:hidden-paragraph/@text:is-hidden = 'true']
| //table:table-row[@table:visibility = 'collapse'] | //*[local-name() = 'tracked-changes']
| //office:annotation | //text:ruby-text | //*[@presentation:placeholder = 'true']
| //text:table-of-content | //text:*[substring-after(local-name(), '-') = 'index']
| //*[contains('|date-time|footer|header|page-number|', concat('|', @presentation:class, '|'))]
"""
_COUNTS: Final = ("columns-repeated", "rows-spanned", "columns-spanned")
_MOST_BYTES, _MOST_PARENTS, _MOST_SPAN = 100_000_000, 5, 200


def read_open_document(body: bytes) -> tuple[str, dict[str, str]]:
    """Read a text, workbook or presentation, and the title, author and days that it names.

    Whatever this raises says that the document is damaged, or holds too much.
    """
    with zipfile.ZipFile(io.BytesIO(body)) as package:
        # Formulas are documents of their own in folders.
        read = [each for each in package.infolist() if each.filename.split("/")[-1] in _PARTS]
        if sum(each.file_size for each in read) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES:,} bytes of XML")
        parser = etree.XMLParser(resolve_entities=False, remove_comments=True, remove_pis=True)
        parts = {each.filename: etree.fromstring(package.read(each), parser) for each in read}
    content = parts["content.xml"]
    _drop_unseen(content, parts.get("styles.xml", content))
    for table in _find(content, "//table:table"):
        _lay_out(table)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as package:
        for name, part in parts.items():
            package.writestr(name, etree.tostring(part))
    kind = _find(content, "local-name(office:body/*)")
    meta = parts.get("meta.xml", content)
    said = {name: f"{_find(meta, f'string(//office:meta/{path})')}" for name, path in _SAID.items()}
    return anydoc.to_markdown_bytes(packed.getvalue(), _KINDS[kind]), said


def _find(element: Any, path: str, **values: Any) -> Any:
    return element.xpath(path, namespaces=_SPACES, **values)


def _drop_unseen(content: Any, common: Any) -> None:
    hiding = raising = "|"
    for _ in range(_MOST_PARENTS):
        names = [name for part in (common, content) for name in _find(part, _HIDING, styles=hiding)]
        hiding = f"|{''.join(f'{name}|' for name in names)}"
    for each in (*_find(content, _STYLED, styles=hiding), *_find(content, _UNSEEN)):
        each.tag = "unseen"
    etree.strip_elements(content, "unseen", with_tail=False)
    raising += "".join(f"{name}|" for name in _find(content, _RAISING))
    for each in _find(content, _STYLED, styles=raising):
        if (each.text or "").isdigit():
            each.text = f"^{each.text}"  # Markdown has no other sign


def _lay_out(table: Any) -> None:
    """Leave out what is empty or hidden, and write what merged cells say into all their places."""
    is_sheet = _find(table, "boolean(parent::office:spreadsheet)")
    hidden: list[range] = []
    place = 0
    for column in _find(table, ".//table:table-column") if is_sheet else ():
        count = int(column.get(f"{_TABLE}number-columns-repeated", 1))
        if column.get(f"{_TABLE}visibility") == "collapse":
            hidden.append(range(place, place + count))
        place += count
    depth = _find(table, "count(ancestor-or-self::table:table)")
    rows = _find(table, ".//table:table-row[count(ancestor::table:table) = $depth]", depth=depth)
    reached: dict[int, tuple[int, Any]] = {}
    for row in rows:
        reached = _fill(row, reached, hidden)
        while len(row) and not _find(row[-1], "boolean(normalize-space()) or .//drawing:*"):
            row.remove(row[-1])
        if not len(row):
            row.getparent().remove(row)
    shown = [row for row in rows if len(row)]
    if is_sheet and shown:
        head = etree.Element(f"{_TABLE}table-header-rows")
        head.append(shown[0])
        table.insert(0, head)


def _fill(
    row: Any, reached: dict[int, tuple[int, Any]], hidden: list[range]
) -> dict[int, tuple[int, Any]]:
    """Repeat in a row what reaches into its columns: for how many rows, and from which cell.

    Gives what reaches into the next row.
    """
    origins: list[tuple[Any, Any]] = []
    place = 0
    for cell in list(row):
        count, rows, columns = (
            int(cell.attrib.pop(f"{_TABLE}number-{name}", 1)) for name in _COUNTS
        )
        ends = place + count
        if cell.tag == f"{_TABLE}table-cell":
            span = range(place, place + min(columns, _MOST_SPAN))
            reached |= dict.fromkeys(span, (rows, cell))
        origins.append((cell, reached.get(place, (0, cell))[1]))
        count -= sum(max(0, min(ends, each.stop) - max(place, each.start)) for each in hidden)
        cell.set(f"{_TABLE}number-columns-repeated", str(count))
        if not count:
            row.remove(cell)
        place = ends
    covered = [(cell, origin) for cell, origin in origins if cell is not origin]
    # A line over the whole table is said once.
    said = {origin for _, origin in origins if covered and _find(origin, "normalize-space()")}
    for cell, origin in covered:
        cell.tag = origin.tag
        cell[:] = deepcopy(list(origin)) if len(said) > 1 else []
    return {at: (left - 1, origin) for at, (left, origin) in reached.items() if left > 1}
