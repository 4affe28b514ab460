"""A thin, patient client of Firecrawl: its SDK behind deadlines, retries and typed failures."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeVar

import httpx
from llama_index.postprocessor.webrag.retry_after import retry_after_s
from llama_index.postprocessor.webrag.service_calls import (
    CircuitBreaker,
    RetryPolicy,
    limited_client,
    size_failure,
)

from webrag.concurrency import ended
from webrag.errors import FetchError, ProviderError
from webrag.ingestion.addresses import link_target
from webrag.ingestion.characters import one_line, storable
from webrag.ingestion.html.markdown import PageFacts
from webrag.ingestion.models import FirecrawlConfig, MappedLink
from webrag.redaction import Redactor, redacted_failure, remember_secrets

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_ENDED = frozenset({"completed", "failed", "cancelled"})
_REQUEST_TIMEOUT_S = 30.0
_CANCEL_TIMEOUT_S = 5.0
# What the SDK raises, and what its code stumbles over when an answer is not what it expects.
_SDK_FAILURES = (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError, AttributeError, KeyError)
_CACHE_KEPT_S = 172_800.0
_GATHERED_S = 0.1
_LEAST_TIMEOUT_S = 1.0
_MOST_TIMEOUT_S = 300.0
_MOST_PAUSE_S = 600.0
_PASSING = frozenset({500, 502, 503, 504})
_MAX_SAID = 200
_MAX_FIELD_CHARS = 1_000
_REFUSED_KEY_PAUSE_S = 300.0
_CHECK_URL = "Check FIRECRAWL_API_URL: it must lead to a Firecrawl server of version 2."
_CHECK_KEY = "Check FIRECRAWL_API_KEY, or take it out to use the built-in fetcher."
_TOP_UP = "Top up the account or raise its plan at firecrawl.dev."
_RATES = "Wait a minute, or raise the plan's limits with Firecrawl."


@dataclass(frozen=True, slots=True)
class Failure:
    """A request to Firecrawl that brought nothing.

    The `page` cannot be had, whoever asks; Firecrawl will not do the `request`, others may; or the
    `service` itself does not work now. It wants to be left alone for `wait_s`, and asking again is
    useless for `pause_s`; with `may_retry` the same request may succeed a little later.
    """

    kind: Literal["page", "request", "service"]
    sentence: str
    hint: str | None = None
    status: int | None = None
    may_retry: bool = False
    wait_s: float | None = None
    pause_s: float | None = None


_PAGE_FAILURES = {
    "SCRAPE_DNS_RESOLUTION_ERROR": "Firecrawl found no address for the page's host.",
    "SCRAPE_SSL_ERROR": "The page's host has no valid TLS certificate, so it was not trusted.",
}
_REFUSALS = {
    401: ("Firecrawl refused the API key (HTTP 401).", _CHECK_KEY, _REFUSED_KEY_PAUSE_S),
    402: ("The Firecrawl account has no credits left (HTTP 402).", _TOP_UP, _REFUSED_KEY_PAUSE_S),
    404: ("Firecrawl does not know this request (HTTP 404).", _CHECK_URL, None),
}


def failure_of(error: Exception) -> Failure:
    """Explain an exception of the SDK, of its HTTP client, or of code that misread an answer."""
    if large := size_failure(error):
        return Failure("page", f"Firecrawl answered with {large}, which is more than is read.")
    if isinstance(error, httpx.HTTPError):
        reason = clean_text(str(error)) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            reason = "it did not answer in time"
        hint = _CHECK_URL if isinstance(error, httpx.ConnectError) else None
        sentence = f"Firecrawl could not be reached: {reason}."
        return Failure("service", sentence, hint, may_retry=True)
    status = getattr(error, "status_code", None)
    code = str(getattr(error, "code", None) or "")
    is_refusal = isinstance(status, int) and status >= 400
    if code.startswith("SCRAPE_") and not (is_refusal and code == "SCRAPE_TIMEOUT"):
        unread = f"Firecrawl could not read the page ({code}){_said(error)}."
        return Failure("page", _PAGE_FAILURES.get(code, unread), None, status or 200)
    if isinstance(status, int) and status >= 400:
        return _by_status(status, error)
    sentence = f"Firecrawl's answer could not be understood ({_nature(error)})."
    return Failure("service", sentence, _CHECK_URL, status, may_retry=True)


def _by_status(status: int, error: Exception) -> Failure:
    said = _said(error)
    if status in _REFUSALS:
        sentence, hint, pause_s = _REFUSALS[status]
        return Failure("service", sentence, hint, status, pause_s=pause_s)
    if status == 408:
        sentence = f"Firecrawl could not load the page in time (HTTP 408){said}."
        return Failure("page", sentence, status=status, may_retry=True)
    if status == 429:
        sentence = f"Firecrawl's limit of requests is reached (HTTP 429){said}."
        response = getattr(error, "response", None)
        wait_s = None if response is None else retry_after_s(response.headers.get("retry-after"))
        return Failure(
            "service", sentence, _RATES, status, may_retry=True, wait_s=wait_s, pause_s=wait_s
        )
    if status >= 500:
        sentence = f"Firecrawl failed (HTTP {status}){said}."
        return Failure("service", sentence, status=status, may_retry=status in _PASSING)
    return Failure("request", f"Firecrawl refused the request (HTTP {status}){said}.", None, status)


def _nature(error: Exception) -> str:
    if isinstance(error, ValueError) and type(error).__name__ == "JSONDecodeError":
        return "it is not JSON"
    said = _said(error).removeprefix(": ")
    return said if said and hasattr(error, "response") else "it lacks what the interface promises"


def _said(error: Exception) -> str:
    """Quote the service itself as an ending for a sentence; empty when it says nothing."""
    response: Any = getattr(error, "response", None)
    text = str(error) if response is None and hasattr(error, "status_code") else ""
    with contextlib.suppress(ValueError, AttributeError):
        text = text or str(response.json().get("error") or "")
    return f": {text}" if (text := clean_text(text)) else ""


def clean_text(text: str) -> str:
    """A service's words on one short line, without anything that looks like a key."""
    return one_line(redacted_failure(text))[:_MAX_SAID].rstrip(". ")


