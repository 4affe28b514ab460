import asyncio
import gzip
from typing import Any

import pytest

from webrag.errors import FetchError
from webrag.ingestion.fetch_context import (
    listening,
    metering,
    note,
    rate_limited,
    received,
    watching_rate_limits,
)
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig


def test_note_without_listener_does_nothing() -> None:
    note("nobody hears this")


async def test_notes_of_tasks_reach_the_caller_that_started_them() -> None:
    heard: dict[str, list[str]] = {"one": [], "two": []}

    async def work(name: str) -> None:
        with listening(heard[name].append):
            await asyncio.create_task(asyncio.sleep(0))
            note(f"for {name}")
            await asyncio.gather(*(asyncio.create_task(later(name)) for _ in range(2)))

    async def later(name: str) -> None:
        await asyncio.sleep(0)
        note(f"later for {name}")

    await asyncio.gather(work("one"), work("two"))
    note("after the block")

    assert heard == {
        name: [f"for {name}", f"later for {name}", f"later for {name}"] for name in heard
    }


def test_nothing_happens_when_nobody_counts() -> None:
    received(10)


async def test_what_tasks_of_the_block_read_is_counted() -> None:
    sizes: list[int] = []

    async def read() -> None:
        received(7)

    with metering(sizes.append):
        await asyncio.gather(asyncio.create_task(read()), read())
    received(100)

    assert sizes == [7, 7]


async def test_bytes_are_counted_as_sent_and_for_failed_fetches_too(static_site: Any) -> None:
    page = "<title>Long</title><main><p>" + "the same words again and again " * 500 + "</p></main>"
    packed = gzip.compress(page.encode())
    site = static_site(
        {
            "/a.html": lambda _: (
                200,
                {"Content-Type": "text/html", "Content-Encoding": "gzip"},
                packed,
            ),
            "/b.html": lambda _: (403, {"Content-Type": "text/html"}, b"x" * 500),
        }
    )
    fetcher = HttpFetcher(FetchConfig(allowed_hosts=("127.0.0.1",)))
    sizes: list[int] = []

    try:
        with metering(sizes.append):
            await fetcher.fetch(site + "/a.html")
            first = sum(sizes)
            with pytest.raises(FetchError):
                await fetcher.fetch(site + "/b.html")
    finally:
        await fetcher.aclose()

    # robots.txt is asked for as well.
    assert len(packed) <= first < len(packed) + 200 < len(page)
    assert sum(sizes) >= first + 500


async def test_refusals_in_tasks_reach_whoever_asked() -> None:
    seen: list[None] = []

    async def refused() -> None:
        rate_limited()

    with watching_rate_limits(lambda: seen.append(None)):
        await asyncio.gather(refused(), refused())
    rate_limited()

    assert len(seen) == 2
