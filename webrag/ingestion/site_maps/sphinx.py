"""Sphinx: `searchindex.js` of its versions, and the inventory `objects.inv`."""

import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from webrag.ingestion.site_maps.listing import (
    MAX_PAGES,
    ListedPage,
    Listing,
    MapRefusedError,
    SiteListing,
    list_of,
    plain,
    read_data,
    table_of,
    text_of,
)

_MAX_STEMS: Final = 500_000
_MAX_OCCURRENCES: Final = 5_000_000
_MAX_STEM_CHARS: Final = 64
_MAX_INVENTORY_BYTES: Final = 20_000_000
_MAX_OBJECTS: Final = 200_000
_INVENTORY_LINE: Final = re.compile(r"(\S.*?) ([\w.-]+:[\w.-]+) (-?\d+) (\S*) (.*)")


def read_search_index(text: str, root: str, page_url: str) -> SiteListing:
    """Read a `searchindex.js`: titles, headings, objects, and which page holds which stem.

    Args:
        text: The file.
        root: Address of the documentation, with a trailing slash.
        page_url: A page of it; pages are named like files or like folders.

    Raises:
        MapRefusedError: It is none.
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
    _note_names(listing, pages, data)
    known = listing.done().pages
    order = {page.url: at for at, page in enumerate(known)}
    places = [None if page is None else order.get(page.url) for page in pages]
    occurrences = _occurrences(table_of(data.get("terms"), "table of terms"), places)
    return SiteListing(known, occurrences, "words" if occurrences else "names")


def _addresses(names: list[str], root: str, page_url: str) -> list[str | None]:
    """Where documents are: `a/b.html`, or `a/b/` where the page known is such a folder."""
    path = page_url.removeprefix(root)
    is_folders = not path.endswith((".html", ".htm")) and path.strip("/") != ""
    ending = ".htm" if path.endswith(".htm") else ".html"
    found: list[str | None] = []
    for name in names:
        if not name:
            found.append(None)
        elif is_folders:
            plain = name.removesuffix("index") if name.rpartition("/")[2] == "index" else name
            found.append(f"{root}{plain.rstrip('/')}/" if plain else root)
        else:
            found.append(f"{root}{name}{ending}")
    return found


def _note_names(listing: Listing, pages: list[ListedPage | None], data: Mapping[str, Any]) -> None:
    for name, at in itertools.islice(
        itertools.chain(_headings(data), _objects(data)), _MAX_OBJECTS
    ):
        if 0 <= at < len(pages) and (page := pages[at]) is not None:
            listing.name(page, name)


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
        held = [
            place
            for number in numbers
            if type(number) is int
            and 0 <= number < len(places)
            and (place := places[number]) is not None
        ]
        if held:
            found[stem] = held
    return found


def read_inventory(body: bytes, root: str) -> SiteListing:
    """Read an `objects.inv`, version 2: names of objects and headings, and their pages.

    Raises:
        MapRefusedError: It is none.
    """
    head, lines = body[:1_000].split(b"\n", 4)[:4], body.split(b"\n", 4)
    if len(lines) < 5 or not head[0].startswith(b"# Sphinx inventory version 2"):
        raise MapRefusedError("it is no inventory of version 2")
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(lines[4], _MAX_INVENTORY_BYTES).decode("utf-8", "replace")
    except zlib.error as error:
        raise MapRefusedError("it is damaged") from error
    listing = Listing(root)
    for row in itertools.islice(text.split("\n"), _MAX_OBJECTS):
        match = _INVENTORY_LINE.fullmatch(row[:2_000])
        if match is not None:
            _note_object(listing, match)
    return listing.done()


def _note_object(listing: Listing, match: re.Match[str]) -> None:
    name, role, _, place, shown = match.groups()
    shown = name if shown in ("-", "") else shown
    if place.endswith("$"):
        place = place[:-1] + name
    page = listing.page(place, shown if role == "std:doc" else "")
    if page is not None and role != "std:doc":
        listing.name(page, shown)
