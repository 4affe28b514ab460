"""Makes sure that a page is in the corpus, asking the site only when it has to.

Neither fetches nor indexes itself; it decides when to.
"""

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from webrag.errors import FetchError, PageGoneError
from webrag.indexing.corpus import Corpus
from webrag.indexing.indexer import Indexer, acquired_page
from webrag.indexing.models import AcquiredPage, StoredPage
from webrag.ingestion.links import canonical_url
from webrag.ingestion.models import NotModified, Validators

if TYPE_CHECKING:
    from webrag.ingestion.service import IngestionService

__all__ = ["PageAcquirer"]

_log = logging.getLogger(__name__)


class _Key(NamedTuple):
    loop: int
    url: str
    refresh: bool


class _Flight:
    """One acquisition several callers wait for; it is cancelled when the last one leaves."""

    def __init__(self, task: asyncio.Task[AcquiredPage]) -> None:
        self.task = task
        self.waiting = 0


class PageAcquirer:
    """Gets pages into the corpus; concurrent calls for one URL share one request.

    Args:
        ingestion: Fetches pages.
        indexer: Stores them.
        corpus: What is stored already.
        recrawl_after_s: Age from which a stored page is asked for again; None for never.
    """

    def __init__(
        self,
        ingestion: "IngestionService",
        indexer: Indexer,
        corpus: Corpus,
        *,
        recrawl_after_s: float | None = None,
    ) -> None:
        self._ingestion = ingestion
        self._indexer = indexer
        self._corpus = corpus
        self._recrawl_after_s = recrawl_after_s
        self._flights: dict[_Key, _Flight] = {}

    async def acquire(self, url: str, *, depth: int = 0, refresh: bool = False) -> AcquiredPage:
        """Give a page of the corpus, fetched first when it is missing, stale or gone.

        A stored page is asked for conditionally. When an old page is due and its site cannot be
        reached, the stored version is given, with a warning in the log.

        Args:
            url: Any spelling of the page's address.
            depth: Links from a page the user named, 0 for such a page; the smallest is kept.
            refresh: Ask the site whatever the page's age, and fail when it cannot be reached.

        Returns:
            The page; its `url` is the canonical one, which may differ from what was asked for.

        Raises:
            InputError: The URL cannot be used.
            PageGoneError: The site says that the page does not exist; a stored version is no
                longer retrieved.
            FetchError: The page could not be obtained.
            ProviderError: It could not be embedded.
            StorageError: It could not be stored.
        """
        wanted = canonical_url(url)
        page = await self._shared(wanted, depth, refresh)
        if depth >= page.depth:
            return page
        await self._corpus.lower_depth(page.url, depth)
        return page.model_copy(update={"depth": depth})

    async def _shared(self, url: str, depth: int, refresh: bool) -> AcquiredPage:
        key = _Key(id(asyncio.get_running_loop()), url, refresh)
        flight = self._flights.get(key)
        if flight is None:
            task = asyncio.create_task(self._acquire(url, depth, refresh))
            flight = self._flights[key] = _Flight(task)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0:
                self._flights.pop(key, None)
                flight.task.cancel()
                await asyncio.wait([flight.task])

    async def _acquire(self, url: str, depth: int, refresh: bool) -> AcquiredPage:
        stored = await self._corpus.page(url)
        if stored is not None and not refresh and self._is_fresh(stored):
            return acquired_page(stored, url, "stored")
        try:
            answer = await self._ingestion.ingest(url, validators=_validators(stored, url))
        except PageGoneError:
            if stored is not None and stored.url == url:
                await self._corpus.mark_gone(url, datetime.now(UTC))
            raise
        except FetchError as error:
            if stored is None or refresh or stored.gone_at is not None:
                raise
            _log.warning("%s is due but could not be fetched, using it as stored: %s", url, error)
            return acquired_page(stored, url, "stored")
        if not isinstance(answer, NotModified):
            return await self._indexer.index(answer, depth=depth)
        if stored is None:
            raise FetchError("The site says that an unknown page has not changed.", url=url)
        await self._corpus.touch(stored.url, answer.fetched_at)
        return acquired_page(stored, url, "unchanged")

    def _is_fresh(self, page: StoredPage) -> bool:
        if page.gone_at is not None:
            return False
        if self._recrawl_after_s is None:
            return True
        age_s = (datetime.now(UTC) - page.fetched_at).total_seconds()
        return age_s < self._recrawl_after_s


def _validators(stored: StoredPage | None, url: str) -> Validators | None:
    """Validators hold for the address they came with, not for its aliases."""
    if stored is None or url not in (stored.url, stored.requested_url):
        return None
    if stored.etag is None and stored.last_modified is None:
        return None
    return Validators(etag=stored.etag, last_modified=stored.last_modified)
