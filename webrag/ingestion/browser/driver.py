"""Starts what drives browsers."""

from typing import TYPE_CHECKING

from webrag.errors import SourceUnavailableError

if TYPE_CHECKING:
    from playwright.async_api import Playwright


async def start_driver(url: str) -> "Playwright":
    """Start playwright's driver, a program of its own; the caller stops it.

    Args:
        url: What the browser is wanted for.

    Raises:
        SourceUnavailableError: It does not start.
    """
    from playwright.async_api import async_playwright

    try:
        return await async_playwright().start()
    # A bare Exception where the program ends at once, as it does without a library.
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise SourceUnavailableError(
            f"Playwright, which drives the browser, cannot be started: {reason}.",
            url=url,
            hint="Its message on standard error names what is missing: on Debian most often the"
            " package libatomic1.",
        ) from error
