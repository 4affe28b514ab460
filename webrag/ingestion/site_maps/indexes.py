"""Reads the search indexes and lists of pages that generators of sites write."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.characters import collapse
from webrag.ingestion.html.tree import MarkupBomb, ancestors, attribute, check_markup, preceding
from webrag.ingestion.site_maps.listing import (
    MAX_PAGES,
    Listing,
    MapContent,
    MapRefusedError,
    SiteListing,
    line,
    list_of,
    plain,
    read_data,
    read_json,
    read_quoted,
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
    data = table_of(read_json(text))
    rows = list_of(data.get("docs", data.get("items")))
    told = ((r.get("location") or _ROOT, r.get("title"), r.get("text")) for r in _tables(rows))
    return _sections(root, told, content="texts")


def read_mdbook(text: str, root: str) -> SiteListing:
    """Read a `searchindex.js` of mdBook: a section in each entry."""
    data = table_of(read_data(text))
    addresses = list_of(data.get("doc_urls"))
    index = table_of(data.get("index"))
    store = table_of(table_of(index.get("documentStore")).get("docs"))
    # Sorted as texts: "10" stands before "2", and a page's first section names it.
    keys = sorted((key for key in store if _NUMBER.fullmatch(key)), key=int)
    known = (key for key in keys if int(key) < len(addresses))
    rows = ((addresses[int(key)], table_of(store[key])) for key in known)
    told = ((href, row.get("title"), row.get("body")) for href, row in rows)
    return _sections(root, told, content="texts")


def read_docusaurus(text: str, root: str) -> SiteListing:
    """Read a `search-index.json` or `search-doc.json` of the local searches of Docusaurus."""
    data = read_json(text)
    parts = _tables(data if isinstance(data, list) else [data])
    found = (list_of(part.get("documents", part.get("searchDocs"))) for part in parts)
    rows = _tables(itertools.chain.from_iterable(found))
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
    data = table_of(read_quoted(text, _VITEPRESS_DATA))
    addresses = table_of(data.get("documentIds"))
    fields = table_of(data.get("storedFields"))
    words = _words_by_entry(list_of(data.get("index")))
    rows = (
        (href, table_of(fields.get(key)).get("title"), " ".join(words.get(key, ())))
        for key, href in addresses.items()
    )
    return _sections(root, rows, content="words")


def _words_by_entry(index: list[Any]) -> dict[str, list[str]]:
    """The words of each entry, from `[[word, {field: {entry: count}}], ..]`."""
    words: dict[str, list[str]] = {}
    for row in index[:_MAX_ENTRIES]:
        word, fields = row if isinstance(row, list) and len(row) == 2 else ("", {})
        for held in table_of(fields).values():
            for entry in table_of(held):
                words.setdefault(entry, []).append(text_of(word))
    return words


def read_json_list(text: str, root: str) -> SiteListing:
    """Read a JSON file of pages with titles and texts, as search scripts of Hugo and Jekyll do."""
    data = read_json(text)
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list)]
        rows = list(data.values()) if not lists else max(lists, key=len)
    else:
        rows = list_of(data)
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
        entry: LexborNode | None = above
        if above.tag == "dd":
            before = itertools.islice(preceding(above), 20)
            entry = next((each for each in before if each.tag == "dt"), None)
        if entry is not None:
            if entry.mem_id not in known:
                known[entry.mem_id] = _own_text(entry)
            parts.insert(0, known[entry.mem_id])
        if len(parts) == _MAX_ABOVE:
            break
    return collapse(" ".join(dict.fromkeys(parts)))


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


_MAX_ITEMS: Final = 300_000


def read_javadoc(texts: Sequence[str], root: str) -> SiteListing:
    """Read `type-search-index.js` and, if it is there, `member-search-index.js` of Javadoc."""
    listing = Listing(root)
    modules: dict[str, str] = {}
    rows = (row for text in texts for row in list_of(read_data(text))[:_MAX_ITEMS])
    for row in _tables(rows):
        package, label, module, owner = (text_of(row.get(key)) for key in "plmc")
        if module:
            modules.setdefault(package, module)
        folder = "/".join(filter(None, [modules.get(package, ""), package.replace(".", "/")]))
        name = owner or label
        page = listing.page(f"{folder}/{name}.html", name) if package and label else None
        if page is not None:
            listing.name(page, label if owner else f"{package}.{label}")
    return listing.done()


_DOXYGEN_SECTIONS: Final = ("pages", "groups", "topics", "classes", "namespaces", "files")
_DOXYGEN_NAME: Final = re.compile(r"\w{1,80}")
_MAX_TREE_DEPTH: Final = 40


def doxygen_trees(text: str) -> list[str]:
    """Names of the files with further branches of a `navtreedata.js`."""
    found = dict.fromkeys(
        branch
        for _, _, branch in _branches(_tree(text))
        if isinstance(branch, str) and _DOXYGEN_NAME.fullmatch(branch)
    )
    return [f"{name}.js" for name in found]


def read_doxygen_tree(texts: Sequence[str], root: str) -> SiteListing:
    """Read a `navtreedata.js` of Doxygen and its further branches: titles and headings."""
    branches = (itertools.islice(_branches(_tree(text)), _MAX_ITEMS) for text in texts)
    found = itertools.chain.from_iterable(branches)
    return _titled(Listing(root), ((title, href) for title, href, _ in found))


def _titled(listing: Listing, named: Iterable[tuple[str, str]]) -> SiteListing:
    """Pages of names and addresses: only the name of a page itself is its title."""
    for title, href in named:
        page = listing.page(href, plain(title) if _HEADING_MARK not in href else "")
        if page is not None and page.title != plain(title):
            listing.name(page, plain(title))
    return listing.done()


def _tree(text: str) -> list[Any]:
    return list_of(read_data(text, "="))


def _branches(tree: list[Any]) -> Iterator[tuple[str, str, Any]]:
    """(title, address, what is below) of each branch, in order."""
    waiting = [(iter(tree), 0)]
    while waiting:
        branches, depth = waiting[-1]
        branch = next(branches, None)
        if branch is None:
            waiting.pop()
            continue
        if not (isinstance(branch, list) and len(branch) >= 2):
            continue
        below = branch[2] if len(branch) > 2 else None
        if text_of(branch[1]):
            yield text_of(branch[0]), branch[1], below
        if isinstance(below, list) and depth < _MAX_TREE_DEPTH:
            waiting.append((iter(below), depth + 1))


def doxygen_files(text: str) -> list[str]:
    """Files of the best sections that a `searchdata.js` of Doxygen names, in that order."""
    letters = table_of(read_data(text, "indexSectionsWithContent"))
    names = table_of(read_data(text, "indexSectionNames"))
    known = {text_of(name): text_of(letters.get(number)) for number, name in names.items()}
    return [
        f"search/{section}_{at:x}.js"
        for section in _DOXYGEN_SECTIONS
        for at in range(len(known.get(section, "")))
    ]


def read_doxygen_search(texts: Sequence[str], root: str) -> SiteListing:
    """Read files of Doxygen's search: names and the pages that explain them."""
    rows = (row for text in texts for row in list_of(read_data(text, "searchData=")))
    targets = (target for row in rows for target in _doxygen_targets(row))
    return _titled(Listing(f"{root}search/"), targets)


