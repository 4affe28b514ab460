"""The files of a site's own map to what they say: one entry for maps of every kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from webrag.ingestion.html.tree import MarkupBomb, check_markup, parse
from webrag.ingestion.http.decode import decode
from webrag.ingestion.models import MapMark
from webrag.ingestion.site_maps.listing import MapRefusedError, SiteListing
from webrag.ingestion.site_maps.marks import find_marks
from webrag.ingestion.site_maps.sphinx import read_inventory, read_search_index

__all__ = ["NamedMaps", "Wanted", "read_map"]

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Further files that a map consists of; they are on the same site."""

    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedMaps:
    """The maps that another page of the site names."""

    marks: tuple[MapMark, ...]


Reading: TypeAlias = SiteListing | Wanted | NamedMaps


def read_map(mark: MapMark, page_url: str, files: Files) -> Reading:
    """Read a map, or tell what more is needed for it.

    Args:
        mark: What the page said of it.
        page_url: That page.
        files: What was obtained so far, by address, in the order asked for; at least one.

    Raises:
        MapRefusedError: It is none that can be used.
    """
    return _READERS[mark.kind](mark, page_url, files)


def _sphinx(mark: MapMark, page_url: str, files: Files) -> SiteListing:
    url, body = next(iter(files.items()))
    if url.endswith("objects.inv"):
        return read_inventory(body, mark.root)
    return read_search_index(_text(body), mark.root, page_url)


def _text(body: bytes) -> str:
    """Generators write UTF-8."""
    return body.decode("utf-8-sig", "replace")


def _home(_mark: MapMark, _page_url: str, files: Files) -> NamedMaps:
    url, body = next(iter(files.items()))
    html = decode(body)
    try:
        check_markup(html)
    except MarkupBomb as error:
        raise MapRefusedError(str(error)) from error
    marks = find_marks(parse(html), url)
    return NamedMaps(tuple(mark for mark in marks if mark.kind != "home"))


_READERS: Final[Mapping[str, Callable[[MapMark, str, Files], Reading]]] = {
    "sphinx": _sphinx,
    "home": _home,
}
