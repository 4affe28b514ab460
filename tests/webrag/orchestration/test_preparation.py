import asyncio
from typing import Any

import pytest

from webrag.corpus.models import AcquiredPage
from webrag.errors import (
    DatabaseUnavailableError,
    DeadlineError,
    FetchError,
    InputError,
    ProviderError,
    StorageError,
)
from webrag.orchestration.steps.research import Seeds, acquire_seeds

A, B = "https://d.test/a", "https://d.test/b"


def page(url: str) -> AcquiredPage:
    return AcquiredPage(
        url=url,
        requested_url=url,
        page_id=1,
        title=None,
        outcome="indexed",
        depth=0,
        chunk_count=1,
        token_count=10,
    )


class Acquirer:
    """Answers each URL with a page or an error; None never answers."""

    def __init__(self, **outcomes: Any) -> None:
        self.outcomes = outcomes
        self.cancelled: list[str] = []

    async def acquire(self, url: str) -> AcquiredPage:
        outcome = self.outcomes[url[-1]]
        if outcome is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(url)
                raise
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def acquired(acquirer: Acquirer, *urls: str, timeout_s: float = 5.0) -> Seeds:
    return await acquire_seeds(acquirer, urls, timeout_s=timeout_s, on_page=lambda _: None)  # type: ignore[arg-type]


async def test_pages_come_in_the_order_they_were_named() -> None:
    seeds = await acquired(Acquirer(a=page(A), b=page(B)), B, A)

    assert [each.url for each in seeds.pages] == [B, A]
    assert seeds.is_complete


async def test_two_addresses_of_one_page_are_one_page() -> None:
    seeds = await acquired(Acquirer(a=page(A), b=page(A)), A, B)

    assert [each.url for each in seeds.pages] == [A]


@pytest.mark.parametrize(
    "error",
    [
        FetchError("it is down", url=A),
        ProviderError("no embedding", provider="x"),
        StorageError("disk full"),
        InputError("no address"),
        ZeroDivisionError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_error_of_the_only_page_is_raised_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        await acquired(Acquirer(a=error), A)

    assert raised.value is error


async def test_other_pages_make_up_for_one_that_fails() -> None:
    seeds = await acquired(Acquirer(a=FetchError("it is down", url=A), b=page(B)), A, B)

    assert [each.url for each in seeds.pages] == [B]
    assert seeds.warnings == (f"{A} could not be used: it is down",)


async def test_warning_names_the_address_once() -> None:
    failed = FetchError(f"The page {A} answered HTTP 500.", url=A)

    seeds = await acquired(Acquirer(a=failed, b=page(B)), A, B)

    assert seeds.warnings == (f"The page {A} answered HTTP 500.",)


async def test_late_page_hides_no_other_that_failed() -> None:
    acquirer = Acquirer(a=None, b=FetchError("it is closed", url=B, status=403))

    with pytest.raises(FetchError, match=f"None of the 2 pages.*{A} did not arrive.*{B}: it is"):
        await acquired(acquirer, A, B, timeout_s=0.05)


async def test_database_failure_is_never_only_a_warning() -> None:
    with pytest.raises(DatabaseUnavailableError):
        await acquired(Acquirer(a=DatabaseUnavailableError("gone"), b=page(B)), A, B)


async def test_page_that_could_not_be_stored_is_named_and_the_others_go_on() -> None:
    seeds = await acquired(Acquirer(a=StorageError("disk full"), b=page(B)), A, B)

    assert [page.url for page in seeds.pages] == [B]
    assert "disk full" in seeds.warnings[0]


async def test_late_page_is_cancelled_and_named() -> None:
    acquirer = Acquirer(a=None, b=page(B))

    seeds = await acquired(acquirer, A, B, timeout_s=0.05)

    assert (seeds.is_complete, acquirer.cancelled) == (False, [A])
    assert "did not arrive" in seeds.warnings[0]


async def test_nothing_in_time_is_a_deadline_error() -> None:
    with pytest.raises(DeadlineError, match=r"did not arrive within 0\.2 s"):
        await acquired(Acquirer(a=None), A, timeout_s=0.2)


async def test_cancelling_cancels_every_page() -> None:
    acquirer = Acquirer(a=None, b=None)
    task = asyncio.create_task(acquired(acquirer, A, B))
    await asyncio.sleep(0.01)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert sorted(acquirer.cancelled) == [A, B]
