"""Draws pages in a browser that has no network of its own."""

import asyncio
import contextlib
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ada_url import URL

from webrag.concurrency import ended, settled
from webrag.errors import FetchError, SourceUnavailableError, WebRAGError
from webrag.ingestion.fetch_context import current_meter
from webrag.ingestion.models import FetchedPage, Rendering

if TYPE_CHECKING:
    from playwright.async_api import (
        Browser,
        BrowserContext,
        Page,
        Playwright,
        Route,
        WebSocketRoute,
    )

    from webrag.ingestion.http.fetcher import HttpFetcher


MAX_REQUESTS: Final = 300
"""Files one page may ask for; large applications come in 200 pieces."""

# What adds nothing to the text. Frames have documents of their own, which are not read either.
_UNREAD: Final = frozenset(
    {"beacon", "cspreport", "eventsource", "font", "image", "media", "ping", "texttrack"}
)


async def start_driver(url: str) -> "Playwright":
    """Start playwright's driver, which the caller stops, or raise SourceUnavailableError."""
    from playwright.async_api import async_playwright

    starting = asyncio.create_task(async_playwright().start())
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Its process can be ended only once it has started.
        with contextlib.suppress(asyncio.CancelledError):
            await settled([starting])
        if starting.exception() is None:
            await starting.result().stop()
        raise
    # A bare Exception where the program ends at once, as it does without a library.
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        said = f"Playwright, which drives the browser, cannot be started: {reason}."
        hint = "Its message on standard error names what is missing: on Debian mostly libatomic1."
        raise SourceUnavailableError(said, url=url, hint=hint) from error


class Request(NamedTuple):
    """A file that a page, or a frame in it, asks its browser for; of a `kind` such as `script`."""

    url: str
    kind: str
    method: str = "GET"
    is_main: bool = True


def refusal(request: Request, page: str, *, other_sites: bool, count: int) -> str:
    """Say why a request of a page is not answered, `count` having been before it; "" when it is.

    Returns:
        `kind` for what adds no text, `method` for what might change something, `count` for one
        too many, `site` for a file of another site.
    """
    if request.kind in _UNREAD or (request.kind == "document" and not request.is_main):
        return "kind"
    if request.method not in ("GET", "HEAD"):
        return "method"
    if count >= MAX_REQUESTS:
        return "count"
    asked, own = f".{URL(request.url).hostname}", f".{URL(page).hostname}"
    if not other_sites and not (asked.endswith(own) or own.endswith(asked)):
        return "site"
    return ""


_log = logging.getLogger(__name__)

# A proxy at which nobody answers: what is not handed to our own client goes nowhere, loopback
# and UDP included.
_ARGUMENTS: Final = (
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)
_AT_ONCE: Final = 2
_POLL_S: Final = 0.1
# Text that has stood still for so long, with no file under way, is taken to be complete.
_STILL_S: Final = 0.5
_CLOSE_TIMEOUT_S: Final = 5.0
# A page that fills memory as fast as it can gets about 200 MB further in between.
_MEMORY_POLL_S: Final = 0.1
_MEMORY: Final = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+)", re.MULTILINE)
# Of the drawn page, which the browser would hand over at any length.
_MAX_CHARS: Final = 20_000_000
_DROPPED: Final = frozenset(
    {"content-encoding", "content-length", "set-cookie", "transfer-encoding"}
)
_SEEN_CHARS = "() => document.body ? document.body.innerText.length : 0"
# Notices to readers without scripts are untrue now. Open shadow trees become part of the page.
_PREPARE = Path(__file__).with_name("flatten.js").read_text(encoding="utf-8")