@dataclass(frozen=True, slots=True)
class ScrapedPage(PageFacts):
    """One page as Firecrawl answered; "" and None where it says nothing.

    Status and error are of the page's own site, the warning is a remark of the service.
    """

    markdown: str = ""
    html: str = ""
    raw_html: str = ""
    requested_url: str = ""
    url: str = ""
    status: int | None = None
    content_type: str = ""
    error: str = ""
    warning: str = ""


def scraped_page(document: Any, redactor: Redactor) -> ScrapedPage:
    """Read what the SDK made of an answer, without the key; ValueError where it is empty."""
    facts = document.metadata_typed
    text, line = partial(_plain, redactor), partial(_one_line, redactor)
    page = ScrapedPage(
        markdown=text(document.markdown),
        html=text(document.html),
        raw_html=text(document.raw_html),
        links=tuple(text(link) for link in document.links or ()),
        title=line(facts.title or facts.og_title),
        description=line(facts.description or facts.og_description),
        language=line(facts.language),
        published_at=line(facts.published_time),
        modified_at=line(facts.modified_time),
        requested_url=text(facts.source_url),
        url=text(facts.url or facts.source_url),
        status=facts.status_code,
        content_type=text(facts.content_type),
        error=clean_text(text(facts.error)),
        warning=clean_text(text(document.warning)),
    )
    if page == ScrapedPage():
        raise ValueError("the answer holds nothing")
    return page


def _plain(redactor: Redactor, value: Any) -> str:
    return redactor.hide_whole(storable(value)) if isinstance(value, str) else ""


def _one_line(redactor: Redactor, value: Any) -> str:
    return one_line(_plain(redactor, value))[:_MAX_FIELD_CHARS]


