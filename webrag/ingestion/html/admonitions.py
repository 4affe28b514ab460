"""Keeps the title of a note, tip or warning together with its text; it knows no other boxes."""

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.marks import TERM_END, TERM_START, mark_start
from webrag.ingestion.html.tables import unwrap_table
from webrag.ingestion.html.tree import (
    attribute,
    element,
    inline_text,
    replace_with_contents,
    select,
)

__all__ = ["rewrite_admonitions"]

_ADMONITIONS = (
    ".alert, .admonition, .admonitionblock, .theme-admonition, .markdown-alert, .callout,"
    " .custom-block, .starlight-aside, .notecard, .nextra-callout, div.note, div.tip, div.warning,"
    " div.caution, div.important, div.danger, div.NOTE, div.TIP, div.WARNING, div.CAUTION,"
    " div.IMPORTANT"
)
# DocBook and AsciiDoc set the icon beside the text with a table.
_ADMONITION_TABLES = (
    ".admonitionblock > table, div.note > table, div.tip > table, div.warning > table,"
    " div.caution > table, div.important > table"
)
_ADMONITION_TITLES = (
    ".admonition-title, .title, .markdown-alert-title, .callout-title, .alert-heading,"
    " .admonition-heading, .custom-block-title, .starlight-aside__title,"
    " [class*=admonitionHeading], h2, h3, h4, h5, h6"
)


def rewrite_admonitions(root: LexborNode) -> None:
    """Make a note's title a bold line of the same block as its text, not a heading."""
    for table in reversed(select(root, _ADMONITION_TABLES)):
        for cell in select(table, "th"):
            line = element("p", inline_text(cell))
            line.attrs["class"] = "admonition-title"
            for child in list(cell.iter(include_text=True)):
                child.remove()
            cell.insert_child(line)
        unwrap_table(table)
    for box in reversed(select(root, "blockquote.blockquote-tag")):
        _join_tagged_quotation(box)
    for box in reversed(select(root, 'blockquote[class^="markdown-alert-"]')):
        first = box.css_first("p")
        if first is not None:
            kind = attribute(box, "class").removeprefix("markdown-alert-").split()[0]
            first.insert_before(_title_line(kind.capitalize()))
            mark_start(first, TERM_START)
        replace_with_contents(box, [box])
    for box in select(root, _ADMONITIONS):
        title = box.css_first(_ADMONITION_TITLES)
        if title is None or not _is_short_first(title, box):
            continue
        following = _first_block_after(title, box)
        title.replace_with(_title_line(inline_text(title)))
        if following is not None:
            mark_start(following, TERM_START)


def _join_tagged_quotation(box: LexborNode) -> None:
    """MdBook makes a note of a quotation whose first paragraph is the title."""
    title = box.css_first(".blockquote-tag-title")
    following = _first_block_after(title, box) if title is not None else None
    if title is not None and following is not None:
        title.replace_with(_title_line(inline_text(title)))
        mark_start(following, TERM_START)
    replace_with_contents(box, [box])


def _title_line(text: str) -> LexborNode:
    paragraph = element("p", "")
    paragraph.insert_child(element("strong", text))
    paragraph.insert_child(TERM_END)
    return paragraph


def _is_short_first(title: LexborNode, box: LexborNode) -> bool:
    text = inline_text(title)
    return 0 < len(text) <= 120 and inline_text(box).startswith(text)


def _first_block_after(title: LexborNode, box: LexborNode) -> LexborNode | None:
    node: LexborNode | None = title
    while node is not None and node.mem_id != box.mem_id:
        following = node.next
        while following is not None and not following.is_element_node:
            following = following.next
        if following is not None:
            return following
        node = node.parent
    return None
