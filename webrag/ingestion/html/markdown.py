"""Turns prepared HTML into the stored markdown, and markdown into HTML; it knows no pages."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyromark
from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

from webrag.ingestion.characters import collapse, normalize_characters, storable
from webrag.ingestion.html.tree import (
    BACKSLASH,
    CELL_LINE,
    ITEM_NUMBER,
    LINE_NUMBER,
    QUOTE,
    TERM_END,
    TERM_START,
)

_OPTIONS = ConversionOptions(
    heading_style="atx",
    list_indent_type="spaces",
    bullets="-",
    code_block_style="backticks",
    newline_style="spaces",
    highlight_style="none",
    extract_metadata=False,
    skip_images=True,
    autolinks=False,
    expand_abbreviations=False,
    include_blockquote_citations=False,
    compact_tables=True,
    hidden_content="all",
    preprocessing=PreprocessingOptions(enabled=False),
    max_depth=2_000,
)
_EXTENSIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_FOOTNOTES
    | pyromark.Options.ENABLE_DEFINITION_LIST
    | pyromark.Options.ENABLE_GFM
    | pyromark.Options.ENABLE_HEADING_ATTRIBUTES
    | pyromark.Options.ENABLE_YAML_STYLE_METADATA_BLOCKS
    | pyromark.Options.ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS
)
_PREFORMATTED = re.compile(r"(<(pre|textarea)\b.*?(?:</\2\s*+>|\Z))", re.DOTALL | re.IGNORECASE)
_SOURCE_SPACE = re.compile(r"[ \t\r\f\n]{2,}|\n")
# The end of a line between two letters of scripts without blanks, and what may stand at it.
_WIDE = "[\u2e80-\u312f\u3190-\u9fff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]"
_INLINE_TAGS = r"(?:[\U000f0000-\U0010ffff]|</?(?:a|b|code|em|i|span|strong)\b[^<>]*+>)*+"
_WIDE_LETTER = re.compile(_WIDE)
_WIDE_LINE_END = re.compile(
    rf"({_WIDE}{_INLINE_TAGS})[ \t\r\f]*+\n\s*+(?={_WIDE})"
    rf"|(?<={_WIDE})[ \t\r\f]*+\n\s*+(?={_INLINE_TAGS}{_WIDE})"
)
# A cell's pipe and a line's first hash would change the structure; nothing else needs escaping.
_NEEDLESS_ESCAPE = re.compile(r"\\(?![|#])")
_JOINED_TERM = re.compile(f"{TERM_END}[ \t]*+\n[ \t>]*+(?:\n([ \t>]*+))?{TERM_START}")
_TERM_MARKS = re.compile(f"{TERM_END}[ \t]*{TERM_START}")
# The converter forgets the blank line between a paragraph and a quotation.
_GLUED_QUOTE = re.compile(f"([^\\s>][ \t]*)\n([ \t]*(?:>[ \t]*)+){QUOTE}")
_LONE_MARKS = re.compile("^([\ue003\U000f0000-\U0010ffff]+)[ \t]*\n+(?!```)", re.MULTILINE)
# What separates numbered lines of code in the stored text: a quotation stays on one side of it.
_NUMBERED_LINE = re.compile(f"\n([ \t>]*){LINE_NUMBER}")
_CELL_LINES = re.compile(f"(?<![ \t])[ \t]*+(?:{CELL_LINE}[ \t]*+)++")
# A cell begins and ends with its first and last line.
_OUTER_CELL_LINES = re.compile(rf"(?<=[^\\]\|){CELL_LINE}|{CELL_LINE}(?=\|)")
_ITEM_NUMBER = re.compile(rf"(?<!\d)\d++([.)]) {ITEM_NUMBER}(-?\d++){ITEM_NUMBER}")
_ENDING_BREAK = re.compile(r"[ \t](?<![ \t]{2})[ \t]*+(?:\n(?=[ \t>]*\n)|\Z)")


def marked_markdown(html: str) -> str:
    """Convert prepared HTML; marks in its text come through, backslashes as on the page.

    Args:
        html: Serialised from a parsed tree, so that `<pre` only occurs as a tag.
    """
    # A line break in the source is a space on the page; left in, it could start a list.
    pieces = _PREFORMATTED.split(html)  # text, preformatted, tag name, text, ...
    if _WIDE_LETTER.search(html):  # to look for ends of lines beside them takes longer
        pieces[::3] = (_WIDE_LINE_END.sub(r"\1", text) for text in pieces[::3])
    pieces[::3] = (_SOURCE_SPACE.sub(" ", text) for text in pieces[::3])
    del pieces[2::3]
    html = "".join(pieces).replace("\\", BACKSLASH)
    text = str(convert(html, _OPTIONS).content)
    text = _NEEDLESS_ESCAPE.sub("", text).replace(BACKSLASH, "\\")
    if QUOTE in text:
        text = _GLUED_QUOTE.sub(r"\1\n\n\2", text).replace(QUOTE, "")
    text = _JOINED_TERM.sub(r"  \n\1", text)
    text = _TERM_MARKS.sub(" ", text).replace(TERM_END, "").replace(TERM_START, "")
    if ITEM_NUMBER in text:
        text = _ITEM_NUMBER.sub(r"\2\1 ", text).replace(ITEM_NUMBER, "")
    if CELL_LINE in text:
        text = _OUTER_CELL_LINES.sub(" ", _CELL_LINES.sub(CELL_LINE, text))
        text = text.replace(CELL_LINE, "<br>")
    text = _LONE_MARKS.sub(r"\1", normalize_characters(text))
    text = _ENDING_BREAK.sub(lambda match: "\n" if match.group().endswith("\n") else "", text)
    return _NUMBERED_LINE.sub(r" \n\1", text).replace(LINE_NUMBER, "")


def html_from_markdown(markdown: str) -> str:
    """Render markdown, so that pages written in it take the same way as HTML pages."""
    return str(pyromark.html(markdown, options=_EXTENSIONS))


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Facts about a page beside its content; "" where nothing is known.

    Attributes:
        language: BCP 47 tag.
        published_at: A date in any form a page may use, as `modified_at`.
        links: Targets that the content may not show, such as a menu's.
    """

    title: str = ""
    description: str = ""
    author: str = ""
    language: str = ""
    published_at: str = ""
    modified_at: str = ""
    links: tuple[str, ...] = ()


