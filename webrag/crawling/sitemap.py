"""The pages a site lists itself, from its sitemaps or its llms.txt; it fetches none of them."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from ada_url import URL

from webrag.concurrency import in_background
from webrag.errors import FetchError
from webrag.ingestion.addresses import canonical_url, link_target, parent_urls, site_of
from webrag.ingestion.http.decode import decode
from webrag.ingestion.site_maps.indexes import read_llms
from webrag.ingestion.site_maps.listing import MapRefusedError
from webrag.ingestion.site_maps.reading import MAX_TEXT_BYTES, parse_sitemap
from webrag.ingestion.versions import parse_date

_log = logging.getLogger(__name__)

FetchBytes: TypeAlias = Callable[[str], Awaitable[bytes]]
DeclaredSitemaps: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]

_MAX_FILES = 50
_MAX_DEPTH = 3
_NEARBY_FOLDERS = 3
_LLMS = "/llms.txt"
# Where generators put the list of a site whose robots.txt does not say.
_USUAL_NAMES = ("sitemap-index.xml", "sitemap_index.xml", "wp-sitemap.xml")


@dataclass(frozen=True, slots=True)
class SitemapReader:
    """Reads sitemaps with the manners and guards of the functions it is given."""

    fetch_bytes: FetchBytes
    declared_sitemaps: DeclaredSitemaps

    async def entries(
        self, start_url: str, *, limit: int, named: Sequence[str] = ()
    ) -> dict[str, datetime | None]:
        """List pages of one site by canonical URL, with the date (UTC) that the site gives, if any.

        The sitemaps that robots.txt names and those `named` by a page are read, else
        `/sitemap.xml`, else those of other usual names, else those of the folders above the page,
        else `/llms.txt`; those about the first folder of `start_url` come first. At most 50 files
        are asked for, and no page. Empty when the site lists none or cannot be read.
        """
        start = canonical_url(start_url)
        run = _Run(self.fetch_bytes, start, limit)
        if limit <= 0:
            return {}
        origin = URL(start).origin
        declared: Sequence[str] = ()
        try:
            declared = await self.declared_sitemaps(start)
        except FetchError as error:
            _log.info("the sitemaps of %s are not known: %s", start, error)
        nearby = parent_urls(f"{start.rstrip('/')}/x")[:_NEARBY_FOLDERS]
        for addresses in (
            [*declared, *named],
            [f"{origin}/sitemap.xml"],
            [f"{origin}/{name}" for name in _USUAL_NAMES],
            [f"{folder}sitemap.xml" for folder in nearby],
            [f"{origin}{_LLMS}"],
        ):
            if not run.found:
                await run.read(addresses)
        if not run.found:
            _log.info("%s lists no pages of its own; they are found by their links", origin)
        return run.found


@dataclass(frozen=True, slots=True)
class _Run:
    fetch_bytes: FetchBytes
    start: str
    limit: int
    found: dict[str, datetime | None] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    async def read(self, addresses: Sequence[str]) -> None:
        """Read sitemaps and those they name, level by level."""
        level = [url for address in addresses if (url := link_target(address, self.start))]
        folder = URL(self.start).pathname.split("/")[1]
        for _ in range(_MAX_DEPTH):
            further: list[str] = []
            for address in sorted(level, key=lambda each: not folder or folder not in each):
                if len(self.found) >= self.limit or len(self.asked) >= _MAX_FILES:
                    return
                if body := await self._body(address):
                    # Scanning 20 MB takes a noticeable part of a second, as do 50,000 addresses.
                    further += await in_background(self._read, body, address)
            level = further

    def _read(self, body: bytes, address: str) -> list[str]:
        """Note the pages of a list, and give the further sitemaps that it names."""
        if address.endswith(_LLMS):
            with suppress(MapRefusedError):  # it names no page of the site
                listing = read_llms(decode(body[:MAX_TEXT_BYTES]), address)
                self._keep(((page.url, "") for page in listing.pages), address)
            return []
        sitemap = parse_sitemap(body)
        self._keep(sitemap.pages, address)
        named = (link_target(href, address) for href in sitemap.sitemaps[:_MAX_FILES])
        return [target for target in named if target]

    def _keep(self, listed: Iterable[tuple[str, str]], base: str) -> None:
        for href, lastmod in listed:
            if len(self.found) >= self.limit:
                return
            url = link_target(href, base)
            if url is not None and site_of(url) == site_of(self.start):
                self.found.setdefault(url, parse_date(lastmod) if lastmod else None)

    async def _body(self, url: str) -> bytes:
        if url in self.asked:
            return b""
        self.asked.add(url)
        try:
            return await self.fetch_bytes(url)
        except FetchError as error:
            _log.info("the sitemap %s was not read: %s", url, error)
            return b""
