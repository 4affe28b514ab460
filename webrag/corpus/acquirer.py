"""Makes sure that a page is in the corpus, asking the site only when it has to.

Neither fetches nor indexes itself; it decides when to.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from webrag.concurrency import ended, within
from webrag.corpus.models import AcquiredPage, StoredPage
from webrag.corpus.pages import Corpus
from webrag.errors import (
    DatabaseUnavailableError,
    FetchError,
    InputError,
    PageGoneError,
    ProviderError,
    RefusedAddressError,
    StorageError,
    UnusablePageError,
    WebRAGError,
)
from webrag.ingestion.addresses import is_file, is_local, page_address
from webrag.ingestion.fetch_context import PageLimitError, PageMeter, current_meter, listening, note
from webrag.ingestion.models import NormalizedDocument, NotModified, Validators
from webrag.ingestion.versions import Edition, edition_of

if TYPE_CHECKING:
    from webrag.ingestion.service import IngestionService

_log = logging.getLogger(__name__)

_LONGEST_S = 1e9  # thirty years, well within what a date can hold

AdmitPage = Callable[[str], bool]
# As `Indexer.index` and `PageWorkers.convert`.
IndexPage = Callable[..., Awaitable[AcquiredPage]]
ConvertPage = Callable[..., Awaitable[NormalizedDocument]]


class PageNotAdmittedError(FetchError):
    """Catch it to tell a page that leads elsewhere from one that cannot be had."""


class _Request(NamedTuple):
    """Callers that agree on all of it share one acquisition."""

    url: str
    refresh: bool
    since: datetime | None
    admits: AdmitPage | None
    fresh: bool
    version: str
    folder: str


class _Flight:
    """One acquisition several callers wait for; it is cancelled when the last one leaves."""

    def __init__(self, work: Coroutine[Any, Any, AcquiredPage]) -> None:
        self.notes: list[str] = []
        with listening(self.notes.append):
            self.task = asyncio.create_task(work)
        self.waiting = 0


@dataclass(eq=False)
class PageAcquirer:
    """Gets pages into the corpus; concurrent calls for one URL share one request.

    What a page source notes meanwhile (`webrag.ingestion.fetch_context`) reaches each of these
    callers in the end; the bytes it reads, and the requests that a service refuses as too many, are
    told only to the first, at once. A stored page is asked for again once it is `recrawl_after_s`
    old, with None never. `prepare` is called before a page is asked for that is not stored, to make
    ready what will convert and cut it; `convert` does both in one go, else `index` cuts.
    """

    ingestion: "IngestionService"
    index: IndexPage
    corpus: Corpus
    _: KW_ONLY
    recrawl_after_s: float | None = None
    prepare: Callable[[], None] = lambda: None
    convert: ConvertPage | None = None
    # By event loop, too; and what one caller may not ask for must not fail another's page, nor
    # be charged to another.
    _flights: dict[tuple[int, _Request, PageMeter | None], _Flight] = field(
        default_factory=dict, init=False
    )

    async def acquire(
        self,
        url: str,
        *,
        depth: int = 0,
        refresh: bool = False,
        since: datetime | None = None,
        admits: AdmitPage | None = None,
        fresh: bool | None = None,
        on_fetched: Callable[[], Awaitable[None]] | None = None,
        version: str = "",
        folder: str = "",
    ) -> AcquiredPage:
        """Give a page of the corpus, fetched first when it is missing, stale or gone.

        A stored page is asked for conditionally; one that is due and cannot be had is given as it
        is, with a warning in the log. Each outcome is remembered, and the smallest `depth`, links
        from a page the user named.

        With `refresh` the site is asked whatever the page's age, unless it confirmed a version
        `since` then, and not being reached is a failure. Of a page that `admits` refuses by its
        canonical URL with `PageNotAdmittedError` nothing is remembered. `fresh` takes no copy that
        a scraping service keeps, by default for `refresh` without `since`. `on_fetched` of the
        first caller is awaited when the site has given the page. The user named the `version` of a
        library and the `folder` of a file.
        """
        request = _Request(
            page_address(url),
            refresh,
            since,
            admits,
            fresh=(refresh and since is None) if fresh is None else fresh,
            version=version,
            folder=folder,
        )
        page = await self._shared(request, depth, on_fetched)
        if depth >= page.depth:
            return page
        await self.corpus.lower_depth(page.url, depth)
        return page.model_copy(update={"depth": depth})

    async def give_up(self, url: str, why: str) -> UnusablePageError:
        """Remember that a page is not tried any more, and give its failure."""
        failure = UnusablePageError(f"{url} was given up: {why}.", url=url, kind="given_up")
        await self.corpus.note_failure(url, datetime.now(UTC), reason=str(failure))
        return failure

    @asynccontextmanager
    async def given_up_after(self, seconds: float | None, url: str) -> AsyncIterator[None]:
        """Give a page up, as `give_up` does, unless the block ends in time; None waits for it."""
        async with within(seconds) as limit:
            yield
        if limit.expired():
            raise await self.give_up(url, f"it was not done within {seconds:g} seconds")

    def due_before(self, moment: datetime) -> datetime:
        """Pages the site confirmed before this are due at `moment`."""
        if self.recrawl_after_s is None:
            return datetime.min.replace(tzinfo=UTC)
        return moment - timedelta(seconds=min(self.recrawl_after_s, _LONGEST_S))

    async def _shared(
        self, request: _Request, depth: int, on_fetched: Callable[[], Awaitable[None]] | None
    ) -> AcquiredPage:
        key = (id(asyncio.get_running_loop()), request, current_meter())
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(self._acquire(request, depth, on_fetched))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            for sentence in flight.notes:
                note(sentence)
            flight.waiting -= 1
            if flight.waiting == 0:
                self._flights.pop(key, None)
                await ended([flight.task])

    async def _acquire(
        self, request: _Request, depth: int, on_fetched: Callable[[], Awaitable[None]] | None
    ) -> AcquiredPage:
        try:
            return await self._obtained(request, depth, on_fetched)
        except WebRAGError:
            raise
        except Exception as error:
            failure = unexpected_failure(request.url, error)
            await self.corpus.note_failure(request.url, datetime.now(UTC), reason=str(failure))
            raise failure from error

    async def _labelled(self, stored: StoredPage, request: _Request) -> StoredPage:
        if not request.version:
            return stored
        edition = _given_edition(request, stored.url, stored.edition)
        if edition == stored.edition:
            return stored
        assert edition is not None
        await self.corpus.set_edition(stored.url, edition)
        return stored.model_copy(update={"edition": edition})

    async def _obtained(
        self, request: _Request, depth: int, on_fetched: Callable[[], Awaitable[None]] | None
    ) -> AcquiredPage:
        url = request.url
        stored = await self.corpus.page(url)
        if stored is not None:
            stored = await self._labelled(stored, request)
        if stored is not None and self._is_fresh(stored, request):
            return stored.acquired(url, "stored")
        if stored is None:
            self.prepare()
        asked_at = datetime.now(UTC)
        try:
            answer = await self.ingestion.ingest(
                url,
                validators=_validators(stored, url),
                fresh=request.fresh,
                on_fetched=on_fetched,
                convert=self.convert
                and partial(self.convert, known=stored and stored.content_hash),
            )
        except FetchError as error:
            is_refused_file = isinstance(error, RefusedAddressError) and is_file(error.url)
            if stored is not None and not request.refresh and is_refused_file:
                # It was stored where it may be read; nothing new is known of it.
                return stored.acquired(url, "stored")
            await self._note_failure(error, url, stored, asked_at)
            gone = isinstance(error, PageGoneError)
            if stored is None or gone or request.refresh or stored.gone_at is not None:
                raise
            _log.warning("%s is due but could not be fetched, using it as stored: %s", url, error)
            return stored.acquired(url, "stored")
        if not isinstance(answer, NotModified):
            return await self._index(answer, request, depth)
        if stored is None:
            raise FetchError("The site says that an unknown page has not changed.", url=url)
        await self.corpus.touch(stored.url, answer.fetched_at)
        return stored.acquired(url, "unchanged")

    async def _index(
        self, document: NormalizedDocument, request: _Request, depth: int
    ) -> AcquiredPage:
        if request.admits is not None and not request.admits(document.url):
            raise PageNotAdmittedError(
                f"{request.url} leads to {document.url}, which was not asked for.",
                url=request.url,
                status=document.status,
            )
        if request.version:
            edition = _given_edition(request, document.url, document.edition)
            document = document.model_copy(update={"edition": edition})
        try:
            return await self.index(document, depth=depth)
        except DatabaseUnavailableError:
            raise
        except InputError as error:
            # Nobody gave it: a text of the page is more than the model takes.
            failure = UnusablePageError(
                f"{document.url} was not stored: {error}",
                url=document.url,
                status=document.status,
                hint=error.hint,
            )
            await self._note_unstored(document, failure)
            raise failure from error
        except (FetchError, ProviderError, StorageError) as error:
            await self._note_unstored(document, error)
            raise

    async def _note_unstored(self, document: NormalizedDocument, error: WebRAGError) -> None:
        reason = f"The page was fetched but not stored: {error}"
        try:
            await self.corpus.note_failure(document.url, document.fetched_at, reason=reason)
        except StorageError as other:
            if not isinstance(error, StorageError):
                raise
            _log.warning("What became of %s cannot be remembered: %s", document.url, other)

    async def _note_failure(
        self, error: FetchError, url: str, stored: StoredPage | None, at: datetime
    ) -> None:
        if isinstance(error, PageLimitError):
            return  # the site was not asked, so nothing is known of the page
        reason = str(error)
        if isinstance(error, PageGoneError) and stored is not None and stored.url == url:
            await self.corpus.mark_gone(url, at, reason=reason, status=error.status)
            return
        if stored is not None and url in (stored.url, stored.requested_url):
            url = stored.url
            # Also when the site shows a page that says so with the status 200: that may pass, and
            # marking a page as gone takes it out of every answer.
            reason += " The stored version stays in use." if stored.gone_at is None else ""
        await self.corpus.note_failure(url, at, reason=reason, status=error.status)

    def _is_fresh(self, page: StoredPage, request: _Request) -> bool:
        if page.gone_at is not None or is_local(page.url):  # a look at a file costs nothing
            return False
        if request.refresh:
            return request.since is not None and page.fetched_at >= request.since
        return page.fetched_at > self.due_before(datetime.now(UTC))


def unexpected_failure(url: str, error: Exception) -> UnusablePageError:
    """Log an error that nobody foresaw whole, and give the failure of the one page it concerns."""
    _log.error("%s could not be processed.", url, exc_info=error)
    reason = f"{type(error).__name__}: {error}"[:300]
    return UnusablePageError(
        f"{url} could not be processed because of an unexpected error ({reason}).",
        url=url,
        hint="The log has the whole of it; please report it.",
        kind="unexpected",
    )


def _given_edition(request: _Request, url: str, found: Edition | None) -> Edition | None:
    if found is None:
        return edition_of(url, given=request.version, folder=request.folder)
    return found.model_copy(update={"version": request.version, "is_given": True})


def _validators(stored: StoredPage | None, url: str) -> Validators | None:
    """Validators hold for the address they came with, not for its aliases."""
    if stored is None or url not in (stored.url, stored.requested_url):
        return None
    if stored.etag is None and stored.last_modified is None:
        return None
    return Validators(etag=stored.etag, last_modified=stored.last_modified)