_MAX_FACT_CHARS = 1_000


def fact_of(metadata: Mapping[str, Any], *names: str) -> str:
    """A fact of a page as one line: the first of several metadata that is text; "" without any."""
    values = (metadata.get(name) for name in names)
    found = next((value for value in values if isinstance(value, str) and value.strip()), "")
    return collapse(storable(found))[:_MAX_FACT_CHARS]


def page_html(content: str, facts: PageFacts) -> str:
    """A whole page, so that extraction treats the content like any other page's.

    Args:
        content: HTML of a page's body.
        facts: Go to the head; links to a menu after the content.
    """
    lang = f' lang="{html.escape(facts.language)}"' if facts.language else ""
    head = f"<title>{html.escape(facts.title)}</title>" if facts.title else ""
    for attribute, name, value in (
        ("name", "description", facts.description),
        ("name", "author", facts.author),
        ("property", "article:published_time", facts.published_at),
        ("property", "article:modified_time", facts.modified_at),
    ):
        if value:
            head += f'<meta {attribute}="{name}" content="{html.escape(value)}">'
    menu = "".join(f'<a href="{html.escape(url)}"></a>' for url in facts.links)
    return (
        f"<!doctype html><html{lang}><head>{head}</head><body><main>{content}</main>"
        f"<nav>{menu}</nav></body></html>"
    )
