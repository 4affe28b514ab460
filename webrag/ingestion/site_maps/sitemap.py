"""Sitemap files as data: addresses and dates, however they are written or packed."""

import html
import itertools
import logging
import re
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from webrag.ingestion.http.decode import decode
from webrag.ingestion.site_maps.listing import Listing, SiteListing

_log = logging.getLogger(__name__)

# The protocol allows 50 MB a file; the pages beyond these are found by their links.
MAX_TEXT_BYTES: Final = 20_000_000
MAX_LISTED: Final = 50_000
# The protocol allows 2,048; a number written with more digits than Python converts is no address.
_MAX_ADDRESS_CHARS = 4_000
_MAX_TITLE_CHARS = 200
_GZIP_MAGIC = b"\x1f\x8b"
_WEB = ("http://", "https://")
_ROOT = re.compile(r"<(?:([\w-]{1,40}):)?(urlset|sitemapindex)[\s>]", re.IGNORECASE)
_CDATA_START, _CDATA_END = "<![CDATA[", "]]>"


class Sitemap(NamedTuple):
    """One sitemap file: addresses with their `lastmod`, and further sitemaps, all as written."""

    pages: tuple[tuple[str, str], ...] = ()
    sitemaps: tuple[str, ...] = ()


def parse_sitemap(body: bytes) -> Sitemap:
    """Read a sitemap: XML or one address per line, also compressed; at most 20 MB of its text.

    Tolerant: what is cut off, unknown or malformed is passed over. Nothing is expanded or loaded,
    so that entities and document types cannot do harm.
    """
    text = decode(_unpacked(body)[:MAX_TEXT_BYTES])
    root = _ROOT.search(text[:10_000])
    if root is None:
        lines = (line.strip() for line in text.splitlines()[:MAX_LISTED])
        return Sitemap(pages=tuple((line, "") for line in lines if line.startswith(_WEB)))
    prefix = f"{re.escape(root.group(1))}:" if root.group(1) else ""
    if root.group(2).lower() == "urlset":
        return Sitemap(pages=tuple(_items(text, prefix, "url")))
    return Sitemap(sitemaps=tuple(url for url, _ in _items(text, prefix, "sitemap")))


def _items(text: str, prefix: str, name: str) -> Iterator[tuple[str, str]]:
    loc = re.compile(rf"<{prefix}loc>\s*+", re.IGNORECASE)
    lastmod = re.compile(rf"<{prefix}lastmod>\s*+([^<]{{4,40}})</", re.IGNORECASE)
    opening = re.compile(rf"<{prefix}{name}(?=[\s>])", re.IGNORECASE)
    openings = itertools.islice(opening.finditer(text), MAX_LISTED + 1)
    starts = [match.end() for match in openings]
    for begin, end in itertools.islice(itertools.pairwise([*starts, len(text)]), MAX_LISTED):
        address = _first_address(text, loc, begin, end)
        if address is None:
            continue
        changed = lastmod.search(text, begin, end)
        yield address, changed.group(1).strip() if changed else ""


def _first_address(text: str, loc: re.Pattern[str], begin: int, end: int) -> str | None:
    """What the first `loc` of an item holds; the text is scanned once, however it is cut off."""
    for place in loc.finditer(text, begin, end):
        start = place.end()
        is_verbatim = text.startswith(_CDATA_START, start, end)
        if is_verbatim:
            start += len(_CDATA_START)
        close = text.find(_CDATA_END if is_verbatim else "<", start, end)
        if close < 0:
            return None
        written = text[start:close].strip()
        if written and len(written) <= _MAX_ADDRESS_CHARS:
            return written if is_verbatim else html.unescape(written).strip()
    return None


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
