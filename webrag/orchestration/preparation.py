"""Gets the named pages into the corpus before a run; it follows no link."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from webrag.errors import (
    DatabaseUnavailableError,
    DeadlineError,
    FetchError,
    ProviderError,
    StorageError,
    WebRAGError,
)
from webrag.indexing.acquirer import PageAcquirer
from webrag.indexing.models import AcquiredPage

__all__ = ["Seeds", "acquire_seeds"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seeds:
    """Outcome of getting the named pages.

    Attributes:
        pages: Those obtained, in the order they were named; at least one.
        warnings: A sentence for each page that could not be used.
        is_complete: False when time ran out before every page was settled.
    """

    pages: tuple[AcquiredPage, ...]
    warnings: tuple[str, ...]
    is_complete: bool


async def acquire_seeds(
    acquirer: PageAcquirer,
    urls: Sequence[str],
    *,
    timeout_s: float,
    on_page: Callable[[AcquiredPage], None],
) -> Seeds:
    """Get pages into the corpus, all at once; nothing is left running.

    Args:
        acquirer: Does the work.
        urls: Canonical addresses, at least one.
        timeout_s: Pages not there by then are given up.
        on_page: Told each page as soon as it is there.

    Raises:
        FetchError: No page could be obtained; with one URL its own error.
        InputError: A URL cannot be used.
        ProviderError: No page could be embedded.
        DeadlineError: The time was over before any page was there.
        StorageError: No page could be stored.
        DatabaseUnavailableError: The database cannot be reached.
    """

    async def one(url: str) -> AcquiredPage:
        page = await acquirer.acquire(url)
        on_page(page)
        return page

    tasks = {url: asyncio.create_task(one(url)) for url in urls}
    try:
        await asyncio.wait(tasks.values(), timeout=timeout_s)
    finally:
        unfinished = [url for url, task in tasks.items() if not task.done()]
        for task in tasks.values():
            task.cancel()
        outcomes = await asyncio.gather(*tasks.values(), return_exceptions=True)
    return _judge(dict(zip(urls, outcomes, strict=True)), unfinished, timeout_s)


def _judge(
    outcomes: dict[str, AcquiredPage | BaseException], unfinished: Sequence[str], timeout_s: float
) -> Seeds:
    pages: dict[str, AcquiredPage] = {}
    failures: dict[str, WebRAGError] = {}
    for url, outcome in outcomes.items():
        if isinstance(outcome, AcquiredPage):
            pages.setdefault(outcome.url, outcome)
        elif _is_of_one_page(outcome):
            failures[url] = outcome
        elif isinstance(outcome, asyncio.CancelledError):
            failures[url] = DeadlineError(
                f"{url} did not arrive within {timeout_s:.0f} s.",
                seconds=timeout_s,
                hint="Ask again: what was stored by then is kept.",
            )
        else:
            raise outcome
    if not pages:
        raise _nothing_obtained(failures)
    warnings = tuple(f"{url} could not be used: {error}" for url, error in failures.items())
    for warning in warnings:
        _log.warning("%s", warning)
    return Seeds(tuple(pages.values()), warnings, not unfinished)


def _is_of_one_page(outcome: BaseException) -> TypeGuard[WebRAGError]:
    """Whether the others can go on; without a database none can."""
    is_lost = isinstance(outcome, DatabaseUnavailableError)
    return isinstance(outcome, (FetchError, ProviderError, StorageError)) and not is_lost


def _nothing_obtained(failures: dict[str, WebRAGError]) -> WebRAGError:
    first_url, first = next(iter(failures.items()))
    if len(failures) == 1 or not isinstance(first, FetchError):
        return first
    reasons = "; ".join(f"{url}: {error}" for url, error in failures.items())
    return FetchError(
        f"None of the {len(failures)} pages could be obtained: {reasons}",
        url=first_url,
        status=first.status,
        hint=first.hint,
    )
