"""The built-in page source: polite, guarded, capped HTTP; it does not convert pages."""

import asyncio
import contextlib
import email.utils
import logging
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpcore2
from ada_url import URL

from webrag.errors import (
    FetchError,
    InputError,
    PageGoneError,
    RefusedAddressError,
    RobotsDisallowedError,
    UnusablePageError,
)
from webrag.ingestion.decode import charset_of_header, decode
from webrag.ingestion.guard import AllowList, Resolver, resolve
from webrag.ingestion.http_client import Answer, BrokenConnectionError, Caps, WebClient
from webrag.ingestion.links import canonical_url
from webrag.ingestion.models import FetchConfig, FetchedPage, NotModified, Validators
from webrag.ingestion.politeness import HostGate
from webrag.ingestion.robots import RobotsAnswer, RobotsCache
from webrag.ingestion.sniff import UnreadableContent, page_kind

__all__ = ["HttpFetcher"]

_log = logging.getLogger(__name__)

_ACCEPT = "text/html, application/xhtml+xml;q=0.9, text/markdown;q=0.9, text/plain;q=0.8, */*;q=0.1"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_BUSY = frozenset({429, 503})
_BUSY_WAIT_S = 1.0
_ROBOTS_CAPS = Caps(wire_bytes=512_000, decoded_bytes=512_000, truncate=True)
_ROBOTS_TIMEOUT_S = 5.0
_MAX_VALIDATOR_CHARS = 500


class _Budget:
    """Seconds one fetch may spend on the network; waiting for one's turn is not counted."""

    def __init__(self, seconds: float) -> None:
        self.allowed = seconds
        self.left = seconds

    @contextlib.asynccontextmanager
    async def spend(self, at_most: float | None = None) -> AsyncIterator[None]:
        started = time.monotonic()
        limit = self.left if at_most is None else min(self.left, at_most)
        try:
            async with asyncio.timeout(limit):
                yield
        finally:
            self.left -= time.monotonic() - started


