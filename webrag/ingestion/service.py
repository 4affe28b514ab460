"""URL in, normalised document out: joins page sources and the processes that convert pages."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from ada_url import URL

from webrag.errors import FetchError, RefusedAddressError, SourceUnavailableError, UnusablePageError
from webrag.ingestion.addresses import is_file, is_git, page_address
from webrag.ingestion.fetch_context import check_request, count_answer, note
from webrag.ingestion.models import (
    Conversion,
    FetchedPage,
    NormalizedDocument,
    NotModified,
    PageSource,
    Validators,
)
from webrag.process_pool.pool import Job, WorkerPool, WorkFailedError

if TYPE_CHECKING:
    from webrag.ingestion.browser import BrowserRenderer

_JOB: Final = Job("webrag.ingestion.extract:make_converter", Conversion)


class ExtractionPool:
    """Converts pages in up to `workers` processes, started when first needed.

    Other work on pages may be done in them too. `timeout_s` is processor time of one page.
    """

    def __init__(self, workers: int, timeout_s: float) -> None:
        self.workers = WorkerPool(workers, timeout_s)
        self.timeout_s = timeout_s

    def prepare(self, job: Job[Any] = _JOB) -> None:
        """Start the processes, ready for a job, if none has been."""
        self.workers.prepare([job] * 2)

    async def extract(self, page: FetchedPage) -> NormalizedDocument:
        """Convert one page, or raise UnusablePageError that says why it cannot be."""
        try:
            conversion = await self.workers.run(
                _JOB, page, about=f"{page.url} (converting it)", timeout_s=self.timeout_s
            )
        except WorkFailedError as error:
            raise self.failure(page, error) from error
        return conversion.result(page)

    async def aclose(self) -> None:
        """End every process; calls under way fail."""
        await self.workers.aclose()

    def failure(self, page: FetchedPage, error: WorkFailedError) -> UnusablePageError:
        """Say why a page could not be converted."""
        return UnusablePageError(
            f"{page.url} cannot be converted: {error}.", url=page.url, status=page.status
        )


_log = logging.getLogger(__name__)

_UNDRAWN = "It may want a click, a login or a request that is more than reading first."
# A drawn page has no scripts left to excuse its emptiness.
_TEXTLESS = frozenset({"empty", "script_shell", "too_little_text"})
# Of a page that is read as its Markdown version: what that cannot say, and what it may say as well.
_OWN = ("url", "site_name", "edition")
_BETTER = ("title", "description", "author", "language", "published_at", "modified_at")

Convert = Callable[[FetchedPage], Awaitable[NormalizedDocument]]


class IngestionService:
    """Gets pages ready to be indexed; owns the source and the pool it is given.

    The renderer draws pages whose text scripts write, or all of HTML with `render_always`.
    """

    def __init__(
        self,
        source: PageSource,
        pool: ExtractionPool,
        *,
        prefer_markdown: bool = False,
        renderer: "BrowserRenderer | None" = None,
        render_always: bool = False,
    ) -> None:
        self._source = source
        self._prefer_markdown = prefer_markdown
        self._pool = pool
        self._renderer = renderer
        self._render_always = render_always

    async def ingest(
        self,
        url: str,
        *,
        validators: Validators | None = None,
        fresh: bool = False,
        on_fetched: Callable[[], Awaitable[None]] | None = None,
        convert: Convert | None = None,
    ) -> NormalizedDocument | NotModified:
        """Fetch one page and convert it.

        With `validators`, from the stored version, a current page is not transferred; `fresh` takes
        no copy that a service keeps; `on_fetched` is awaited before there is something to convert;
        `convert` is used in place of the pool.

        Raises:
            InputError: `url` is not an address that can be fetched.
            FetchError: The page could not be obtained or holds nothing readable.
        """
        fetched = await self._fetch(url, validators, fresh)
        if isinstance(fetched, NotModified):
            return fetched
        if on_fetched is not None:
            await on_fetched()
        # A browser would read other files beside a file of this machine.
        is_drawable = fetched.kind == "html" and fetched.url.startswith(("http://", "https://"))
        renderer = self._renderer if is_drawable else None
        if self._render_always and renderer is not None:
            return await self._drawn(fetched, renderer, convert)
        try:
            document = await self._extracted(fetched, convert)
        except UnusablePageError as error:
            if error.alternative_url is not None:
                _log.info("%s; reading its Markdown version %s", error, error.alternative_url)
                return await self._markdown_version(fetched, error.alternative_url, fresh, convert)
            if renderer is None or error.kind != "script_shell":
                raise
            _log.info("%s Drawing it in a browser.", error)
            return await self._drawn(fetched, renderer, convert)
        other = document.markdown_url
        if not self._prefer_markdown or other is None or fetched.kind != "html":
            return document
        try:
            markdown = await self._markdown_version(fetched, other, fresh, convert)
        except FetchError as error:
            _log.info("the Markdown version of %s was not read: %s", url, error)
            return document
        # The Markdown version's text with what only the page itself says.
        own = {name: getattr(document, name) for name in _OWN}
        better = {name: getattr(document, name) or getattr(markdown, name) for name in _BETTER}
        return markdown.model_copy(update=own | better)

    async def convert(self, page: FetchedPage) -> NormalizedDocument:
        """Convert a page that is at hand; UnusablePageError where it holds nothing readable."""
        return await self._pool.extract(page)

    async def _fetch(
        self, url: str, validators: Validators | None, fresh: bool
    ) -> FetchedPage | NotModified:
        check_request(url)
        fetched = await self._source.fetch(url, validators=validators, fresh=fresh)
        count_answer(fetched)
        return fetched

    async def _markdown_version(
        self, page: FetchedPage, url: str, fresh: bool, convert: Convert | None
    ) -> NormalizedDocument:
        other = await self._fetch(url, None, fresh)
        assert isinstance(other, FetchedPage)
        document = await self._extracted(other, convert)
        # The page stays what was asked for, so later requests go to it, without the validators
        # of another address.
        own = {"url": page_address(page.url), "requested_url": page.requested_url}
        with_login = page.with_login or other.with_login
        validators = {"etag": None, "last_modified": None}
        return document.model_copy(update={**own, **validators, "with_login": with_login})

    async def _extracted(self, page: FetchedPage, convert: Convert | None) -> NormalizedDocument:
        try:
            return await (convert or self.convert)(page)
        except UnusablePageError as error:
            if not (page.with_login and error.kind == "login_wall"):
                raise
            from webrag.ingestion.logins.session import login_expired

            raise login_expired(page.url, URL(page.url).host, page.status) from error

    async def _drawn(
        self, page: FetchedPage, renderer: "BrowserRenderer", convert: Convert | None
    ) -> NormalizedDocument:
        """The page as a browser draws it, with files of other sites only when it needs them."""
        other_sites = False
        while True:
            rendering = await renderer.render(page, other_sites=other_sites)
            try:
                return await self._extracted(rendering.page, convert)
            except UnusablePageError as error:
                if error.kind not in _TEXTLESS:
                    raise
                if other_sites or not rendering.left_out:
                    from webrag.ingestion.quality import Wall

                    wall = Wall("script_shell", "a browser draws no text on it either", _UNDRAWN)
                    raise wall.error(page.url, page.status) from error
            other_sites = True

    async def aclose(self) -> None:
        """Close the source's connections, end the browser and the pool's processes."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._pool.aclose)
            if self._renderer is not None:
                stack.push_async_callback(self._renderer.aclose)
            stack.push_async_callback(self._source.aclose)


