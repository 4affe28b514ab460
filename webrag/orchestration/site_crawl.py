"""Brings the pages of a site into the corpus, breadth first; it fetches and stores through others.

The queue is in the database, so that memory does not grow with the site and an interrupted crawl
goes on where it was.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from webrag.errors import WebRAGError
from webrag.indexing.acquirer import PageAcquirer
from webrag.indexing.crawl_state import CrawlState
from webrag.ingestion.asides import listening
from webrag.ingestion.links import canonical_url
from webrag.orchestration.crawl_models import CrawlOptions, CrawlProgressCallback, SiteReport
from webrag.orchestration.crawl_run import CrawlRun, ListedPage
from webrag.orchestration.crawl_scope import CrawlScope

__all__ = ["SiteCrawler", "SiteList"]

_log = logging.getLogger(__name__)


class SiteList(Protocol):
    """Knows which pages a site lists itself, in a sitemap."""

    async def entries(self, start_url: str, *, limit: int) -> Sequence[ListedPage]:
        """Pages of the site; none when it lists none or cannot be asked."""


class SiteCrawler:
    """Crawls sites; one object may run several crawls at a time.

    Args:
        acquirer: Gets single pages into the corpus.
        state: Keeps the queues.
        site_list: Finds pages no link leads to; None to follow links only.
    """

    def __init__(
        self, acquirer: PageAcquirer, state: CrawlState, site_list: SiteList | None = None
    ) -> None:
        self._acquirer = acquirer
        self._state = state
        self._site_list = site_list

    async def crawl(
        self,
        start_url: str,
        options: CrawlOptions,
        *,
        on_progress: CrawlProgressCallback | None = None,
    ) -> SiteReport:
        """Visit the pages of a site, or go on with a crawl that was interrupted.

        Pages are found by links and by the site's own list. Every page is stored as soon as it is
        obtained; cancelling keeps what is stored, and the same call goes on from there.

        Args:
            start_url: First page.
            options: How far to go.
            on_progress: Told after each page; called on the event loop, must return quickly.

        Raises:
            InputError: The URL or a pattern cannot be used.
            FetchError: The start page could not be obtained.
            ProviderError: The embedding service fails for every page.
            StorageError: The database failed.
        """
        start = canonical_url(start_url)
        CrawlScope.of(options.scope, [start], options.include, options.exclude)
        record = await self._state.begin(options.key(start))
        run = CrawlRun(self._acquirer, self._state, record, start, options, on_progress)
        await run.remember()
        with listening(run.note_degraded):
            if record.is_resumed:
                _log.info("Going on with the crawl of %s after %d pages.", start, record.visited)
            else:
                await self._open(run)
            await run.work()
        report = await run.report()
        if report.ended != "unreachable":
            await self._state.end(record.id)
        return report

    async def _open(self, run: CrawlRun) -> None:
        try:
            await run.visit_start()
        except WebRAGError:
            await self._state.end(run.record.id)
            raise
        if self._site_list is not None and run.options.depth != 0:
            listed = await self._site_list.entries(run.start, limit=run.queue_limit)
            await run.enqueue_listed(listed)
        await run.opened()
