"""The files of a site's own map to what they say: one entry for maps of every kind."""

import heapq
import html
import itertools
import logging
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from webrag.ingestion.addresses import same_site
from webrag.ingestion.http.decode import decode
from webrag.ingestion.models import MapMark
from webrag.ingestion.site_maps.indexes import (
    doxygen_files,
    doxygen_trees,
    parsed_page,
    read_docusaurus,
    read_doxygen_search,
    read_doxygen_tree,
    read_index_page,
    read_javadoc,
    read_json_list,
    read_llms,
    read_mdbook,
    read_mkdocs,
    read_search_index,
    read_vitepress,
    vitepress_next,
)
from webrag.ingestion.site_maps.listing import (
    MAX_PAGES,
    ListedPage,
    Listing,
    MapRefusedError,
    SiteListing,
)
from webrag.ingestion.site_maps.marks import find_marks

_log = logging.getLogger(__name__)

# The protocol allows 50 MB a file; the pages beyond these are found by their links.
MAX_TEXT_BYTES: Final = 20_000_000
MAX_LISTED: Final = 50_000
_MAX_TITLE_CHARS = 200
_GZIP_MAGIC = b"\x1f\x8b"
_WEB = ("http://", "https://")
_ROOT = re.compile(r"<(?:([\w-]{1,40}):)?(urlset|sitemapindex)[\s>]", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CDATA_END = "]]>"


class Sitemap(NamedTuple):
    """One sitemap file: addresses with their `lastmod`, and further sitemaps, all as written."""

    pages: tuple[tuple[str, str], ...] = ()
    sitemaps: tuple[str, ...] = ()


def parse_sitemap(body: bytes) -> Sitemap:
    """Read a sitemap: XML or one address per line, also compressed; at most 20 MB of its text.

    Tolerant: what is cut off, unknown or malformed is passed over. No entity is expanded.
    """
    text = decode(_unpacked(body)[:MAX_TEXT_BYTES])
    root = _ROOT.search(text[:10_000])
    if root is None:
        lines = (line.strip() for line in text.splitlines()[:MAX_LISTED])
        alone = (line for line in lines if line.startswith(_WEB) and line.split() == [line])
        return Sitemap(pages=tuple((line, "") for line in alone))
    text = _COMMENT.sub("", text)
    prefix = f"{re.escape(root.group(1))}:" if root.group(1) else ""
    if root.group(2).lower() == "urlset":
        return Sitemap(pages=tuple(_items(text, prefix, "url")))
    return Sitemap(sitemaps=tuple(url for url, _ in _items(text, prefix, "sitemap")))


def _items(text: str, prefix: str, name: str) -> Iterator[tuple[str, str]]:
    # The protocol allows addresses of 2,048 characters.
    loc = re.compile(rf"<{prefix}loc>\s*+(<!\[CDATA\[)?([^<]{{1,4000}}+)<", re.IGNORECASE)
    lastmod = re.compile(rf"<{prefix}lastmod>\s*+([^<]{{4,40}})</", re.IGNORECASE)
    opening = re.compile(rf"<{prefix}{name}(?=[\s>])", re.IGNORECASE)
    openings = itertools.islice(opening.finditer(text), MAX_LISTED + 1)
    starts = [match.end() for match in openings]
    for begin, end in itertools.islice(itertools.pairwise([*starts, len(text)]), MAX_LISTED):
        found = loc.search(text, begin, end)
        address = _address(*found.groups()) if found else ""
        if address:
            changed = lastmod.search(text, begin, end)
            yield address, changed.group(1).strip() if changed else ""


def _address(verbatim: str | None, written: str) -> str:
    told = written.strip().removesuffix(_CDATA_END) if verbatim else html.unescape(written)
    return told.strip()


def _unpacked(body: bytes) -> bytes:
    if not body.startswith(_GZIP_MAGIC):
        return body
    unpacker = zlib.decompressobj(wbits=31)
    try:
        return unpacker.decompress(body, MAX_TEXT_BYTES)
    except zlib.error as error:
        _log.info("a compressed sitemap is damaged: %s", error)
        return b""


def read_sitemap(body: bytes, url: str) -> SiteListing | tuple[str, ...]:
    """The pages of a sitemap with words from their addresses; or its sitemaps."""
    found = parse_sitemap(body)
    if found.sitemaps:
        return found.sitemaps
    listing = Listing(url)
    for address, _ in found.pages:
        page = listing.page(address)
        if page is not None and not page.title:
            path = unquote(urlsplit(page.url).path)
            words = re.split(r"[\W_]+", path.rpartition(".")[0] or path)
            page.title = " ".join(words).strip()[:_MAX_TITLE_CHARS]
    return listing.done()


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
    """Read a map that the page at `page_url` named, or tell what more is needed for it.

    The files are those obtained so far, at least one, in the order asked for.
    """
    return _READERS[mark.kind](mark, page_url, files)


def _one_file(read: Callable[[str, str], SiteListing]) -> "_Read":
    return lambda mark, _, files: read(_text(next(iter(files.values()))), mark.root)


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
    """Join the sitemaps of an index; one that is an index itself or damaged says nothing."""
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
    page = decode(body)
    marks = [mark for mark in find_marks(parsed_page(page), url) if mark.kind != "home"]
    return NamedMaps(tuple(marks)) if marks else read_index_page(page, url, at_least=_LEAST_LINKS)


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
    # Pages that were stored before `all.html` was read name a file of this kind.
    "rustdoc": _one_file(read_index_page),
    "sitemap": _sitemap,
    "sphinx": lambda mark, page_url, files: read_search_index(
        _text(next(iter(files.values()))), mark.root, page_url
    ),
    "vitepress": _vitepress,
}