class HttpFetcher:
    """Fetches public pages over HTTP, following `models.PageSource`.

    Redirects are followed by hand so that every hop is checked like a first request; robots.txt,
    Crawl-delay and Retry-After are honoured. It belongs to one event loop.
    """

    name = "builtin"

    def __init__(
        self,
        config: FetchConfig,
        *,
        resolver: Resolver = resolve,
        dialer: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._config = config
        self._allowed = AllowList(config.allowed_hosts)
        self._client = WebClient(
            user_agent=config.user_agent,
            timeout_s=config.timeout_s,
            allowed=self._allowed,
            resolver=resolver,
            dialer=dialer,
        )
        self._gate = HostGate(concurrency=config.host_concurrency, delay_s=config.host_delay_s)
        self._robots = RobotsCache(self._fetch_robots, config.user_agent)
        self._caps = Caps(config.max_wire_bytes, config.max_decoded_bytes)

    async def fetch(
        self, url: str, *, validators: Validators | None = None
    ) -> FetchedPage | NotModified:
        """Get one page.

        Args:
            url: Absolute http(s) address.
            validators: Ask only for a version other than this one.

        Raises:
            InputError: Not an address that can be fetched.
            RefusedAddressError: The address, or one it redirects to, is not public.
            RobotsDisallowedError: The site's robots.txt forbids the page.
            PageGoneError: The site answers 404 or 410.
            UnusablePageError: Too large, binary or empty.
            FetchError: Any other status, no answer, or none within `timeout_s`.
        """
        requested = canonical_url(url)
        budget = _Budget(self._config.timeout_s)
        address = requested
        for _ in range(self._config.max_redirects + 1):
            answer = await self._ask_politely(address, validators, budget)
            if answer.status not in _REDIRECTS or not answer.headers.get("location"):
                return self._result(requested, answer, validators)
            address = _redirect_target(answer)
        raise FetchError(
            f"{requested} redirects more than {self._config.max_redirects} times.", url=requested
        )

    async def aclose(self) -> None:
        """Close every connection; the fetcher cannot be used afterwards."""
        await self._client.aclose()

    async def _ask_politely(
        self, url: str, validators: Validators | None, budget: _Budget
    ) -> Answer:
        target = URL(url)
        is_exempt = self._allowed.covers(target.hostname, _port(target))
        try:
            crawl_delay = await self._check_robots(url, budget)
            turn = self._gate.turn(target.host, crawl_delay_s=crawl_delay, is_exempt=is_exempt)
            async with turn, budget.spend():
                return await self._ask(url, _request_headers(validators), budget)
        except TimeoutError as error:
            raise FetchError(
                f"{url} did not arrive within {budget.allowed:g} seconds.", url=url
            ) from error

    async def _ask(self, url: str, headers: dict[str, str], budget: _Budget) -> Answer:
        deadline = time.monotonic() + budget.left
        try:
            answer = await self._client.get(url, headers=headers, caps=self._caps)
        except BrokenConnectionError:
            return await self._client.get(url, headers=headers, caps=self._caps)
        wait = _retry_after_s(answer.headers.get("retry-after"))
        if answer.status not in _BUSY or time.monotonic() + wait >= deadline:
            return answer
        _log.info("%s answered HTTP %d; asking again in %.1f s", url, answer.status, wait)
        await asyncio.sleep(wait)
        return await self._client.get(url, headers=headers, caps=self._caps)

    async def _check_robots(self, url: str, budget: _Budget) -> float | None:
        """Return the Crawl-delay of the page's site, or raise when the page is forbidden."""
        target = URL(url)
        async with budget.spend():
            try:
                rules = await self._robots.rules(target.origin)
            except RefusedAddressError as error:
                raise RefusedAddressError(str(error), url=url, hint=error.hint) from error
        if rules.failure is not None:
            raise FetchError(rules.failure, url=url)
        if not rules.allows(url):
            raise RobotsDisallowedError(
                f"The robots.txt of '{target.host}' does not let WebRAG fetch {url}.", url=url
            )
        return rules.crawl_delay_s

    async def _fetch_robots(self, url: str) -> RobotsAnswer:
        address = url
        try:
            async with asyncio.timeout(min(_ROBOTS_TIMEOUT_S, self._config.timeout_s)):
                for _ in range(self._config.max_redirects + 1):
                    answer = await self._client.get(address, headers={}, caps=_ROBOTS_CAPS)
                    if answer.status not in _REDIRECTS or not answer.headers.get("location"):
                        return _robots_answer(url, answer)
                    address = _redirect_target(answer)
        except TimeoutError:
            return RobotsAnswer(failure=f"{url} did not answer in time.")
        except RefusedAddressError:
            if address == url:
                raise
            return RobotsAnswer()
        except FetchError as error:
            return RobotsAnswer(failure=str(error))
        return RobotsAnswer()

    def _result(
        self, requested: str, answer: Answer, validators: Validators | None
    ) -> FetchedPage | NotModified:
        now = datetime.now(UTC)
        if answer.status == 304 and validators is not None:
            return NotModified(url=requested, fetched_at=now)
        _raise_for_status(answer)
        content_type = answer.headers.get("content-type", "")
        path = URL(answer.url).pathname
        try:
            kind = page_kind(content_type, answer.body, path)
        except UnreadableContent as error:
            raise UnusablePageError(
                f"{answer.url} is {error}; only HTML, Markdown and plain text pages are read.",
                url=requested,
                status=answer.status,
            ) from error
        return FetchedPage(
            requested_url=requested,
            url=answer.url,
            status=answer.status,
            kind=kind,
            text=decode(answer.body, header_charset=charset_of_header(content_type)),
            etag=_validator(answer, "etag"),
            last_modified=_validator(answer, "last-modified"),
            fetched_at=now,
            source=self.name,
        )


def _port(url: URL) -> int:
    return int(url.port) if url.port else (443 if url.protocol == "https:" else 80)


def _request_headers(validators: Validators | None) -> dict[str, str]:
    headers = {"Accept": _ACCEPT}
    if validators is not None and validators.etag:
        headers["If-None-Match"] = validators.etag
    if validators is not None and validators.last_modified:
        headers["If-Modified-Since"] = validators.last_modified
    return headers


def _redirect_target(answer: Answer) -> str:
    location = answer.headers["location"]
    try:
        return canonical_url(location, answer.url, keep_tracking=True)
    except InputError as error:
        raise RefusedAddressError(
            f"{answer.url} redirects to an address that is not followed. {error}",
            url=answer.url,
            status=answer.status,
        ) from error


def _robots_answer(url: str, answer: Answer) -> RobotsAnswer:
    if answer.status == 429 or answer.status >= 500:
        return RobotsAnswer(
            failure=f"{url} answers HTTP {answer.status}, so nothing of the site may be fetched"
            " now; try again later."
        )
    if not 200 <= answer.status < 300:
        return RobotsAnswer()
    return RobotsAnswer(text=decode(answer.body, header_charset="utf-8"))


def _raise_for_status(answer: Answer) -> None:
    status, url = answer.status, answer.url
    if status in _GONE:
        raise PageGoneError(
            f"The page {url} does not exist (HTTP {status}).", url=url, status=status
        )
    if status in (401, 403, 407):
        raise FetchError(
            f"The page {url} is not open to everyone (HTTP {status}).",
            url=url,
            status=status,
            hint="The site may want a login, or may turn automatic readers away.",
        )
    if not 200 <= status < 300:
        raise FetchError(f"The page {url} answered HTTP {status}.", url=url, status=status)
    if not answer.body.strip():
        raise UnusablePageError(f"The page {url} is empty.", url=url, status=status)


def _retry_after_s(value: str | None) -> float:
    """Seconds to wait, from a Retry-After header in either of its two forms."""
    text = (value or "").strip()
    if text.isdigit():
        return float(text)
    try:
        when = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return _BUSY_WAIT_S
    moment = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _validator(answer: Answer, name: str) -> str | None:
    value = answer.headers.get(name, "")
    return value if 0 < len(value) <= _MAX_VALIDATOR_CHARS else None