class BrowserRenderer:
    """Draws pages in one Chromium, started at the first page; `aclose` ends it.

    The browser reaches no network: each of its requests is handed to `parts`, which checks
    addresses and robots.txt, or is refused (`refusal`). Every page has a profile of its own. Time
    and bytes, of all files, are of one page, `max_memory` is of all processes of the browser: the
    largest is ended when there is more, and the page in it fails. It belongs to one event loop.
    """

    def __init__(
        self,
        parts: "HttpFetcher",
        executable: Path,
        *,
        timeout_s: float = 20.0,
        max_bytes: int = 30_000_000,
        max_memory: int = 2_000_000_000,
    ) -> None:
        self._parts = parts
        self.executable = executable
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._max_memory = max_memory
        self._starting = asyncio.Lock()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._process = 0
        self._under_way = 0
        self._watch: asyncio.Task[None] | None = None
        self._ended_processes = 0

    async def render(self, page: FetchedPage, *, other_sites: bool) -> Rendering:
        """Draw a page of HTML, whose text the browser is given, perhaps with files of other sites.

        Returns:
            The page as drawn, without validators: they would be those of the empty frame.

        Raises:
            FetchError: It was not drawn within `timeout_s` or `max_memory`, or the browser failed.
            SourceUnavailableError: The browser or its driver cannot be started.
        """
        async with self._slots:
            browser = await self._running(page.url)
            # Playwright hands requests over outside of the task, where no meter is known.
            drawing = _Drawing(self._parts, page, other_sites, self._max_bytes)
            ended_before = self._ended_processes
            try:
                with self._watched():
                    async with asyncio.timeout(self._timeout_s + _CLOSE_TIMEOUT_S):
                        html = await drawing.draw(browser, self._timeout_s)
            except (TimeoutError, FetchError) as error:
                why = f"was not drawn within {self._timeout_s:g} seconds"
                if isinstance(error, FetchError):
                    if self._ended_processes == ended_before:
                        raise
                    needed = f"more than {self._max_memory:,} bytes of memory"
                    why = f"could not be drawn: the browser would need {needed}"
                raise FetchError(f"{page.url} {why}.", url=page.url) from error
        drawn = page.model_copy(
            update={"text": html, "etag": None, "last_modified": None, "source": "browser"}
        )
        return Rendering(page=drawn, left_out=drawing.left_out)

    async def aclose(self) -> None:
        """End the browser and its driver."""
        if self._watch is not None:
            await ended([self._watch])
        browser, self._browser = self._browser, None
        playwright, self._playwright = self._playwright, None
        try:
            if browser is not None and browser.is_connected():
                await browser.close()
        finally:
            if playwright is not None:
                await playwright.stop()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        self._under_way += 1
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._keep_memory())
        try:
            yield
        finally:
            self._under_way -= 1

    async def _keep_memory(self) -> None:
        while self._under_way:
            held = await asyncio.to_thread(_memory_of_group, self._process)
            if sum(held.values()) > self._max_memory:
                self._ended_processes += 1
                with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
                    os.kill(max(held, key=lambda process: held[process]), signal.SIGKILL)
            await asyncio.sleep(_MEMORY_POLL_S)

    async def _running(self, url: str) -> "Browser":
        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                await self.aclose()
                self._browser = await self._started(url)
            return self._browser

    async def _started(self, url: str) -> "Browser":
        from playwright.async_api import Error

        self._playwright = await start_driver(url)
        # Chromium refuses to run its sandbox for root.
        has_sandbox = getattr(os, "geteuid", lambda: 1)() != 0
        try:
            browser = await self._playwright.chromium.launch(
                executable_path=self.executable,
                args=list(_ARGUMENTS),
                chromium_sandbox=has_sandbox,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
            session = await browser.new_browser_cdp_session()
            listed = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
            await session.detach()
        except Error as error:
            await self.aclose()
            reason = str(error).strip().splitlines()[0]
            said = f"The browser {self.executable} cannot be started: {reason}"
            hint = "Put another one first on the PATH, or set WEBRAG_BROWSER=never."
            raise SourceUnavailableError(said, url=url, hint=hint) from error
        self._process = next(each["id"] for each in listed if each["type"] == "browser")
        return browser


class _Drawing:
    def __init__(
        self, parts: "HttpFetcher", page: FetchedPage, other_sites: bool, max_bytes: int
    ) -> None:
        self._parts = parts
        self._page = page
        self._other_sites = other_sites
        self._left_bytes = max_bytes
        self._meter = current_meter()
        self._is_given = False
        self._has_login = page.with_login
        self._answered = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self.left_out = 0

    async def draw(self, browser: "Browser", timeout_s: float) -> str:
        """Give the page's markup once its text stands still, or as it is at the end of the time."""
        from playwright.async_api import Error

        until = time.monotonic() + timeout_s
        try:
            context = await browser.new_context(
                accept_downloads=False, java_script_enabled=True, service_workers="block"
            )
            try:
                return await self._drawn(context, until)
            finally:
                await ended(self._under_way)
                with contextlib.suppress(Error):
                    await asyncio.shield(context.close())
        except Error as error:
            reason = str(error).strip().splitlines()[0]
            said = f"The browser could not draw {self._page.url}: {reason}."
            raise FetchError(said, url=self._page.url) from error

    async def _drawn(self, context: "BrowserContext", until: float) -> str:
        await context.route("**/*", self._handle)
        await context.route_web_socket("**/*", _close)
        tab = await context.new_page()
        context.on("page", _close)
        left_ms = max(1.0, (until - time.monotonic()) * 1000)
        await tab.goto(self._page.url, wait_until="domcontentloaded", timeout=left_ms)
        await self._still(tab, until)
        html = await tab.evaluate(_PREPARE, _MAX_CHARS)
        if isinstance(html, str):
            return f"<!doctype html>\n{html}"
        message = f"{self._page.url} has more than {_MAX_CHARS:,} characters once it is drawn."
        raise FetchError(message, url=self._page.url)

    async def _still(self, tab: "Page", until: float) -> None:
        """Wait until there is text that does not change while no file is under way."""
        length, since = -1, time.monotonic()
        while (now := time.monotonic()) < until:
            seen = int(await tab.evaluate(_SEEN_CHARS))
            if seen != length or self._under_way:
                length, since = seen, now
            elif now - since >= _STILL_S * (1 if length else 4):
                return
            await asyncio.sleep(_POLL_S)

    async def _handle(self, route: "Route") -> None:
        task = asyncio.create_task(self._answer(route))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _answer(self, route: "Route") -> None:
        from playwright.async_api import Error

        with contextlib.suppress(Error):  # the page may be gone meanwhile
            asked = route.request
            if not self._is_given and asked.is_navigation_request():
                self._is_given = True
                body, kind = self._page.text.encode(), "text/html; charset=utf-8"
                await route.fulfill(status=200, content_type=kind, body=body)
                return
            is_main = asked.frame.parent_frame is None
            request = Request(asked.url, asked.resource_type, asked.method, is_main)
            why = refusal(
                request, self._page.url, other_sites=self._other_sites, count=self._answered
            )
            if why:
                self.left_out += why == "site"
                await route.abort("blockedbyclient")
                return
            self._answered += 1
            if asked.is_navigation_request():
                # What stands in the tab from here on is another page, perhaps of another site.
                self._has_login = False
            await self._fetched(route, asked.url)

    async def _fetched(self, route: "Route", url: str) -> None:
        try:
            page = self._page.url if self._has_login else ""
            answer = await self._parts.fetch_part(url, page=page)
        except WebRAGError as error:
            _log.info("%s asks for %s: %s", self._page.url, url, error)
            await route.abort("failed")
            return
        self._left_bytes -= len(answer.body)
        if self._meter is not None:
            self._meter.received(len(answer.body))
        if self._left_bytes < 0:
            await route.abort("failed")
            return
        headers = {name: told for name, told in answer.headers.items() if name not in _DROPPED}
        await route.fulfill(status=answer.status, headers=headers, body=answer.body)


def _memory_of_group(process: int) -> dict[int, int]:
    """Bytes that each process of a group, not the caller's, holds of its own or shares with others.

    Files that are mapped, such as the program itself, do not count. Linux tells it of every
    process, whoever may look into it; elsewhere this is empty.
    """
    held: dict[int, int] = {}
    if sys.platform != "linux":
        return held
    with contextlib.suppress(ProcessLookupError):
        group = os.getpgid(process)
        for member in [int(name) for name in os.listdir("/proc") if name.isdigit()]:  # noqa: PTH208
            with contextlib.suppress(OSError):  # it has ended since it was listed
                if os.getpgid(member) == group != os.getpgrp():
                    told = Path(f"/proc/{member}/status").read_text(encoding="latin-1")
                    held[member] = 1024 * sum(map(int, _MEMORY.findall(told)))
    return held


async def _close(tab: "Page | WebSocketRoute") -> None:
    await tab.close()
