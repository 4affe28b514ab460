"""The files of a site's own map to what they say: one entry for maps of every kind."""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

from webrag.errors import InputError
from webrag.ingestion.addresses import canonical_url, site_of
from webrag.ingestion.http.decode import decode
from webrag.ingestion.models import MapMark
from webrag.ingestion.site_maps.books import (
    parsed_page,
    read_docusaurus,
    read_index_page,
    read_json_list,
    read_llms,
    read_mdbook,
    read_mkdocs,
    read_vitepress,
    vitepress_next,
)
from webrag.ingestion.site_maps.listing import (
    MAX_PAGES,
    ListedPage,
    MapRefusedError,
    SiteListing,
)
from webrag.ingestion.site_maps.marks import find_marks
from webrag.ingestion.site_maps.programs import (
    doxygen_files,
    doxygen_trees,
    read_doxygen_search,
    read_doxygen_tree,
    read_javadoc,
    read_rustdoc,
)
from webrag.ingestion.site_maps.sitemap import read_sitemap
from webrag.ingestion.site_maps.sphinx import read_inventory, read_search_index

Files = Mapping[str, bytes]
# Each is a request; beyond these the further branches are found by links.
_MAX_DOXYGEN_FILES: Final = 10
_MAX_SITEMAPS: Final = 5
_WORD: Final = re.compile(r"[^\W_]+")
# Of a page that does not say that it is an index.
_LEAST_LINKS: Final = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """Further files that a map consists of, on the same site; what cannot be had comes empty."""

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
    if mark.kind in _BY_PAGE:
        return _BY_PAGE[mark.kind](mark, page_url, files)
    if mark.kind in _ONE_FILE:
        return _ONE_FILE[mark.kind](_text(next(iter(files.values()))), mark.root)
    return _SEVERAL[mark.kind](mark, files)


def _sphinx(mark: MapMark, page_url: str, files: Files) -> SiteListing:
    url, body = next(iter(files.items()))
    if url.endswith("objects.inv"):
        return read_inventory(body, mark.root)
    return read_search_index(_text(body), mark.root, page_url)


def _rustdoc(mark: MapMark, page_url: str, files: Files) -> SiteListing:
    return read_rustdoc(_text(next(iter(files.values()))), mark.root, page_url)


def _javadoc(mark: MapMark, files: Files) -> Reading:
    missing = [url for url in mark.urls[1:] if url not in files]
    if missing and len(files) == 1:
        return Wanted(tuple(missing))
    return read_javadoc([_text(body) for body in files.values() if body], mark.root)


def _doxygen(mark: MapMark, files: Files) -> Reading:
    (url, body), *others = files.items()
    is_tree = url.endswith("navtreedata.js")
    if not others:
        names = doxygen_trees(_text(body)) if is_tree else doxygen_files(_text(body))
        wanted = _on_site(mark.root, names[:_MAX_DOXYGEN_FILES])
        if wanted:
            return Wanted(wanted)
    if is_tree:
        return read_doxygen_tree([_text(body) for body in files.values() if body], mark.root)
    return read_doxygen_search([_text(body) for _, body in others if body], mark.root)


def _vitepress(mark: MapMark, files: Files) -> Reading:
    url, body = list(files.items())[-1]
    if "@localSearchIndex" in url:
        return read_vitepress(_text(body), mark.root)
    name = vitepress_next(_text(body))
    wanted = _on_site(url, [name] if name else [])
    if not wanted or wanted[0] in files:
        raise MapRefusedError("it names no search index")
    return Wanted(wanted)


def _sitemap(_mark: MapMark, page_url: str, files: Files) -> Reading:
    (url, body), *others = files.items()
    found = read_sitemap(body, url)
    if isinstance(found, SiteListing):
        return found
    if not others:
        wanted = _on_site(url, _nearest(found, page_url))
        if wanted:
            return Wanted(wanted)
    return _joined(_listings(others))


def _nearest(sitemaps: Sequence[str], page_url: str) -> list[str]:
    """Those whose addresses share most words with a page's; of equally many the first."""
    around = _path_words(page_url)
    return heapq.nlargest(_MAX_SITEMAPS, sitemaps, key=lambda each: len(around & _path_words(each)))


def _path_words(url: str) -> set[str]:
    return set(_WORD.findall(urlsplit(url).path.casefold()))


def _listings(files: Iterable[tuple[str, bytes]]) -> Iterator[SiteListing]:
    """What the sitemaps of an index say; one that is an index itself or damaged says nothing."""
    for url, body in files:
        try:
            found = read_sitemap(body, url)
        except MapRefusedError:
            continue
        if isinstance(found, SiteListing):
            yield found


def _joined(listings: Iterable[SiteListing]) -> SiteListing:
    pages: dict[str, ListedPage] = {}
    for page in chain.from_iterable(listing.pages for listing in listings):
        pages.setdefault(page.url, page)
    if not pages:
        raise MapRefusedError("it names no page of the site")
    return SiteListing(tuple(pages.values())[:MAX_PAGES])


def _index_page(mark: MapMark, files: Files) -> SiteListing:
    return read_index_page(decode(next(iter(files.values()))), mark.urls[0])


def _home(_mark: MapMark, files: Files) -> Reading:
    url, body = next(iter(files.items()))
    html = decode(body)
    marks = [mark for mark in find_marks(parsed_page(html), url) if mark.kind != "home"]
    return NamedMaps(tuple(marks)) if marks else read_index_page(html, url, at_least=_LEAST_LINKS)


def _text(body: bytes) -> str:
    """Generators write UTF-8."""
    return body.decode("utf-8-sig", "replace")


def _on_site(base: str, names: list[str]) -> tuple[str, ...]:
    found = []
    for name in names:
        try:
            url = canonical_url(urljoin(base, name))
        except (InputError, ValueError):
            continue
        if site_of(url) == site_of(base):
            found.append(url)
    return tuple(found)


_BY_PAGE: Final[Mapping[str, Callable[[MapMark, str, Files], Reading]]] = {
    "sphinx": _sphinx,
    "rustdoc": _rustdoc,
    "sitemap": _sitemap,
}
_ONE_FILE: Final[Mapping[str, Callable[[str, str], SiteListing]]] = {
    "mkdocs": read_mkdocs,
    "mdbook": read_mdbook,
    "docusaurus": read_docusaurus,
    "json": read_json_list,
    "llms": read_llms,
}
_SEVERAL: Final[Mapping[str, Callable[[MapMark, Files], Reading]]] = {
    "javadoc": _javadoc,
    "doxygen": _doxygen,
    "vitepress": _vitepress,
    "index_page": _index_page,
    "home": _home,
}