class BatchRun:
    """A job for some pages; used once.

    A job that does not end in time, or whose progress can no longer be read, is cancelled so that
    it costs nothing more, and what it brought until then is kept.
    """

    def __init__(
        self, client: "FirecrawlClient", urls: Sequence[str], *, fresh: bool = False
    ) -> None:
        self._client = client
        self._urls = list(urls)
        self._fresh = fresh
        self._pages: dict[str, ScrapedPage] = {}
        self._reasons: dict[str, str] = {}
        self._rest = "it was not among the results of the batch"

    async def run(self) -> dict[str, ScrapedPage | FetchError]:
        """Give every URL its page or the reason for none; ProviderError where no page came."""
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

            timeout_s = self._client.config.timeout_s
            options = ScrapeOptions(**self._client.scrape_options(timeout_s, fresh=self._fresh))
            started = await sdk.start_batch_scrape(
                self._urls, options=options, ignore_invalid_urls=True
            )
            if not started.id:
                raise ValueError("the batch has no name")
            return started

        started = await self._call(ask, deadline)
        for url in started.invalid_urls or ():
            self._reasons[link_target(url) or url] = "Firecrawl takes it for an invalid address"
        return str(started.id)

    async def _watch(self, job: str, deadline: float) -> bool:
        """Collect pages until the job ends; False when it went on or could not be watched."""
        while True:
            try:
                status = await self._call(lambda sdk, _: sdk.get_batch_scrape_status(job), deadline)
            except (ProviderError, FetchError) as error:
                if not self._pages:
                    raise
                # The last question may be cut short by the batch's own deadline.
                is_over = time.monotonic() >= deadline
                self._rest = self._too_late() if is_over else str(error)
                return False
            self._collect(status.data)
            if status.status in _ENDED:
                if status.status != "completed":
                    self._rest = f"the batch {status.status}"
                return True
            poll_s = self._client.config.poll_s
            if len(self._pages) == len(self._urls) or time.monotonic() + poll_s >= deadline:
                self._rest = self._too_late()
                return False
            await asyncio.sleep(poll_s)

    def _too_late(self) -> str:
        return f"it did not arrive within {self._client.config.batch_timeout_s:g} seconds"

    def _collect(self, documents: Sequence[Any]) -> None:
        for document in documents:
            try:
                page = scraped_page(document, self._client.redactor)
            except ValueError:
                continue
            named = page.requested_url or page.url
            url = link_target(named) or named
            if url in self._urls:
                self._pages[url] = page

    async def _ask_reasons(self, job: str) -> None:
        if len(self._pages) == len(self._urls):
            return

        async def ask(sdk: Any, _left_s: float) -> dict[str, str]:
            answer = await sdk.get_batch_scrape_errors(job)
            failed = {item["url"]: item.get("error") or "" for item in answer.get("errors") or ()}
            blocked = answer.get("robotsBlocked") or ()
            return failed | dict.fromkeys(blocked, "the site's robots.txt forbids it")

        try:
            reasons = await self._call(ask, time.monotonic() + _CANCEL_TIMEOUT_S)
        except (ProviderError, FetchError) as error:
            _log.info("The reasons of a batch's failures are not known: %s", error)
            return
        for url, reason in reasons.items():
            self._reasons[link_target(str(url)) or ""] = clean_text(str(reason)) or "it failed"

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