def _doxygen_targets(row: Any) -> Iterator[tuple[str, str]]:
    """(name, address) of `[key, [name, [address, ..], ..]]`."""
    name, *targets = list_of(list_of(row)[1:2] and row[1]) or [""]
    for target in targets:
        if list_of(target) and text_of(target[0]):
            scope = text_of(target[2]) if len(target) > 2 else ""
            yield f"{text_of(name)} {scope}".strip(), target[0]


_MAX_STEMS: Final = 500_000
_MAX_OCCURRENCES: Final = 5_000_000
_MAX_STEM_CHARS: Final = 64
_MAX_OBJECTS: Final = 200_000


def read_search_index(text: str, root: str, page_url: str) -> SiteListing:
    """Read a `searchindex.js`: titles, headings, objects, and which page holds which stem.

    Pages are named like files or like folders, as `page_url` is.
    """
    data = table_of(read_data(text, "Search.setIndex("))
    names = [text_of(name) for name in list_of(data.get("docnames"))]
    titles = [plain(text_of(title)) for title in list_of(data.get("titles"))]
    listing = Listing(root)
    addresses = _addresses(names[:MAX_PAGES], root, page_url)
    titled = zip(addresses, itertools.chain(titles, itertools.repeat("")), strict=False)
    pages = [None if href is None else listing.page(href, title) for href, title in titled]
    named = itertools.chain(_headings(data), _objects(data))
    for name, at in itertools.islice(named, _MAX_OBJECTS):
        if 0 <= at < len(pages) and (page := pages[at]) is not None:
            listing.name(page, name)
    known = listing.done().pages
    order = {page.url: at for at, page in enumerate(known)}
    places = [None if page is None else order.get(page.url) for page in pages]
    occurrences = _occurrences(table_of(data.get("terms")), places)
    return SiteListing(known, occurrences, "words" if occurrences else "names")


def _addresses(names: list[str], root: str, page_url: str) -> list[str | None]:
    """Give addresses of documents: `a/b.html`, or `a/b/` where the page known is such a folder.

    Where pages are files, the index of a folder is `folder/index.html`.
    """
    path = page_url.removeprefix(root)
    is_index = f"{path.rstrip('/')}/index".lstrip("/") in names
    is_folders = not path.endswith((".html", ".htm")) and not is_index and path != ""
    ending = ".htm" if path.endswith(".htm") else ".html"

    def address(name: str) -> str:
        if not is_folders:
            return f"{root}{name}{ending}"
        plain = name.removesuffix("index") if name.rpartition("/")[2] == "index" else name
        return f"{root}{plain.rstrip('/')}/" if plain else root

    return [address(name) if name else None for name in names]


def _headings(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Headings and index entries with the number of their document."""
    for key in ("alltitles", "indexentries"):
        for name, places in table_of(data.get(key)).items():
            for place in list_of(places):
                if list_of(place) and isinstance(place[0], int):
                    yield plain(name), place[0]


def _objects(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Objects with the number of their document: `{prefix: {name: [..]}}` before version 4.3."""
    for prefix, objects in table_of(data.get("objects")).items():
        rows = (row for row in list_of(objects) if len(list_of(row)) >= 5)
        named = ((text_of(row[4]), row) for row in rows)
        for name, place in (*table_of(objects).items(), *named):
            if list_of(place) and isinstance(place[0], int):
                yield (f"{prefix}.{name}" if prefix else name), place[0]


def _occurrences(terms: Mapping[str, Any], places: list[int | None]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    left = _MAX_OCCURRENCES
    for stem, value in itertools.islice(terms.items(), _MAX_STEMS):
        numbers = value if isinstance(value, list) else [value]
        if not stem or len(stem) > _MAX_STEM_CHARS:
            continue
        left -= len(numbers)
        if left < 0:
            break
        known = (each for each in numbers if type(each) is int and 0 <= each < len(places))
        if held := [place for number in known if (place := places[number]) is not None]:
            found[stem] = held
    return found
