"""Finds a site's pages for evaluation by following its own links, breadth first."""

from collections.abc import Callable, Sequence
from typing import Protocol

from webrag.errors import WebRAGError
from webrag.indexing.models import AcquiredPage, LinkCandidate
from webrag.ingestion.links import canonical_url, site_of

__all__ = ["LinkSource", "PageCallback", "crawl"]

PageCallback = Callable[[str, AcquiredPage | WebRAGError], None]

_BATCH = 20  # pages asked for at once; politeness per host is the fetcher's


class LinkSource(Protocol):
    """The part of WebRAG that a crawl needs."""

    async def ingest(
        self, urls: str | Sequence[str], *, on_page: PageCallback | None = None
    ) -> object:
        """Fetch and index pages."""

    async def links(self, urls: Sequence[str]) -> list[LinkCandidate]:
        """Links of stored pages."""


async def crawl(
    source: LinkSource, start: str, *, max_pages: int, on_progress: Callable[[int, int], None]
) -> list[str]:
    """Ingest pages of the site of `start` and below its folder, breadth first.

    Args:
        source: Fetches pages and knows their links.
        start: First page; targets outside its folder are left alone.
        max_pages: Pages asked for at most.
        on_progress: Told (pages done, pages known) after each page.

    Returns:
        URLs obtained, in the order they were asked for.
    """
    start = canonical_url(start)
    folder = start.rsplit("/", 1)[0] + "/"
    known = {start: None}
    obtained: list[str] = []
    done = 0

    def count(_: str, outcome: AcquiredPage | WebRAGError) -> None:
        nonlocal done
        done += 1
        if isinstance(outcome, AcquiredPage):
            obtained.append(outcome.url)
        on_progress(done, len(known))

    queue = [start]
    while queue and done < max_pages:
        batch, queue = queue[:_BATCH][: max_pages - done], queue[_BATCH:]
        before = len(obtained)
        await source.ingest(batch, on_page=count)
        for link in await source.links(obtained[before:]):
            inside = site_of(link.url) == site_of(start) and link.url.startswith(folder)
            if inside and link.url not in known:
                known[link.url] = None
                queue.append(link.url)
    return obtained