class FirecrawlClient:
    """Scrapes pages and lists sites through `firecrawl-py`.

    The SDK has no deadline of its own, gives a 429 back at once and can hang for ever, so every
    call here has a deadline, and what may pass is tried again with growing, jittered waits that
    honour Retry-After as far as the deadline allows. After several failures in a row the service
    is left alone for a while. It belongs to one event loop; close it with `aclose`.
    """

    def __init__(self, config: FirecrawlConfig) -> None:
        self.config = config
        key = config.api_key.get_secret_value() if config.api_key else ""
        remember_secrets(key)
        self.redactor = Redactor([key])
        self._slots = asyncio.Semaphore(config.concurrency)
        self._breaker: CircuitBreaker[Failure] = CircuitBreaker(
            threshold=config.failures, open_s=config.pause_s
        )
        self._starting = asyncio.Lock()
        self._sdk: Any = None
        self._sdk_errors: tuple[type[Exception], ...] = _SDK_FAILURES
        self._limit: Failure | None = None
        self._quiet_until = 0.0

    async def scrape(self, url: str, *, fresh: bool = False) -> ScrapedPage:
        """Get one page by a canonical URL that was judged already.

        Raises:
            FetchError: Nobody can have the page.
            ProviderError: Firecrawl failed or refused; nothing is known about the page.
        """

        async def ask(sdk: Any, left_s: float) -> ScrapedPage:
            options = self.scrape_options(left_s, fresh=fresh)
            return scraped_page(await sdk.scrape(url, auto_resume=False, **options), self.redactor)

        return await self.call(ask, url=url, timeout_s=self.config.timeout_s)

    async def map(self, url: str, *, search: str | None = None, limit: int) -> list[MappedLink]:
        """List pages of a site, in the service's order, each once; raise what `scrape` raises.

        What is no web address is left out.
        """

        async def ask(sdk: Any, left_s: float) -> list[MappedLink]:
            answer = await sdk.map(
                url, search=search, limit=limit, sitemap="include", timeout=_milliseconds(left_s)
            )
            text, line = partial(_plain, self.redactor), partial(_one_line, self.redactor)
            found: dict[str, MappedLink] = {}
            for item in answer.links if isinstance(answer.links, list) else ():
                if target := link_target(text(item.url)):
                    said = {"title": line(item.title), "description": line(item.description)}
                    found.setdefault(target, MappedLink(url=target, **said))
            return list(found.values())[:limit]

        return await self.call(ask, url=url, timeout_s=self.config.map_timeout_s)

    def scrape_options(self, left_s: float, *, fresh: bool = False) -> dict[str, Any]:
        """The options of every scrape, for a caller who waits `left_s`."""
        age_s = _CACHE_KEPT_S if self.config.max_age_s is None else self.config.max_age_s
        kinds = ("markdown", "html", "rawHtml", "links")
        return {
            # As objects: the published interface refuses the strings the SDK documents.
            "formats": [{"type": kind} for kind in kinds],
            "only_main_content": False,
            "skip_tls_verification": False,
            "max_age": 0 if fresh else int(age_s * 1000),
            "timeout": _milliseconds(left_s),
        }

    async def call(
        self, ask: Callable[[Any, float], Awaitable[_T]], *, url: str, timeout_s: float
    ) -> _T:
        """Ask until there is an answer, the attempts are used up or `timeout_s` is over.

        `ask` makes one request with the SDK, knowing the seconds that are left. The wait for a free
        place does not count. The URL is named in errors about the page.
        """
        sdk = await self._opened()
        async with self._slots:
            reason = self._breaker.reason
            if self._breaker.seconds_left() > 0 and reason is not None:
                raise _provider_error(reason)
            answer = await self._attempts(ask, sdk, time.monotonic() + timeout_s, timeout_s)
        if isinstance(answer, Failure):
            raise self._noted(answer, url)
        self._breaker.succeeded()
        return answer

    async def aclose(self) -> None:
        """Close the SDK's connections, for which it offers no way itself."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            await sdk._v2_client.async_http_client.close()

    async def _attempts(
        self,
        ask: Callable[[Any, float], Awaitable[_T]],
        sdk: Any,
        deadline: float,
        timeout_s: float,
    ) -> _T | Failure:
        last = Failure("service", f"Firecrawl did not answer within {timeout_s:.0f} seconds.")

        async def attempt() -> _T:
            nonlocal last
            wait_s = self._quiet_until - time.monotonic()
            if self._limit is not None and time.monotonic() + wait_s >= deadline:
                last = self._limit
                raise _FailedError
            await asyncio.sleep(max(wait_s, 0.0))
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    return await ask(sdk, deadline - time.monotonic())
            except self._sdk_errors as error:
                last = failure_of(error)
                if last.wait_s is not None:
                    # The limit is the account's: everybody waits, not only this call.
                    self._limit = last
                    self._quiet_until = max(self._quiet_until, time.monotonic() + last.wait_s)
                raise _FailedError from None

        policy = RetryPolicy(
            attempts=self.config.attempts,
            backoff_s=self.config.backoff_s,
            deadline=deadline,
            is_passing=lambda error: isinstance(error, _FailedError) and last.may_retry,
            # What the service asks for is waited for before the next request, whoever makes it;
            # here it only decides whether there is time for one.
            asked_pause_s=lambda _: max(self._quiet_until - time.monotonic(), 0.0),
            on_pause=lambda _, wait_s: _log.info(
                "%s Asking again in %.1f s.", last.sentence, wait_s
            ),
        )
        try:
            return await policy.run(attempt)
        except (_FailedError, TimeoutError):
            return last

    def _noted(self, failure: Failure, url: str) -> FetchError | ProviderError:
        if failure.kind == "service":
            pause_s = None if failure.pause_s is None else min(failure.pause_s, _MOST_PAUSE_S)
            self._breaker.failed(failure, pause_s=pause_s)
        else:
            self._breaker.succeeded()  # it answers, if only with a refusal
        if failure.kind == "page":
            return FetchError(f"{url} could not be fetched. {failure.sentence}", url=url)
        return _provider_error(failure)

    async def _opened(self) -> Any:
        """The SDK's client; importing the SDK takes more than half a second."""
        async with self._starting:
            if self._sdk is None:
                module = await asyncio.to_thread(import_module, "firecrawl")
                self._sdk_errors = (*_SDK_FAILURES, module.FirecrawlError)
                key = self.config.api_key
                self._sdk = module.AsyncFirecrawl(
                    # None would make the SDK look for a key in the environment.
                    api_key=key.get_secret_value() if key else "",
                    api_url=self.config.api_url.rstrip("/"),
                    max_retries=1,
                )
                await self._connect_as_set()
            return self._sdk

    async def _connect_as_set(self) -> None:
        """Give the SDK, which takes no client, one that heeds the environment only if told to."""
        http = self._sdk._v2_client.async_http_client
        stock, proxy = http._client, self.config.proxy
        http._client = limited_client(
            httpx.AsyncClient,
            proxy.get_secret_value() if proxy else None,
            base_url=stock.base_url,
            headers=stock.headers,
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        await stock.aclose()


class _Gathering:
    """Pages to be scraped with one job, which begins when no further one is asked for."""

    task: "asyncio.Task[dict[str, ScrapedPage | FetchError]]"

    def __init__(self) -> None:
        self.urls: dict[str, None] = {}
        self.waiting = 0


class GatheredScrapes:
    """Scrapes with one job what is asked for at about the same time; a page alone needs none."""

    def __init__(self, client: FirecrawlClient) -> None:
        self._client = client
        self._open: dict[bool, _Gathering] = {}

    async def scrape(self, url: str, *, fresh: bool = False) -> ScrapedPage:
        """As the client's, but for a caller who can wait for the pages of others.

        A job is cancelled when nobody waits for it any more.
        """
        gathering = self._open.get(fresh)
        if gathering is None:
            gathering = self._open[fresh] = _Gathering()
            gathering.task = asyncio.create_task(self._scraped(gathering, fresh))
        gathering.urls[url] = None
        gathering.waiting += 1
        try:
            found = (await asyncio.shield(gathering.task))[url]
        finally:
            gathering.waiting -= 1
            if not gathering.waiting:
                self._close(gathering, fresh)
                await ended([gathering.task])
        if isinstance(found, FetchError):
            raise found
        return found

    def _close(self, gathering: _Gathering, fresh: bool) -> None:
        """Let nobody join any more; another may have begun since."""
        if self._open.get(fresh) is gathering:
            del self._open[fresh]

    async def _scraped(
        self, gathering: _Gathering, fresh: bool
    ) -> dict[str, ScrapedPage | FetchError]:
        known = 0
        while len(gathering.urls) > known:
            known = len(gathering.urls)
            await asyncio.sleep(_GATHERED_S)
        self._close(gathering, fresh)
        if known == 1:
            (url,) = gathering.urls
            return {url: await self._client.scrape(url, fresh=fresh)}
        try:
            return await BatchRun(self._client, list(gathering.urls), fresh=fresh).run()
        except FetchError as error:  # which names one page and is about the job
            raise ProviderError(str(error), provider="Firecrawl") from error


class _FailedError(Exception):
    """A request brought nothing."""


def _provider_error(failure: Failure) -> ProviderError:
    return ProviderError(
        failure.sentence, provider="Firecrawl", status=failure.status, hint=failure.hint
    )


def _milliseconds(left_s: float) -> int:
    """Leave the service a little less time than there is, within what it allows."""
    given_s = left_s - min(left_s * 0.1, 2.0)
    return int(min(max(given_s, _LEAST_TIMEOUT_S), _MOST_TIMEOUT_S) * 1000)
