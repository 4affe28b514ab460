"""Indexes and navigation of programs' references: Javadoc, Doxygen, Sphinx."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from webrag.ingestion.site_maps.listing import (
    MAX_PAGES,
    Listing,
    SiteListing,
    list_of,
    plain,
    read_data,
    table_of,
    text_of,
)

_MAX_ITEMS: Final = 300_000


def read_javadoc(texts: Sequence[str], root: str) -> SiteListing:
    """Read `type-search-index.js` and, if it is there, `member-search-index.js` of Javadoc."""
    listing = Listing(root)
    modules: dict[str, str] = {}
    for text in texts:
        for row in itertools.islice(list_of(read_data(text), "content"), _MAX_ITEMS):
            if isinstance(row, dict):
                _note_java(listing, modules, row)
    return listing.done()


def _note_java(listing: Listing, modules: dict[str, str], row: Mapping[str, Any]) -> None:
    package, label = text_of(row.get("p")), text_of(row.get("l"))
    module = text_of(row.get("m"))
    if module:
        modules.setdefault(package, module)
    folder = "/".join(filter(None, [modules.get(package, ""), package.replace(".", "/")]))
    owner = text_of(row.get("c"))
    if not package or not label:
        return
    page = listing.page(f"{folder}/{owner or label}.html", owner or label)
    if page is not None:
        listing.name(page, label if owner else f"{package}.{label}")


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
    """Pages of names and addresses: the name of a page itself is its title."""
    for title, href in named:
        page = listing.page(href, plain(title) if "#" not in href else "")
        if page is not None and page.title != plain(title):
            listing.name(page, plain(title))
    return listing.done()


def _tree(text: str) -> list[Any]:
    return list_of(read_data(text, "="), "content")


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
    letters = table_of(read_data(text, "indexSectionsWithContent"), "table of letters")
    names = table_of(read_data(text, "indexSectionNames"), "table of sections")
    known = {text_of(name): text_of(letters.get(number)) for number, name in names.items()}
    return [
        f"search/{section}_{at:x}.js"
        for section in _DOXYGEN_SECTIONS
        for at in range(len(known.get(section, "")))
    ]


def read_doxygen_search(texts: Sequence[str], root: str) -> SiteListing:
    """Read files of Doxygen's search: names and the pages that explain them."""
    rows = (row for text in texts for row in list_of(read_data(text, "searchData="), "content"))
    targets = (target for row in rows for target in _doxygen_targets(row))
    return _titled(Listing(f"{root}search/"), targets)


def _doxygen_targets(row: Any) -> Iterator[tuple[str, str]]:
    """(name, address) of `[key, [name, [address, ..], ..]]`."""
    entry = row[1] if isinstance(row, list) and len(row) > 1 else None
    if not (isinstance(entry, list) and len(entry) > 1):
        return
    for target in entry[1:]:
        if isinstance(target, list) and target and text_of(target[0]):
            scope = text_of(target[2]) if len(target) > 2 else ""
            yield f"{text_of(entry[0])} {scope}".strip(), target[0]


_MAX_STEMS: Final = 500_000
_MAX_OCCURRENCES: Final = 5_000_000
_MAX_STEM_CHARS: Final = 64
_MAX_OBJECTS: Final = 200_000


def read_search_index(text: str, root: str, page_url: str) -> SiteListing:
    """Read a `searchindex.js`: titles, headings, objects, and which page holds which stem.

    Pages are named like files or like folders, as `page_url` is.
    """
    data = table_of(read_data(text, "Search.setIndex("), "content")
    names = [text_of(name) for name in list_of(data.get("docnames"), "list of documents")]
    titles = [plain(text_of(title)) for title in list_of(data.get("titles"), "list of titles")]
    listing = Listing(root)
    addresses = _addresses(names[:MAX_PAGES], root, page_url)
    pages = [
        listing.page(address, title) if address is not None else None
        for address, title in zip(
            addresses, itertools.chain(titles, itertools.repeat("")), strict=False
        )
    ]
    named = itertools.chain(_headings(data), _objects(data))
    for name, at in itertools.islice(named, _MAX_OBJECTS):
        if 0 <= at < len(pages) and (page := pages[at]) is not None:
            listing.name(page, name)
    known = listing.done().pages
    order = {page.url: at for at, page in enumerate(known)}
    places = [None if page is None else order.get(page.url) for page in pages]
    occurrences = _occurrences(table_of(data.get("terms"), "table of terms"), places)
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
        table = data.get(key)
        for name, places in table.items() if isinstance(table, dict) else ():
            for place in places if isinstance(places, list) else ():
                if isinstance(place, list) and place and isinstance(place[0], int):
                    yield plain(name), place[0]


def _objects(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Objects with the number of their document: `{prefix: {name: [..]}}` before version 4.3."""
    table = data.get("objects")
    for prefix, objects in table.items() if isinstance(table, dict) else ():
        for name, place in _named(objects):
            if isinstance(place, list) and place and isinstance(place[0], int):
                yield (f"{prefix}.{name}" if prefix else name), place[0]


def _named(objects: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(objects, dict):
        return objects.items()
    if isinstance(objects, list):
        rows = (row for row in objects if isinstance(row, list) and len(row) >= 5)
        return ((text_of(row[4]), row) for row in rows)
    return ()


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