class SourceByAddress:
    """Reads files of this machine and of repositories each from a source, pages from another.

    `web` is asked for pages of the web and never told of anything else.
    """

    def __init__(self, web: PageSource, files: PageSource, clones: PageSource) -> None:
        self._web = web
        self._files = files
        self._clones = clones

    @property
    def name(self) -> str:
        """Of the source of web pages, which is what users choose."""
        return self._web.name

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage | NotModified:
        """Get one page, as `PageSource` says; a program's own document cannot be asked for."""
        source = self._files if is_file(url) else self._clones if is_git(url) else self._web
        if source is self._web and not url.startswith("http"):
            raise FetchError(f"{url} was brought by a program and cannot be asked for.", url=url)
        return await source.fetch(url, validators=validators, fresh=fresh)

    async def aclose(self) -> None:
        """Close every source."""
        async with AsyncExitStack() as stack:
            for source in (self._clones, self._files, self._web):
                stack.push_async_callback(source.aclose)


class FallbackSource:
    """Asks the first source, and the second one when the first one itself has failed.

    A page that is missing, forbidden or unreadable is not asked for again. The second source alone
    is told `is_private` addresses. Each failure is noted for the caller; the log gets it once.
    """

    def __init__(
        self,
        first: PageSource,
        second: PageSource,
        *,
        is_private: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        self._first = first
        self._second = second
        self._is_private = is_private
        self._logged: str | None = None

    @property
    def name(self) -> str:
        """Both names; each page records the one it came from."""
        return f"{self._first.name}, else {self._second.name}"

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage | NotModified:
        """Get one page, as `PageSource` says."""
        if self._is_private is None or not await self._is_private(url):
            try:
                page = await self._first.fetch(url, validators=validators, fresh=fresh)
            except SourceUnavailableError as error:
                self._tell(error)
            except RefusedAddressError:
                _log.debug("%s is not for %s.", url, self._first.name)
            else:
                self._logged = None
                return page
        return await self._second.fetch(url, validators=validators, fresh=fresh)

    async def aclose(self) -> None:
        """Close both sources."""
        try:
            await self._first.aclose()
        finally:
            await self._second.aclose()

    def _tell(self, error: SourceUnavailableError) -> None:
        advice = f" {error.hint}" if error.hint else ""
        name = self._second.name
        other = "the built-in fetcher" if name == "builtin" else name
        sentence = f"{error}{advice} Pages were fetched by {other} instead."
        note(sentence)
        if sentence != self._logged:
            self._logged = sentence
            _log.warning("%s", sentence)
