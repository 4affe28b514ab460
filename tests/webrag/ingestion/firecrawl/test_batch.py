import asyncio
import logging
from collections.abc import Callable

import pytest

from webrag.errors import FetchError, SourceUnavailableError
from webrag.ingestion.fetch_context import together
from webrag.ingestion.firecrawl.source import FirecrawlSource

from .fake_firecrawl import FakeFirecrawl, Fault, document, failing

MakeSource = Callable[..., FirecrawlSource]
HTML_PAGE = Fault(200, b"<html>proxy error</html>", {"Content-Type": "text/html"})


def many(firecrawl: FakeFirecrawl, count: int) -> list[str]:
    urls = [f"https://docs.test/{number}" for number in range(count)]
    for url in urls:
        firecrawl.pages[url] = document(f"<p>the page {url}</p>")
    return urls


async def test_batch_gives_every_page_in_the_order_asked_for(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    urls = many(firecrawl, 5)
    firecrawl.page_size = 2

    outcomes = await make_source().fetch_many(reversed(urls))  # type: ignore[arg-type]

    assert list(outcomes) == urls[::-1]
    assert all(f"the page {url}" in page.text for url, page in outcomes.items())  # type: ignore[union-attr]
    assert len(firecrawl.asked("batch")) == 1


async def test_batch_reports_each_page_that_failed_with_its_reason(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    urls = many(firecrawl, 4)
    firecrawl.batch_errors = {urls[1]: "net::ERR_CONNECTION_REFUSED", urls[2]: "robots"}
    firecrawl.pages[urls[3]] = document("<h1>Gone</h1>", status=410)

    outcomes = await make_source().fetch_many([*urls, "http://10.0.0.1/"])

    kinds = [type(outcome).__name__ for outcome in outcomes.values()]
    assert kinds == [
        "FetchedPage", "FetchError", "FetchError", "PageGoneError", "RefusedAddressError",
    ]  # fmt: skip
    assert "net::ERR_CONNECTION_REFUSED" in str(outcomes[urls[1]])
    assert "robots.txt" in str(outcomes[urls[2]])
    assert "http://10.0.0.1/" not in str(firecrawl.asked("batch")[0].body)


async def test_batch_that_does_not_end_gives_what_is_there_and_is_cancelled(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    urls = many(firecrawl, 4)
    firecrawl.batch_polls = 10_000

    outcomes = await make_source(batch_timeout_s=1.5).fetch_many(urls)

    assert [isinstance(outcome, FetchError) for outcome in outcomes.values()] == [
        False, False, True, True,
    ]  # fmt: skip
    assert "did not arrive" in str(outcomes[urls[3]])
    assert [job.cancelled for job in firecrawl.jobs.values()] == [True]


async def test_last_question_that_the_deadline_cuts_short_says_that_the_batch_is_late(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    urls = many(firecrawl, 4)
    firecrawl.batch_polls = 10_000
    task = asyncio.create_task(make_source(batch_timeout_s=1.5).fetch_many(urls))
    while not firecrawl.asked("status"):
        await asyncio.sleep(0.01)
    firecrawl.queue("status", Fault(silent=True))

    outcomes = await task

    assert "did not arrive within 1.5 seconds" in str(outcomes[urls[3]])


async def test_batch_whose_progress_cannot_be_read_any_more_keeps_what_is_there(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    urls = many(firecrawl, 4)
    firecrawl.batch_polls = 10_000
    source = make_source(attempts=1)
    task = asyncio.create_task(source.fetch_many(urls))
    while not firecrawl.asked("status"):
        await asyncio.sleep(0.01)
    firecrawl.queue("status", *[HTML_PAGE] * 5)

    outcomes = await task

    assert sum(not isinstance(outcome, FetchError) for outcome in outcomes.values()) == 2
    assert "could not be understood" in str(outcomes[urls[3]])


async def test_failed_batch_gives_what_it_brought(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    urls = many(firecrawl, 2)
    firecrawl.batch_end = "failed"
    firecrawl.batch_errors = {urls[1]: "crashed"}

    outcomes = await make_source().fetch_many(urls)

    assert not isinstance(outcomes[urls[0]], FetchError)
    assert "crashed" in str(outcomes[urls[1]])


async def test_reasons_that_cannot_be_asked_for_are_missed_in_the_log(
    firecrawl: FakeFirecrawl, make_source: MakeSource, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    urls = many(firecrawl, 2)
    firecrawl.batch_errors = {urls[1]: "crashed"}
    firecrawl.queue("errors", failing(402, "Payment Required"))

    outcomes = await make_source().fetch_many(urls)

    assert isinstance(outcomes[urls[1]], FetchError)
    assert "reasons of a batch's failures are not known" in caplog.text


async def test_batch_that_cannot_begin_fails_for_every_page(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.queue("batch", failing(402, "Payment Required"))

    outcomes = await make_source().fetch_many(many(firecrawl, 2))

    assert all(isinstance(outcome, SourceUnavailableError) for outcome in outcomes.values())


async def test_cancelled_batch_is_cancelled_at_the_service(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.batch_polls = 10_000
    task = asyncio.create_task(make_source().fetch_many(many(firecrawl, 4)))
    while not firecrawl.asked("status"):
        await asyncio.sleep(0.01)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [job.cancelled for job in firecrawl.jobs.values()] == [True]


async def test_empty_batch_asks_nothing(firecrawl: FakeFirecrawl, make_source: MakeSource) -> None:
    assert await make_source().fetch_many([]) == {}
    assert firecrawl.calls == []


async def test_page_that_is_alone_needs_no_batch(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    (url,) = many(firecrawl, 1)

    outcomes = await make_source().fetch_many([url])

    assert not isinstance(outcomes[url], FetchError)
    assert (len(firecrawl.asked("scrape")), firecrawl.asked("batch")) == (1, [])


async def test_pages_that_nobody_asked_for_together_are_scraped_one_by_one(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    source, urls = make_source(), many(firecrawl, 2)

    await asyncio.gather(*map(source.fetch, urls))

    assert (len(firecrawl.asked("scrape")), firecrawl.asked("batch")) == (2, [])


async def test_batch_goes_on_for_those_who_still_wait(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    source, urls = make_source(), many(firecrawl, 2)
    firecrawl.batch_polls = 20
    with together():
        leaving, staying = (asyncio.create_task(source.fetch(url)) for url in urls)
    while not firecrawl.asked("status"):
        await asyncio.sleep(0.01)

    leaving.cancel()

    assert urls[1] in str(getattr(await staying, "text", ""))
    assert [job.cancelled for job in firecrawl.jobs.values()] == [False]


async def test_page_asked_for_as_the_last_who_waited_leaves_is_scraped(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    source, urls = make_source(), many(firecrawl, 2)
    with together():
        leaving = asyncio.create_task(source.fetch(urls[0]))
        await asyncio.sleep(0.01)
        leaving.cancel()
        staying = asyncio.create_task(source.fetch(urls[1]))

    page = await staying

    assert urls[1] in str(getattr(page, "text", ""))
    assert leaving.cancelled()
