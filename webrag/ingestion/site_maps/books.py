"""Search indexes that hold texts: MkDocs and its kin, mdBook, Docusaurus, VitePress, JSON lists.

Each reader takes a file's text and the address that it is relative to, and raises
MapRefusedError where the file is none of its kind.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.characters import collapse
from webrag.ingestion.html.tree import MarkupBomb, ancestors, attribute, check_markup
from webrag.ingestion.site_maps.listing import (
    Listing,
    MapContent,
    MapRefusedError,
    SiteListing,
    line,
    list_of,
    plain,
    read_data,
    read_json,
    table_of,
    text_of,
)

_MAX_ENTRIES: Final = 200_000
_ADDRESS_KEYS: Final = ("url", "relUrl", "permalink", "relpermalink", "uri", "href", "link", "path")
_FULL_TEXT_KEYS: Final = ("content", "text", "body", "contents")
_TEXT_KEYS: Final = (*_FULL_TEXT_KEYS, "summary", "description")
_VITEPRESS_CHUNK: Final = re.compile(r"(?:VPLocalSearchBox|@localSearchIndex)[\w.-]{1,60}\.js")
_VITEPRESS_DATA: Final = '"documentCount"'
_LLMS_LINK: Final = re.compile(
    r"\[((?:[^\[\]\n]|\[[^\[\]\n]{0,200}+\]){1,400}+)\]"
    r"\(\s{0,9}<?([^()\s<>]{1,2000}+)>?(?:\s{1,9}\"[^\"\n]{0,300}\")?\s{0,9}\)([^\n]{0,500}+)"
)
_HEADING_MARK: Final = "#"
_NUMBER: Final = re.compile(r"[0-9]{1,8}")
_ROOT: Final = "./"


def read_mkdocs(text: str, root: str) -> SiteListing:
    """Read a `search_index.json` of MkDocs or Material, or a `search.json` of Zensical."""
    data = table_of(read_json(text), "content")
    rows = list_of(data.get("docs", data.get("items")), "list of pages")
    told = ((r.get("location") or _ROOT, r.get("title"), r.get("text")) for r in _tables(rows))
    return _sections(root, told, content="texts")


def read_mdbook(text: str, root: str) -> SiteListing:
    """Read a `searchindex.js` of mdBook: a section in each entry."""
    data = table_of(read_data(text), "content")
    addresses = list_of(data.get("doc_urls"), "list of addresses")
    index = table_of(data.get("index"), "index")
    store = table_of(table_of(index.get("documentStore"), "store").get("docs"), "store of pages")
    # Sorted as texts: "10" stands before "2", and a page's first section names it.
    keys = sorted((key for key in store if _NUMBER.fullmatch(key)), key=int)
    found = ((addresses[int(key)], store[key]) for key in keys if int(key) < len(addresses))
    rows = ((href, row) for href, row in found if isinstance(row, dict))
    told = ((href, row.get("title"), row.get("body")) for href, row in rows)
    return _sections(root, told, content="texts")


def read_docusaurus(text: str, root: str) -> SiteListing:
    """Read a `search-index.json` or `search-doc.json` of the local searches of Docusaurus."""
    data = read_json(text)
    parts = _tables(data if isinstance(data, list) else [data])
    found = (part.get("documents", part.get("searchDocs")) for part in parts)
    rows = itertools.chain.from_iterable(_tables(rows) for rows in found if isinstance(rows, list))
    return _sections(root, map(_docusaurus_row, rows), content="texts")


def _docusaurus_row(row: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    if "sectionRoute" in row:
        return row["sectionRoute"], row.get("sectionTitle") or row.get("pageTitle"), ""
    if "url" in row:
        return row["url"], row.get("title"), row.get("content")
    address = f"{text_of(row.get('u'))}{text_of(row.get('h'))}"
    # The words of a section carry its title beside them; of a page or a heading they are it.
    if "s" in row:
        return address, "", f"{text_of(row['s'])}. {text_of(row.get('t'))}"
    return address, row.get("t"), ""


def vitepress_next(text: str) -> str | None:
    """The file that the last one of VitePress' chain loads: search box, then index."""
    match = _VITEPRESS_CHUNK.search(text)
    return match[0] if match else None


