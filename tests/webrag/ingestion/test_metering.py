import asyncio
from datetime import UTC, datetime

import pytest

from webrag.ingestion.fetch_context import (
    PageLimitError,
    check_request,
    count_answer,
    current_meter,
    metered,
)
from webrag.ingestion.models import FetchedPage, NotModified

URL = "https://docs.example.org/"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


class Meter:
    def __init__(self, allowed: int) -> None:
        self.left = allowed
        self.size = 0

    def refusal(self) -> str | None:
        self.left -= 1
        return None if self.left >= 0 else "No more today."

    def received(self, size: int) -> None:
        self.size += size


def fetched(text: str = "", body: bytes = b"") -> FetchedPage:
    return FetchedPage(
        requested_url=URL,
        url=URL,
        status=200,
        kind="html",
        text=text,
        body=body,
        fetched_at=NOW,
        source="test",
    )


def test_without_a_meter_nothing_is_counted() -> None:
    check_request(URL)
    count_answer(fetched("x"))

    assert current_meter() is None


def test_request_beyond_what_the_meter_allows_is_refused_with_its_reason() -> None:
    with metered(Meter(1)):
        check_request(URL)
        with pytest.raises(PageLimitError, match=r"No more today\.") as refusal:
            check_request(URL)

    assert refusal.value.url == URL


@pytest.mark.parametrize(
    ("answer", "size"),
    [
        (fetched("abc"), 3),
        (fetched("é€"), 5),
        (fetched("", b"%PDF"), 4),
        (NotModified(url=URL, fetched_at=NOW), 0),
    ],
)
def test_bytes_of_an_answer_are_counted(answer: FetchedPage | NotModified, size: int) -> None:
    meter = Meter(1)
    with metered(meter):
        count_answer(answer)

    assert meter.size == size


async def test_calls_at_once_are_counted_apart_with_the_tasks_they_begin() -> None:
    async def call(meter: Meter, pages: int) -> None:
        with metered(meter):
            await asyncio.gather(*(asyncio.to_thread(check_request, URL) for _ in range(pages)))

    one, other = Meter(10), Meter(10)
    await asyncio.gather(call(one, 3), call(other, 5))

    assert (one.left, other.left) == (7, 5)
