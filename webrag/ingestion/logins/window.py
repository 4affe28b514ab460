"""Lets the user sign in to a site in a browser, and takes the cookies; it types nothing."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webrag.concurrency import ended
from webrag.errors import ConfigurationError
from webrag.ingestion.browser import start_driver
from webrag.ingestion.logins.session import Cookie, cookies_for

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Playwright

_POLL_S: Final = 0.5


async def sign_in(
    host: str,
    *,
    executable: Path | None,
    endpoint: str | None,
    finished: Callable[[], bool],
) -> tuple[Cookie, ...]:
    """Open a site and give its cookies once the user is `finished` or has closed the window.

    The window is of a browser whose profile is gone afterwards, or a tab in a running Chromium
    that takes orders at an endpoint. ConfigurationError where it cannot be started or reached.
    """
    from playwright.async_api import Error

    async with contextlib.AsyncExitStack() as stack:
        playwright = await start_driver(f"https://{host}/")
        stack.push_async_callback(playwright.stop)
        try:
            context = await _context(playwright, executable, endpoint)
        except Error as error:
            reason = str(error).strip().splitlines()[0][:200]
            raise ConfigurationError(
                f"The browser to sign in with cannot be used: {reason}.",
                hint="`webrag login HOST --cookies FILE` needs no window.",
            ) from error
        try:
            return await _cookies_of(context, host, finished)
        finally:
            if endpoint is None and context.browser is not None:
                with contextlib.suppress(Error):
                    await context.browser.close()


async def _context(
    playwright: "Playwright", executable: Path | None, endpoint: str | None
) -> "BrowserContext":
    if endpoint is not None:
        running = await playwright.chromium.connect_over_cdp(endpoint)
        return running.contexts[0] if running.contexts else await running.new_context()
    browser = await playwright.chromium.launch(executable_path=executable, headless=False)
    return await browser.new_context(no_viewport=True)


async def _cookies_of(
    context: "BrowserContext", host: str, finished: Callable[[], bool]
) -> tuple[Cookie, ...]:
    from playwright.async_api import Error

    tab = await context.new_page()

    async def opened() -> None:
        with contextlib.suppress(Error):  # shown in the window, where the user sees it
            await tab.goto(f"https://{host}/", wait_until="commit")

    # A site that is slow to load can still be signed in to.
    opening = asyncio.create_task(opened())
    found: Sequence[Any] = []
    try:
        while not (finished() or tab.is_closed()):
            found = await context.cookies()
            await asyncio.sleep(_POLL_S)
        with contextlib.suppress(Error):  # the window may be gone
            found = await context.cookies()
    except Error:
        if not found:
            raise
    finally:
        await ended([opening])
        with contextlib.suppress(Error):
            await tab.close()
    return cookies_for(host, (_cookie(each) for each in found))


def _cookie(values: dict[str, Any]) -> Cookie:
    expires = None if values["expires"] < 0 else float(values["expires"])
    return Cookie(values["name"], values["value"], values["domain"], values["path"], expires)
