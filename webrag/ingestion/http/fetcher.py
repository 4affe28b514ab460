"""The built-in page source: polite, guarded, capped HTTP; it does not convert pages."""

import asyncio
import contextlib
import itertools
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, TypeAlias

import httpcore2
import httpx2
from ada_url import URL
from llama_index.postprocessor.webrag.retry_after import retry_after_s
from protego import Protego

from webrag.concurrency import in_background
from webrag.errors import FetchError, RefusedAddressError, RobotsDisallowedError, UnusablePageError
from webrag.ingestion.addresses import canonical_url, port_of
from webrag.ingestion.fetch_context import is_patient
from webrag.ingestion.http.answers import (
    BUSY,
    FAILURE_KEPT_S,
    KEPT_S,
    RobotsAnswer,
    fetched_page,
    next_address,
    raise_for_status,
    robots_answer,
)
from webrag.ingestion.http.client import Answer, BrokenConnectionError, Caps, WebClient
from webrag.ingestion.http.guard import AllowList, Resolver, resolve
from webrag.ingestion.logins.session import Logins, login_expired
from webrag.ingestion.models import FetchConfig, FetchedPage, NotModified, Validators
from webrag.ingestion.quality import wall_of_answer

_log = logging.getLogger(__name__)

# A robots.txt may ask for minutes; a question answered by a person waiting cannot grant that.
MAX_CRAWL_DELAY_S = 10.0

_REMEMBERED_HOSTS = 1_000


class SharedManners(Protocol):
    """Lets several processes be polite to a host together, or raises StorageError."""

    async def take(
        self, host: str, *, concurrency: int, delay_s: float, lease_s: float, is_patient: bool
    ) -> str:
        """Wait for a turn at a host, at most `lease_s` long, and give what ends it."""

    async def end(self, host: str, token: str) -> None:
        """End a turn."""

    async def hold(self, host: str, seconds: float) -> None:
        """Let nobody begin a turn for a while."""

    async def robots(self, origin: str, ask: Callable[[], Awaitable[RobotsAnswer]]) -> RobotsAnswer:
        """A site's robots.txt, which one process asks for on behalf of all."""


class _Host:
    def __init__(self, concurrency: int) -> None:
        self.slots = asyncio.Semaphore(concurrency)
        self.next_start = 0.0
        self.held_until = 0.0
        self.users = 0


@dataclass(kw_only=True, eq=False)
class HostGate:
    """Lets requests through host by host, at most so many at once and so often.

    Waiting is fair per host and one slow host never holds up another. It belongs to one event
    loop; `shared` counts the requests of other processes too, which last `lease_s` at most.
    """

    concurrency: int
    delay_s: float
    shared: SharedManners | None = None
    lease_s: float = 60.0
    _hosts: OrderedDict[str, _Host] = field(default_factory=OrderedDict, init=False)

    @contextlib.asynccontextmanager
    async def turn(
        self, host: str, *, crawl_delay_s: float | None = None, is_exempt: bool = False
    ) -> AsyncIterator[None]:
        """Wait for a turn at `host` and hold it; at once for hosts the operator has opened.

        What the host asks for is honoured up to `MAX_CRAWL_DELAY_S`.
        """
        if is_exempt:
            yield
            return
        delay = max(self.delay_s, min(crawl_delay_s or 0.0, MAX_CRAWL_DELAY_S))
        state = self._hosts.setdefault(host, _Host(self.concurrency))
        self._hosts.move_to_end(host)
        state.users += 1
        try:
            async with state.slots:
                await self._wait_for_start(state, delay)
                async with self._shared_turn(host, delay):
                    yield
        finally:
            state.users -= 1
            self._forget_idle()

    @contextlib.asynccontextmanager
    async def _shared_turn(self, host: str, delay: float) -> AsyncIterator[None]:
        if self.shared is None:
            yield
            return
        token = await self.shared.take(
            host,
            concurrency=self.concurrency,
            delay_s=delay,
            lease_s=self.lease_s,
            is_patient=is_patient(),
        )
        try:
            yield
        finally:
            await asyncio.shield(self.shared.end(host, token))

    async def hold(self, host: str, seconds: float) -> None:
        """Begin no request to a busy host for a while, `MAX_CRAWL_DELAY_S` at most.

        Other processes hold too; one that never had a turn, or is exempt, is held nowhere.
        """
        state = self._hosts.get(host)
        if state is None:
            return
        wait_s = min(seconds, MAX_CRAWL_DELAY_S)
        state.held_until = max(state.held_until, time.monotonic() + wait_s)
        state.next_start = max(state.next_start, state.held_until)
        if self.shared is not None:
            await self.shared.hold(host, wait_s)

    async def _wait_for_start(self, state: _Host, delay: float) -> None:
        now = time.monotonic()
        start = max(now, state.next_start)
        state.next_start = start + delay
        await asyncio.sleep(start - now)
        # The host may have asked for a pause meanwhile.
        await asyncio.sleep(max(0.0, state.held_until - time.monotonic()))

    def _forget_idle(self) -> None:
        while len(self._hosts) > _REMEMBERED_HOSTS:
            host, state = next(iter(self._hosts.items()))
            if state.users or state.next_start > time.monotonic():
                return
            del self._hosts[host]


