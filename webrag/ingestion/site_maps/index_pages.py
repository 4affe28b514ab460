"""Index pages and tables of contents made for readers: terms, and the pages they lead to."""

import itertools
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.characters import collapse
from webrag.ingestion.html.tree import MarkupBomb, ancestors, attribute, check_markup, parse
from webrag.ingestion.site_maps.listing import Listing, MapRefusedError, SiteListing, line

_MAX_LINKS: Final = 100_000
_ENTRY_TAGS: Final = frozenset({"dt", "li", "tr", "p", "dd"})
_LIST_TAGS: Final = frozenset({"dl", "ul", "ol", "table"})
_MAX_TERM_CHARS: Final = 200
_MAX_ABOVE: Final = 3


def read_index_page(html: str, url: str, *, at_least: int = 1) -> SiteListing:
    """Read the links of a page, each with the entry that it stands in and the one above.

    Args:
        html: The page.
        url: Where it came from.
        at_least: Pages that it must list.

    Raises:
        MapRefusedError: It cannot be parsed safely, or lists fewer pages.
    """
    tree = parsed_page(html)
    listing = Listing(url)
    terms: dict[int, str] = {}
    links = tree.body.css("a[href]") if tree.body is not None else []
    for node in itertools.islice(links, _MAX_LINKS):
        page = listing.page(attribute(node, "href"))
        if page is None or page.url == url:
            continue
        anchor = line(node.text())
        page.title = page.title or anchor
        term = _term(node, terms).removesuffix(anchor).rstrip(" ,;:")
        listing.name(page, f"{term} {anchor}")
    found = listing.done()
    if len(found.pages) < at_least:
        raise MapRefusedError("it lists only a few pages")
    return found


def parsed_page(html: str) -> LexborHTMLParser:
    """A page as a tree.

    Raises:
        MapRefusedError: It cannot be parsed safely.
    """
    try:
        check_markup(html)
    except MarkupBomb as error:
        raise MapRefusedError(str(error)) from error
    return parse(html)


def _term(link: LexborNode, known: dict[int, str]) -> str:
    """The words of the entries around a link, the outer ones first."""
    parts: list[str] = []
    for above in itertools.islice(ancestors(link), 12):
        if above.tag not in _ENTRY_TAGS:
            continue
        entry = _term_of_definition(above) if above.tag == "dd" else above
        if entry is not None:
            if entry.mem_id not in known:
                known[entry.mem_id] = _own_text(entry)
            parts.insert(0, known[entry.mem_id])
        if len(parts) == _MAX_ABOVE:
            break
    return collapse(" ".join(dict.fromkeys(parts)))


def _term_of_definition(node: LexborNode) -> LexborNode | None:
    before = node.prev
    for _ in range(20):
        if before is None or before.tag == "dt":
            return before
        before = before.prev
    return None


def _own_text(entry: LexborNode) -> str:
    """The text of an entry up to what is listed below it, without that of its links."""
    parts: list[str] = []
    size = 0
    for child in entry.iter(include_text=True):
        if child.tag in _LIST_TAGS or size > _MAX_TERM_CHARS:
            break
        if child.tag == "a":
            continue
        text = child.text(deep=True) or ""
        parts.append(text[:_MAX_TERM_CHARS])
        size += len(text)
    return collapse(" ".join(parts)).strip(" ,;:")[:_MAX_TERM_CHARS]
