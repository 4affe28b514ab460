"""One batch of pages at Firecrawl: started, watched, its results sorted by page."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from webrag.errors import FetchError, InputError, ProviderError
from webrag.ingestion.firecrawl.answers import scraped_page
from webrag.ingestion.firecrawl.errors import clean_text
from webrag.ingestion.firecrawl.models import ScrapedPage
from webrag.ingestion.links import canonical_url

if TYPE_CHECKING:
    from webrag.ingestion.firecrawl.client import FirecrawlClient

__all__ = ["BatchRun"]

_log = logging.getLogger(__name__)

_ENDED = frozenset({"completed", "failed", "cancelled"})
_REQUEST_TIMEOUT_S = 30.0
_CANCEL_TIMEOUT_S = 5.0


class BatchRun:
    """A job for some pages; used once.

    A job that does not end in time, or whose progress can no longer be read, is cancelled so that
    it costs nothing more, and what it brought until then is kept.
    """

    def __init__(self, client: "FirecrawlClient", urls: Sequence[str]) -> None:
        self._client = client
        self._urls = list(urls)
        self._pages: dict[str, ScrapedPage] = {}
        self._reasons: dict[str, str] = {}
        self._rest = "it was not among the results of the batch"

    async def run(self) -> dict[str, ScrapedPage | FetchError]:
        """Give every URL its page or the reason why there is none.

        Raises:
            ProviderError: Firecrawl failed or refused before any page was there.
        """
        if not self._urls:
            return {}
        deadline = time.monotonic() + self._client.config.batch_timeout_s
        job = await self._start(deadline)
        try:
            ended = await self._watch(job, deadline)
        except BaseException:
            await self._cancel(job)
            raise
        if not ended:
            await self._cancel(job)
        await self._ask_reasons(job)
        return {url: self._pages.get(url) or self._failure(url) for url in self._urls}

    async def _start(self, deadline: float) -> str:
        async def ask(sdk: Any, _left_s: float) -> Any:
            from firecrawl.v2.types import ScrapeOptions

            options = ScrapeOptions(**self._client.scrape_options(self._client.config.timeout_s))
            started = await sdk.start_batch_scrape(
                self._urls, options=options, ignore_invalid_urls=True
            )
            if not started.id:
                raise ValueError("the batch has no name")
            return started

        started = await self._call(ask, deadline)
        for url in started.invalid_urls or ():
            self._reasons[_canonical(url)] = "Firecrawl takes it for an invalid address"
        return str(started.id)

    async def _watch(self, job: str, deadline: float) -> bool:
        """Collect pages until the job ends; False when it went on or could not be watched."""
        while True:
            try:
                status = await self._call(lambda sdk, _: sdk.get_batch_scrape_status(job), deadline)
            except (ProviderError, FetchError) as error:
                self._rest = str(error)
                if not self._pages:
                    raise
                return False
            self._collect(status.data)
            if status.status in _ENDED:
                if status.status != "completed":
                    self._rest = f"the batch {status.status}"
                return True
            poll_s = self._client.config.poll_s
            if len(self._pages) == len(self._urls) or time.monotonic() + poll_s >= deadline:
                seconds = self._client.config.batch_timeout_s
                self._rest = f"it did not arrive within {seconds:.0f} seconds"
                return False
            await asyncio.sleep(poll_s)

    def _collect(self, documents: Sequence[Any]) -> None:
        for document in documents:
            try:
                page = scraped_page(document, self._client.redactor)
            except ValueError:
                continue
            url = _canonical(page.requested_url or page.url)
            if url in self._urls:
                self._pages[url] = page

    async def _ask_reasons(self, job: str) -> None:
        if len(self._pages) == len(self._urls):
            return
        deadline = time.monotonic() + _CANCEL_TIMEOUT_S
        try:
            answer = await self._call(lambda sdk, _: sdk.get_batch_scrape_errors(job), deadline)
        except (ProviderError, FetchError) as error:
            _log.info("The reasons of a batch's failures are not known: %s", error)
            return
        for item in _listed(answer, "errors"):
            if isinstance(item, dict):
                reason = clean_text(str(item.get("error") or ""))
                self._reasons[_canonical(str(item.get("url") or ""))] = reason or "it failed"
        for url in _listed(answer, "robotsBlocked"):
            self._reasons[_canonical(str(url))] = "the site's robots.txt forbids it"

    async def _cancel(self, job: str) -> None:
        deadline = time.monotonic() + _CANCEL_TIMEOUT_S
        with contextlib.suppress(ProviderError, FetchError):
            await self._call(lambda sdk, _: sdk.cancel_batch_scrape(job), deadline)

    async def _call(self, ask: Any, deadline: float) -> Any:
        left_s = max(deadline - time.monotonic(), 0.1)
        return await self._client.call(
            ask, url=self._urls[0], timeout_s=min(left_s, _REQUEST_TIMEOUT_S)
        )

    def _failure(self, url: str) -> FetchError:
        reason = self._reasons.get(url, self._rest).rstrip(".")
        return FetchError(f"{url} could not be fetched by Firecrawl: {reason}.", url=url)


def _canonical(url: str) -> str:
    try:
        return canonical_url(url)
    except InputError:
        return url


def _listed(answer: Any, name: str) -> list[Any]:
    found = answer.get(name) if isinstance(answer, dict) else getattr(answer, name, None)
    return found if isinstance(found, list) else []