_REMEMBERED_SITES = 500
_MAX_SITEMAPS = 100
# An address is compared with every rule: 150,000 wildcards, which 500 kB can hold, take half a
# second each time. Files of large shops hold some hundreds.
_MAX_WILDCARDS = 20_000


@dataclass(frozen=True)
class RobotsRules:
    """One site's rules for one crawler; a `failure` says why they are unknown.

    Then nothing may be fetched (RFC 9309, 2.3.1.4). Sitemaps are addresses as written.
    """

    failure: str | None
    crawl_delay_s: float | None
    sitemaps: tuple[str, ...]
    _parsed: Protego
    _agent: str

    def allows(self, url: str) -> bool:
        """Tell whether the rules let this crawler fetch `url`."""
        return self.failure is None and bool(self._parsed.can_fetch(url, self._agent))


Fetch: TypeAlias = Callable[[str], Awaitable[RobotsAnswer]]


class _Entry:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.rules: RobotsRules | None = None
        self.expires = 0.0


class RobotsCache:
    """Rules per site, fetched once however many pages of it are wanted at the same time."""

    def __init__(self, fetch: Fetch, user_agent: str) -> None:
        self._fetch = fetch
        self._agent = user_agent.partition("/")[0].strip() or user_agent
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    async def rules(self, origin: str) -> RobotsRules:
        """Return the rules of `https://host[:port]`, asking when they are not known or too old."""
        entry = self._entries.setdefault(origin, _Entry())
        self._entries.move_to_end(origin)
        while len(self._entries) > _REMEMBERED_SITES:
            self._entries.popitem(last=False)
        async with entry.lock:
            if entry.rules is None or time.monotonic() > entry.expires:
                answer = await self._fetch(f"{origin}/robots.txt")
                # Reading 500 kB takes half a second.
                entry.rules = await in_background(self._parse, answer)
                kept = KEPT_S if answer.failure is None else FAILURE_KEPT_S
                entry.expires = time.monotonic() + kept
        return entry.rules

    def _parse(self, answer: RobotsAnswer) -> RobotsRules:
        failure, is_huge = answer.failure, answer.text.count("*") > _MAX_WILDCARDS
        if is_huge:
            failure = f"The site's robots.txt has more than {_MAX_WILDCARDS:,} wildcards."
        parsed = Protego.parse("" if is_huge else answer.text)
        delay = parsed.crawl_delay(self._agent)
        sitemaps = tuple(itertools.islice(parsed.sitemaps, _MAX_SITEMAPS))
        return RobotsRules(failure, delay, sitemaps, parsed, self._agent)


_ACCEPT = "text/html, application/xhtml+xml;q=0.9, text/markdown;q=0.9, text/plain;q=0.8, */*;q=0.1"
_ROBOTS_CAPS = Caps(wire_bytes=512_000, decoded_bytes=512_000, truncate=True)
_ROBOTS_TIMEOUT_S = 5.0
# For a host that is busy and does not say for how long.
_BUSY_WAIT_S = 1.0
_LEASE_MARGIN_S = 10.0
_FILE_CAPS = Caps(wire_bytes=10_000_000, decoded_bytes=20_000_000, truncate=True)


class _Budget:
    """Seconds one fetch may spend on the network; waiting for one's turn is not counted."""

    def __init__(self, seconds: float) -> None:
        self.allowed = seconds
        self.left = seconds

    @contextlib.asynccontextmanager
    async def spend(self) -> AsyncIterator[None]:
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.left):
                yield
        finally:
            self.left -= time.monotonic() - started


@dataclass
class _Way:
    """From what was asked for to its answer, with the cookies that were set on it.

    `login` is the host of the login that the last request had, `had_login` tells of all of them.
    """

    requested: str
    takes_login: bool = False
    is_part: bool = False
    login: str | None = None
    had_login: bool = False
    cookies: httpx2.Cookies = field(default_factory=httpx2.Cookies)

    def place(self, url: str) -> tuple[str, ...]:
        """Name the place it has come to; the same page is another one with other cookies."""
        return (url, *sorted(f"{each.name}={each.value}" for each in self.cookies.jar))


