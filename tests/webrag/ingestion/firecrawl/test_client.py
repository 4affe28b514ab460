"""The client as its source uses it: the real SDK against a server that fails in every way."""

import asyncio
import gc
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from webrag.errors import FetchError, SourceUnavailableError
from webrag.ingestion.firecrawl.source import FirecrawlSource
from webrag.ingestion.models import FirecrawlConfig

from .fake_firecrawl import KEY, FakeFirecrawl, Fault, document, failing

URL = "https://docs.test/guide"
PAGE = "<html><head><title>Guide</title></head><body><h1>Guide</h1><p>Set it.</p></body></html>"
MakeSource = Callable[..., FirecrawlSource]


@pytest.fixture
def guide(firecrawl: FakeFirecrawl) -> FakeFirecrawl:
    firecrawl.pages[URL] = document(PAGE)
    return firecrawl


HTML_PAGE = Fault(200, b"<html>proxy error</html>", {"Content-Type": "text/html"})
SERVICE_FAILURES = {
    "no credits": (failing(402, "Payment Required"), "no credits left (HTTP 402)", 1),
    "bad key": (failing(401, "Invalid token"), "refused the API key (HTTP 401)", 1),
    "unknown path": (failing(404, "Not Found"), "does not know this request (HTTP 404)", 1),
    "no right": (failing(403, "Forbidden"), "refused the request (HTTP 403): Forbidden", 1),
    "bad request": (failing(400, "Bad Request"), "refused the request (HTTP 400)", 1),
    "too large": (failing(413, "Payload Too Large"), "refused the request (HTTP 413)", 1),
    "unprocessable": (failing(422, "Unprocessable"), "refused the request (HTTP 422)", 1),
    "conflict": (failing(409, "Conflict"), "refused the request (HTTP 409)", 1),
    "rate": (failing(429, "Rate limit exceeded"), "limit of requests is reached (HTTP 429)", 3),
    "server error": (failing(500, "Internal"), "Firecrawl failed (HTTP 500): Internal", 3),
    "bad gateway": (Fault(502, b"<h1>Bad</h1>"), "Firecrawl failed (HTTP 502)", 3),
    "unavailable": (failing(503, "Busy"), "Firecrawl failed (HTTP 503)", 3),
    "gateway timeout": (Fault(504, b""), "Firecrawl failed (HTTP 504)", 3),
    "odd server error": (Fault(507, b""), "Firecrawl failed (HTTP 507)", 1),
    "HTML": (HTML_PAGE, "could not be understood (it is not JSON)", 3),
    "nothing": (Fault(200, b""), "could not be understood (it is not JSON)", 3),
    "cut JSON": (Fault(200, b'{"success": tr'), "could not be understood (it is not JSON)", 3),
    "not UTF-8": (Fault(200, b'"\xff\xfe\xff"'), "could not be understood", 3),
    "list": (Fault(200, []), "could not be understood (it lacks", 3),
    "null": (Fault(200, None), "could not be understood (it lacks", 3),
    "no success": (Fault(200, {}), "could not be understood", 3),
    "refusal": (failing(200, "Engines failed"), "could not be understood (Engines failed)", 3),
    "no data": (Fault(200, {"success": True}), "could not be understood (it lacks", 3),
    "data of another kind": (Fault(200, {"success": True, "data": 7}), "(it lacks", 3),
    "markdown of another kind": (
        Fault(200, {"success": True, "data": {"markdown": 7}}),
        "could not be understood (it lacks",
        3,
    ),
    "redirect": (Fault(301, b"", {"Location": "/"}), "could not be understood", 3),
    "broken connection": (Fault(broken=True), "could not be reached", 3),
}


@pytest.mark.parametrize("case", SERVICE_FAILURES)
async def test_failure_of_the_service_is_named_and_retried_when_that_can_help(
    firecrawl: FakeFirecrawl, make_source: MakeSource, case: str
) -> None:
    fault, sentence, requests = SERVICE_FAILURES[case]
    firecrawl.queue("scrape", *[fault] * 5)

    with pytest.raises(SourceUnavailableError) as caught:
        await make_source().fetch(URL)

    assert sentence in str(caught.value)
    assert len(firecrawl.calls) == requests
    assert caught.value.status is None


@pytest.mark.parametrize("case", [c for c, (_, _, times) in SERVICE_FAILURES.items() if times > 1])
async def test_passing_failure_costs_one_more_request(
    guide: FakeFirecrawl, make_source: MakeSource, case: str
) -> None:
    guide.queue("scrape", SERVICE_FAILURES[case][0])

    page = await make_source().fetch(URL)

    assert page.text == PAGE
    assert len(guide.calls) == 2


PAGE_FAILURES = {
    "slow": (failing(408, "Request Timeout"), "could not load the page in time (HTTP 408)", 3),
    "no such host": (
        failing(500, "DNS", code="SCRAPE_DNS_RESOLUTION_ERROR"),
        "found no address for the page's host",
        1,
    ),
    "bad certificate": (
        failing(500, "SSL", code="SCRAPE_SSL_ERROR"),
        "no valid TLS certificate",
        1,
    ),
    "engines": (
        failing(500, "All scraping engines failed!", code="SCRAPE_ALL_ENGINES_FAILED"),
        "could not read the page (SCRAPE_ALL_ENGINES_FAILED): All scraping engines failed!",
        1,
    ),
    "long document": (
        failing(
            408,
            "Timeout",
            code="SCRAPE_TIMEOUT",
            details={"state": "processing_continues", "retryAfterSeconds": 60},
        ),
        "could not load the page in time",
        3,
    ),
}


