"""Pages and sites into WebRAG, without a question."""

import asyncio
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict, Field

from webrag.concurrency import all_of
from webrag.corpus.models import AcquiredPage
from webrag.crawling.report import CrawlOptions, CrawlProgressCallback, SiteReport
from webrag.errors import WebRAGError
from webrag.ingestion.addresses import canonical_url
from webrag.ingestion.notes import listening
from webrag.lifetime import Lifetime

__all__ = ["IngestReport", "Ingesting"]

_INGEST_CONCURRENCY = 8  # per host the fetcher is stricter


class IngestReport(BaseModel):
    """Outcome of an ingest call.

    Attributes:
        pages: Pages that are in the corpus now, in the order they were asked for.
        failed: URL to the reason it was not obtained.
        degraded: Sentences about page sources that did not work as configured.
    """

    model_config = ConfigDict(frozen=True)

    pages: tuple[AcquiredPage, ...] = ()
    failed: dict[str, str] = Field(default_factory=dict)
    degraded: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<IngestReport {len(self.pages)} pages, {len(self.failed)} failed>"

    def __str__(self) -> str:
        """What became of each page, as `webrag ingest` prints it."""
        from webrag.presentation.reports import format_ingest

        return format_ingest(self.pages, self.failed, degraded=self.degraded)

    def _repr_html_(self) -> str:
        """What notebooks show: a table of the pages and what became of each."""
        from webrag.presentation.html.display import ingest_html

        return ingest_html(self.pages, self.failed, self.degraded)


class Ingesting(Lifetime):
    """The part of WebRAG that fetches and indexes; it must be open."""

    async def ingest(
        self,
        urls: str | Sequence[str],
        *,
        refresh: bool = False,
        on_page: Callable[[str, AcquiredPage | WebRAGError], None] | None = None,
    ) -> IngestReport:
        """Fetch and index pages; each is stored completely or not at all.

        Args:
            urls: Pages; a page named twice is fetched once.
            refresh: Ask the site again even when the stored version is fresh.
            on_page: Told each URL and its outcome as soon as it is known.

        Raises:
            InputError: A URL cannot be used; nothing was fetched.
        """
        wanted = [urls] if isinstance(urls, str) else list(urls)
        wanted = list(dict.fromkeys(canonical_url(url) for url in wanted))
        acquirer = (await self._current_parts()).acquirer
        slots = asyncio.Semaphore(_INGEST_CONCURRENCY)

        async def one(url: str) -> AcquiredPage | WebRAGError:
            async with slots:
                try:
                    outcome: AcquiredPage | WebRAGError = await acquirer.acquire(
                        url, refresh=refresh
                    )
                except WebRAGError as error:
                    outcome = error
            if on_page is not None:
                on_page(url, outcome)
            return outcome

        notes: dict[str, None] = {}
        with listening(lambda sentence: notes.update({sentence: None})):
            results = await all_of(one(url) for url in wanted)
        outcomes = list(zip(wanted, results, strict=True))
        return IngestReport(
            pages=tuple(page for _, page in outcomes if isinstance(page, AcquiredPage)),
            failed={url: str(error) for url, error in outcomes if isinstance(error, WebRAGError)},
            degraded=tuple(notes),
        )

    async def ingest_site(
        self,
        url: str,
        options: CrawlOptions | None = None,
        *,
        on_progress: CrawlProgressCallback | None = None,
    ) -> SiteReport:
        """Fetch and index the pages of a site, breadth first from `url`.

        Each page is stored completely or not at all, as soon as it is obtained. Cancelling keeps
        what is stored; the same call then goes on where it was, and a finished crawl that is
        repeated asks only about pages that are due.

        Args:
            url: Start page.
            options: How far to go; at most 500 pages below the start page's folder when None.
            on_progress: Told after each page.

        Raises:
            InputError: The URL or a pattern cannot be used.
            FetchError: The start page could not be obtained.
            ProviderError: The embedding service fails for every page.
            StorageError: The database failed.
        """
        return await (await self._current_parts()).crawler.crawl(
            url, options or CrawlOptions(), on_progress=on_progress
        )