class HttpFetcher:
    """Fetches public pages over HTTP, following `models.PageSource`, on one event loop.

    Redirects are followed by hand so that every hop is checked like a first request; robots.txt,
    Crawl-delay and Retry-After are honoured. Pages and their parts are asked for with the login of
    their host; robots.txt and files that sites list their pages in never are.
    """

    name = "builtin"

    def __init__(
        self,
        config: FetchConfig,
        *,
        resolver: Resolver = resolve,
        dialer: httpcore2.AsyncNetworkBackend | None = None,
        shared: SharedManners | None = None,
        logins: Logins | None = None,
    ) -> None:
        self._config = config
        self._logins = logins or Logins()
        self._shared = shared
        self._allowed = AllowList(config.allowed_hosts)
        self._client = WebClient(
            user_agent=config.user_agent,
            timeout_s=config.timeout_s,
            allowed=self._allowed,
            resolver=resolver,
            dialer=dialer,
        )
        self._gate = HostGate(
            concurrency=config.host_concurrency,
            delay_s=config.host_delay_s,
            shared=shared,
            lease_s=config.timeout_s + _LEASE_MARGIN_S,
        )
        self._robots = RobotsCache(self._fetch_robots, config.user_agent)
        self._agent = config.user_agent.partition("/")[0].strip()
        self._caps = Caps(
            config.max_wire_bytes, config.max_decoded_bytes, pdf_bytes=config.max_pdf_bytes
        )

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage | NotModified:
        """Get one page, as `PageSource` says; no copies are kept here."""
        del fresh
        requested = canonical_url(url)
        way = _Way(requested, takes_login=True)
        answer = await self._final_answer(way, self._caps, validators)
        now = datetime.now(UTC)
        if answer.status == 304 and validators is not None:
            return NotModified(url=requested, fetched_at=now)
        if (
            way.login is not None
            and answer.status in (401, 403)
            and wall_of_answer(answer.status, answer.headers, answer.body) is None
        ):
            raise login_expired(answer.url, way.login, answer.status)
        raise_for_status(answer)
        # Telling the charset of bytes that name none takes up to a second.
        page = await in_background(
            fetched_page, requested, answer, fetched_at=now, source=self.name, agent=self._agent
        )
        return page.model_copy(update={"with_login": way.had_login})

    async def fetch_bytes(self, url: str, *, at_most: int | None = None) -> bytes:
        """Get a file as it is served, decompressed, with the guards and errors of a page.

        One of more than `at_most` bytes is refused; without, the first 20 MB of any are given.
        """
        caps = _FILE_CAPS if at_most is None else Caps(at_most, at_most)
        answer = await self._final_answer(_Way(canonical_url(url)), caps, None)
        raise_for_status(answer)
        return answer.body

    async def fetch_part(self, url: str, *, page: str = "") -> Answer:
        """Get a file that a page is made of, with the guards of a page, whatever its status.

        Files of one page are asked for together, as browsers do, so they wait for no turn. `page`
        is its address if that was read with a login, which only files of the very same host get;
        another site's page could read what comes back. InputError where the address cannot be
        fetched, FetchError where no answer comes, it is too large, or robots.txt forbids the file.
        """
        address = canonical_url(url, keep_tracking=True)
        takes_login = bool(page) and URL(page).origin == URL(address).origin
        way = _Way(address, takes_login=takes_login, is_part=True)
        return await self._final_answer(way, self._caps, None)

    async def has_login(self, url: str) -> bool:
        """Tell whether an address is asked for with a login."""
        return self._logins.host_of(url) is not None

    async def declared_sitemaps(self, url: str) -> tuple[str, ...]:
        """Give the addresses the robots.txt of a page's site names for its sitemaps."""
        address = canonical_url(url)
        budget = _Budget(self._config.timeout_s)
        try:
            return (await self._site_rules(address, budget)).sitemaps
        except TimeoutError as error:
            raise _late(address, budget) from error

    async def aclose(self) -> None:
        """Close every connection; the fetcher cannot be used afterwards."""
        await self._client.aclose()

    async def _final_answer(self, way: _Way, caps: Caps, validators: Validators | None) -> Answer:
        budget = _Budget(self._config.timeout_s)
        url = requested = way.requested
        seen = {way.place(url)}
        for _ in range(self._config.max_redirects + 1):
            headers = _request_headers(validators) | self._login_headers(way, url)
            answer = await self._ask_politely(url, caps, headers, budget, way)
            target = _next_address(answer, way.login)
            if target is None:
                return answer
            if way.place(target) in seen:
                why = f"in a circle, by way of {target}"
                break
            url = target
            seen.add(way.place(url))
        else:
            why = f"more than {self._config.max_redirects} times"
        raise UnusablePageError(
            f"{requested} redirects {why}.",
            url=requested,
            status=answer.status,
            hint="The site may want a cookie or a login first.",
            kind="endless_redirect",
        )

    def _login_headers(self, way: _Way, url: str) -> dict[str, str]:
        way.login = self._logins.host_of(url) if way.takes_login else None
        if way.login is None:
            # A part that leads elsewhere does not come back to the login.
            way.takes_login = way.takes_login and not way.is_part
            return {}
        way.had_login = True
        return self._logins.headers_for(url)

    async def _ask_politely(
        self, url: str, caps: Caps, headers: dict[str, str], budget: _Budget, way: _Way
    ) -> Answer:
        target = URL(url)
        is_exempt = way.is_part or self._allowed.covers(target.hostname, port_of(target))
        try:
            rules = await self._site_rules(url, budget)
            # A file of 500 kB may hold 15,000 rules with ten wildcards each: 0.3 s.
            if not await in_background(rules.allows, url):
                said = f"The robots.txt of '{target.host}' does not let WebRAG fetch {url}."
                raise RobotsDisallowedError(said, url=url)
            delay = rules.crawl_delay_s
            turn = self._gate.turn(target.host, crawl_delay_s=delay, is_exempt=is_exempt)
            ask = partial(self._client.get, url, headers=headers, caps=caps, cookies=way.cookies)
            async with turn, budget.spend():
                return await self._ask(ask, url, budget)
        except TimeoutError as error:
            raise _late(url, budget) from error

    async def _ask(self, ask: Callable[[], Awaitable[Answer]], url: str, budget: _Budget) -> Answer:
        deadline = time.monotonic() + budget.left
        try:
            answer = await ask()
        except BrokenConnectionError:
            return await ask()
        if answer.status not in BUSY:
            return answer
        asked_s = retry_after_s(answer.headers.get("retry-after"))
        wait = _BUSY_WAIT_S if asked_s is None else asked_s
        await self._gate.hold(URL(url).host, wait)
        if time.monotonic() + wait >= deadline:
            return answer
        _log.info("%s answered HTTP %d; asking again in %.1f s", url, answer.status, wait)
        await asyncio.sleep(wait)
        return await ask()

    async def _site_rules(self, url: str, budget: _Budget) -> RobotsRules:
        async with budget.spend():
            try:
                rules = await self._robots.rules(URL(url).origin)
            except RefusedAddressError as error:
                raise RefusedAddressError(
                    str(error), url=url, hint=error.hint, host=error.host
                ) from error
        if rules.failure is not None:
            raise FetchError(rules.failure, url=url)
        return rules

    async def _fetch_robots(self, url: str) -> RobotsAnswer:
        target = URL(url)
        if self._shared is None or self._allowed.covers(target.hostname, port_of(target)):
            return await self._ask_robots(url)
        return await self._shared.robots(target.origin, lambda: self._ask_robots(url))

    async def _ask_robots(self, url: str) -> RobotsAnswer:
        address = url
        try:
            async with asyncio.timeout(min(_ROBOTS_TIMEOUT_S, self._config.timeout_s)):
                for _ in range(self._config.max_redirects + 1):
                    answer = await self._client.get(address, headers={}, caps=_ROBOTS_CAPS)
                    target = None
                    # One that leads to a login page, or nowhere, is as good as none.
                    try:
                        target = next_address(answer)
                    except FetchError as error:
                        _log.info("the robots.txt is not followed further: %s", error)
                    if target is None:
                        return robots_answer(url, answer)
                    address = target
        except TimeoutError:
            return RobotsAnswer(failure=f"{url} did not answer in time.")
        except RefusedAddressError:
            if address == url:
                raise
        except FetchError as error:
            return RobotsAnswer(failure=str(error))
        return RobotsAnswer()


def _request_headers(validators: Validators | None) -> dict[str, str]:
    known = validators or Validators()
    told = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {"Accept": _ACCEPT} | {name: value for name, value in told.items() if value}


def _next_address(answer: Answer, login: str | None) -> str | None:
    """As `next_address`; where a login was sent, what wants one has named its end."""
    try:
        return next_address(answer, had_login=login is not None)
    except UnusablePageError as error:
        if login is not None and error.kind == "login_wall":
            raise login_expired(answer.url, login, answer.status) from error
        raise


def _late(url: str, budget: _Budget) -> FetchError:
    return FetchError(f"{url} did not arrive within {budget.allowed:g} seconds.", url=url)