@pytest.mark.parametrize("case", PAGE_FAILURES)
async def test_failure_of_the_page_is_not_one_of_the_service(
    firecrawl: FakeFirecrawl, make_source: MakeSource, case: str
) -> None:
    fault, sentence, requests = PAGE_FAILURES[case]
    firecrawl.queue("scrape", *[fault] * 5)

    with pytest.raises(FetchError) as caught:
        await make_source().fetch(URL)

    assert type(caught.value) is FetchError
    assert sentence in str(caught.value)
    assert URL in str(caught.value)
    assert len(firecrawl.calls) == requests


@pytest.mark.parametrize(
    ("case", "advice"),
    [
        ("bad key", "FIRECRAWL_API_KEY"),
        ("no credits", "Top up"),
        ("rate", "Wait"),
        ("unknown path", "FIRECRAWL_API_URL"),
        ("HTML", "FIRECRAWL_API_URL"),
    ],
)
async def test_error_says_what_to_do(
    firecrawl: FakeFirecrawl, make_source: MakeSource, case: str, advice: str
) -> None:
    firecrawl.queue("scrape", *[SERVICE_FAILURES[case][0]] * 5)

    with pytest.raises(SourceUnavailableError) as caught:
        await make_source().fetch(URL)

    assert advice in (caught.value.hint or "")


async def test_server_that_is_not_there_is_named(make_source: MakeSource) -> None:
    with pytest.raises(SourceUnavailableError, match="could not be reached") as caught:
        await make_source(api_url="http://127.0.0.1:9").fetch(URL)

    assert "FIRECRAWL_API_URL" in (caught.value.hint or "")


async def test_silent_server_ends_at_the_deadline(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.queue("scrape", Fault(silent=True))
    started = time.monotonic()

    with pytest.raises(SourceUnavailableError, match="did not answer within"):
        await make_source(timeout_s=0.3).fetch(URL)

    assert time.monotonic() - started < 2


async def test_retry_after_is_waited_for_when_there_is_time(
    guide: FakeFirecrawl, make_source: MakeSource
) -> None:
    guide.queue("scrape", failing(429, "Rate limit exceeded", headers={"Retry-After": "0.4"}))
    started = time.monotonic()

    await make_source().fetch(URL)

    assert 0.4 <= time.monotonic() - started < 2


async def test_retry_after_beyond_the_deadline_fails_at_once_and_holds_further_requests_back(
    guide: FakeFirecrawl, make_source: MakeSource
) -> None:
    guide.queue("scrape", failing(429, "Rate limit exceeded", headers={"Retry-After": "60"}))
    source = make_source(timeout_s=5)
    started = time.monotonic()

    for _ in range(3):
        with pytest.raises(SourceUnavailableError, match="HTTP 429"):
            await source.fetch(URL)

    assert time.monotonic() - started < 2
    assert len(guide.calls) == 1


async def test_limit_of_one_request_holds_back_the_others(
    guide: FakeFirecrawl, make_source: MakeSource
) -> None:
    guide.queue("scrape", failing(429, "Rate limit exceeded", headers={"Retry-After": "0.4"}))
    source = make_source()
    first = asyncio.create_task(source.fetch(URL))
    while not guide.calls:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    started = time.monotonic()

    await source.fetch(URL)

    assert time.monotonic() - started > 0.2
    await first


async def test_service_that_keeps_failing_is_left_alone_and_asked_again_later(
    guide: FakeFirecrawl, make_source: MakeSource
) -> None:
    guide.queue("scrape", *[Fault(503, b"")] * 2)
    source = make_source(attempts=1, failures=2, pause_s=0.3)
    for _ in range(4):
        with pytest.raises(SourceUnavailableError, match="HTTP 503"):
            await source.fetch(URL)
    assert len(guide.calls) == 2

    await asyncio.sleep(0.35)

    assert (await source.fetch(URL)).text == PAGE


async def test_refused_key_is_not_tried_again(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    source = make_source(api_key="fc-wrong-key-1234")

    for _ in range(3):
        with pytest.raises(SourceUnavailableError, match="HTTP 401"):
            await source.fetch(URL)

    assert len(firecrawl.calls) == 1


async def test_no_more_requests_are_under_way_than_allowed(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    running, most = 0, 0

    def slow() -> dict[str, Any]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.05)
        running -= 1
        return document(PAGE)

    urls = [f"https://docs.test/{number}" for number in range(6)]
    firecrawl.pages.update(dict.fromkeys(urls, slow))
    source = make_source(concurrency=2)

    await asyncio.gather(*(source.fetch(url) for url in urls))

    assert most == 2


async def test_key_is_in_no_error_and_no_log(
    firecrawl: FakeFirecrawl, make_source: MakeSource, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f"Invalid token {KEY} in Authorization: Bearer {KEY}"
    firecrawl.queue("scrape", *[failing(status, echo) for status in (500, 403)])
    source = make_source()

    with pytest.raises(SourceUnavailableError) as caught:
        await source.fetch(URL)

    own = [record.getMessage() for record in caplog.records if record.name.startswith("webrag")]
    assert KEY not in str(caught.value) + str(caught.value.hint) + repr(source) + "".join(own)
    assert KEY not in repr(FirecrawlConfig(api_key=KEY))


async def test_closing_leaves_no_open_connection(
    guide: FakeFirecrawl, make_source: MakeSource
) -> None:
    source = make_source()
    await source.fetch(URL)
    http = source._client._sdk._v2_client.async_http_client._client

    await source.aclose()
    await source.aclose()
    gc.collect()  # an unclosed socket would warn here, and warnings are errors

    assert http.is_closed
