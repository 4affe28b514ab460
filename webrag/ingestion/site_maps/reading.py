"""The files of a site's own map to what they say: one entry for maps of every kind."""

import heapq
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from webrag.ingestion.addresses import same_site
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
    read_inventory,
    read_javadoc,
    read_rustdoc,
    read_search_index,
)
from webrag.ingestion.site_maps.sitemap import read_sitemap

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

    `mark` is what the page at `page_url` said of it, `files` what was obtained so far, at least
    one, in the order asked for.
    """
    return _READERS[mark.kind](mark, page_url, files)


def _one_file(read: Callable[[str, str], SiteListing]) -> "_Read":
    return lambda mark, _, files: read(_first(files), mark.root)


def _sphinx(mark: MapMark, page_url: str, files: Files) -> SiteListing:
    url, body = next(iter(files.items()))
    if url.endswith("objects.inv"):
        return read_inventory(body, mark.root)
    return read_search_index(_text(body), mark.root, page_url)


def _javadoc(mark: MapMark, _: str, files: Files) -> Reading:
    missing = [url for url in mark.urls[1:] if url not in files]
    if missing and len(files) == 1:
        return Wanted(tuple(missing))
    return read_javadoc([_text(body) for body in files.values() if body], mark.root)


def _doxygen(mark: MapMark, _: str, files: Files) -> Reading:
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


def _vitepress(mark: MapMark, _: str, files: Files) -> Reading:
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
    # Those whose addresses share most words with the page's; of equally many the first.
    around = _path_words(page_url)
    nearest = heapq.nlargest(_MAX_SITEMAPS, found, key=lambda each: len(around & _path_words(each)))
    wanted = () if others else _on_site(url, nearest)
    return Wanted(wanted) if wanted else _joined(others)


def _path_words(url: str) -> set[str]:
    return set(_WORD.findall(urlsplit(url).path.casefold()))


def _joined(files: Iterable[tuple[str, bytes]]) -> SiteListing:
    """What the sitemaps of an index say; one that is an index itself or damaged says nothing."""
    pages: dict[str, ListedPage] = {}
    for url, body in files:
        with suppress(MapRefusedError):
            found = read_sitemap(body, url)
            if isinstance(found, SiteListing):
                for page in found.pages:
                    pages.setdefault(page.url, page)
    if not pages:
        raise MapRefusedError("it names no page of the site")
    return SiteListing(tuple(pages.values())[:MAX_PAGES])


def _home(_mark: MapMark, _: str, files: Files) -> Reading:
    url, body = next(iter(files.items()))
    html = decode(body)
    marks = [mark for mark in find_marks(parsed_page(html), url) if mark.kind != "home"]
    return NamedMaps(tuple(marks)) if marks else read_index_page(html, url, at_least=_LEAST_LINKS)


def _first(files: Files) -> str:
    return _text(next(iter(files.values())))


def _text(body: bytes) -> str:
    """Generators write UTF-8."""
    return body.decode("utf-8-sig", "replace")


def _on_site(base: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(url for name in names if (url := same_site(name, base)))


_Read: TypeAlias = Callable[[MapMark, str, Files], Reading]
_READERS: Final[Mapping[str, _Read]] = {
    "docusaurus": _one_file(read_docusaurus),
    "doxygen": _doxygen,
    "home": _home,
    "index_page": lambda mark, _, files: read_index_page(
        decode(next(iter(files.values()))), mark.urls[0]
    ),
    "javadoc": _javadoc,
    "json": _one_file(read_json_list),
    "llms": _one_file(read_llms),
    "mdbook": _one_file(read_mdbook),
    "mkdocs": _one_file(read_mkdocs),
    "rustdoc": lambda mark, page_url, files: read_rustdoc(_first(files), mark.root, page_url),
    "sitemap": _sitemap,
    "sphinx": _sphinx,
    "vitepress": _vitepress,
}