def read_vitepress(text: str, root: str) -> SiteListing:
    """Read an `@localSearchIndex` of VitePress."""
    data = table_of(read_data(text, literal_of=_VITEPRESS_DATA), "content")
    addresses = table_of(data.get("documentIds"), "table of pages")
    stored = data.get("storedFields")
    fields = stored if isinstance(stored, dict) else {}
    words = _words_by_entry(data.get("index"))
    rows = (
        (href, row.get("title"), " ".join(words.get(key, ())))
        for key, href in addresses.items()
        if isinstance(row := fields.get(key, {}), dict)
    )
    return _sections(root, rows, content="words")


def _words_by_entry(index: Any) -> dict[str, list[str]]:
    """The words of each entry, from `[[word, {field: {entry: count}}], ..]`."""
    words: dict[str, list[str]] = {}
    for row in itertools.islice(index if isinstance(index, list) else (), _MAX_ENTRIES):
        if not (isinstance(row, list) and len(row) == 2 and isinstance(row[1], dict)):
            continue
        for held in row[1].values():
            for entry in held if isinstance(held, dict) else ():
                words.setdefault(entry, []).append(text_of(row[0]))
    return words


def read_json_list(text: str, root: str) -> SiteListing:
    """Read a JSON file of pages with titles and texts, as search scripts of Hugo and Jekyll do."""
    data = read_json(text)
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list)]
        rows = list(data.values()) if not lists else max(lists, key=len)
    else:
        rows = list_of(data, "content")
    tables = list(_tables(rows))
    has_texts = any(key.casefold() in _FULL_TEXT_KEYS for row in tables for key in row)
    return _sections(root, map(_json_row, tables), content="texts" if has_texts else "names")


def _json_row(row: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    lower = {key.casefold(): value for key, value in row.items()}
    address = next((lower[key.casefold()] for key in _ADDRESS_KEYS if key.casefold() in lower), "")
    text = next((lower[key] for key in _TEXT_KEYS if isinstance(lower.get(key), str)), "")
    return address, lower.get("title", lower.get("name")), text


def read_llms(text: str, root: str) -> SiteListing:
    """Read an `llms.txt`: links with titles and what is said of them."""
    links = itertools.islice(_LLMS_LINK.finditer(text), _MAX_ENTRIES)
    return _sections(root, ((link[2], link[1], link[3].lstrip(" :-")) for link in links))


def _sections(
    root: str, rows: Iterable[tuple[Any, Any, Any]], *, content: MapContent = "names"
) -> SiteListing:
    """Pages of (address, title, text) for each section: the first title of a page is its own."""
    listing = Listing(root)
    for address, title, text in itertools.islice(rows, _MAX_ENTRIES):
        href, name = text_of(address), plain(text_of(title))
        is_whole = _HEADING_MARK not in href
        page = listing.page(href, name if is_whole else "") if isinstance(address, str) else None
        if page is None:
            continue
        if not is_whole or page.title != name:
            listing.name(page, name)
        listing.text(page, plain(text_of(text)), name)
    for page in listing.pages():
        if not page.title and page.names:
            page.title = page.names[0]
    return listing.done(content)


def _tables(rows: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    return (row for row in rows if isinstance(row, dict))


_MAX_LINKS: Final = 100_000
_ENTRY_TAGS: Final = frozenset({"dt", "li", "tr", "p", "dd"})
_LIST_TAGS: Final = frozenset({"dl", "ul", "ol", "table"})
_MAX_TERM_CHARS: Final = 200
_MAX_ABOVE: Final = 3


def read_index_page(html: str, url: str, *, at_least: int = 1) -> SiteListing:
    """Read the links of a page, each with the entry that it stands in and the one above.

    MapRefusedError where it cannot be parsed safely, or lists fewer pages than `at_least`.
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
    """A page as a tree; raises MapRefusedError where it cannot be parsed safely."""
    try:
        check_markup(html)
    except MarkupBomb as error:
        raise MapRefusedError(str(error)) from error
    return LexborHTMLParser(html)


def _term(link: LexborNode, known: dict[int, str]) -> str:
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
