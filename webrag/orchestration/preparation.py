"""Gets the named pages into the corpus before a run; it follows no link."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from webrag.concurrency import all_of, within
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
    outcomes: dict[str, AcquiredPage | WebRAGError] = {}

    async def one(url: str) -> None:
        try:
            page = outcomes[url] = await acquirer.acquire(url)
        except WebRAGError as error:
            if not _is_of_one_page(error):
                raise
            outcomes[url] = error
        else:
            on_page(page)

    async with within(timeout_s):
        await all_of(one(url) for url in urls)
    unfinished = [url for url in urls if url not in outcomes]
    late = {url: _late(url, timeout_s) for url in unfinished}
    return _judge({url: outcomes.get(url) or late[url] for url in urls}, unfinished)


def _late(url: str, timeout_s: float) -> DeadlineError:
    return DeadlineError(
        f"{url} did not arrive within {timeout_s:.0f} s.",
        seconds=timeout_s,
        hint="Ask again: what was stored by then is kept.",
    )


def _judge(outcomes: dict[str, AcquiredPage | WebRAGError], unfinished: Sequence[str]) -> Seeds:
    pages: dict[str, AcquiredPage] = {}
    failures: dict[str, WebRAGError] = {}
    for url, outcome in outcomes.items():
        if isinstance(outcome, AcquiredPage):
            pages.setdefault(outcome.url, outcome)
        else:
            failures[url] = outcome
    if not pages:
        raise _nothing_obtained(failures)
    warnings = tuple(f"{url} could not be used: {error}" for url, error in failures.items())
    for warning in warnings:
        _log.warning("%s", warning)
    return Seeds(tuple(pages.values()), warnings, not unfinished)


def _is_of_one_page(outcome: WebRAGError) -> bool:
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
