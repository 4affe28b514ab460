import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import pytest

from webrag.errors import (
    FetchError,
    RobotsDisallowedError,
)
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig, FetchedPage

PAGE = "<html><body><p>Hello there.</p></body></html>"
HTML = {"Content-Type": "text/html; charset=utf-8"}
Make = Callable[..., HttpFetcher]


async def test_every_request_names_its_sender(make_fetcher: Make, static_site: Any) -> None:
    site = static_site({"/robots.txt": "", "/a": PAGE})

    await make_fetcher(user_agent="Me/1 (+https://me.test/bot)").fetch(f"{site}/a")

    senders = [request.headers["user-agent"] for request in site.requests]
    assert senders == ["Me/1 (+https://me.test/bot)"] * 2


@pytest.mark.parametrize("status", [429, 503])
async def test_busy_site_is_asked_once_more_after_retry_after(
    make_fetcher: Make, static_site: Any, status: int
) -> None:
    answers = iter([(status, {"Retry-After": "0"}, ""), (200, HTML, PAGE)])
    site = static_site({"/a": lambda _: next(answers)})

    assert (await make_fetcher().fetch(f"{site}/a")).text == PAGE


async def test_retry_after_beyond_the_deadline_is_not_waited_for(
    make_fetcher: Make, static_site: Any
) -> None:
    site = static_site({"/a": lambda _: (429, {"Retry-After": "3600"}, "")})
    started = time.monotonic()

    with pytest.raises(FetchError, match="HTTP 429"):
        await make_fetcher().fetch(f"{site}/a")

    assert site.paths == ["/a"]
    assert time.monotonic() - started < 5


async def test_robots_txt_forbids_a_page(make_fetcher: Make, static_site: Any) -> None:
    robots = "User-agent: WebRAG\nDisallow: /private\n"
    site = static_site({"/robots.txt": robots, "/private/a": PAGE, "/open": PAGE})
    fetcher = make_fetcher()

    with pytest.raises(RobotsDisallowedError, match="does not let WebRAG fetch"):
        await fetcher.fetch(f"{site}/private/a")

    await fetcher.fetch(f"{site}/open")
    assert site.paths == ["/open"]


async def test_robots_txt_is_asked_for_once_per_site(make_fetcher: Make, static_site: Any) -> None:
    site = static_site({"/a": PAGE, "/b": PAGE})
    fetcher = make_fetcher()
    await fetcher.fetch(f"{site}/a")
    await fetcher.fetch(f"{site}/b")

    assert [request.path for request in site.requests].count("/robots.txt") == 1


async def test_failing_robots_txt_stops_the_fetch(make_fetcher: Make, static_site: Any) -> None:
    site = static_site({"/robots.txt": lambda _: (503, {}, ""), "/a": PAGE})

    with pytest.raises(FetchError, match=r"robots\.txt answers HTTP 503"):
        await make_fetcher().fetch(f"{site}/a")

    assert site.paths == []


async def test_redirect_target_obeys_its_robots_txt(make_fetcher: Make, static_site: Any) -> None:
    site = static_site(
        {
            "/robots.txt": "User-agent: *\nDisallow: /b\n",
            "/a": lambda _: (302, {"Location": "/b"}, ""),
            "/b": PAGE,
        }
    )

    with pytest.raises(RobotsDisallowedError):
        await make_fetcher().fetch(f"{site}/a")


async def test_robots_txt_that_leads_nowhere_is_none_and_logged(
    make_fetcher: Make, static_site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    site = static_site({"/robots.txt": lambda _: (302, {"Location": "ftp://x/"}, ""), "/a": PAGE})

    assert (await make_fetcher().fetch(f"{site}/a")).text == PAGE
    assert "the robots.txt is not followed further" in caplog.text


async def test_large_robots_txt_is_cut_not_refused(make_fetcher: Make, static_site: Any) -> None:
    robots = "User-agent: *\nDisallow: /b\n" + "# filler\n" * 100_000
    site = static_site({"/robots.txt": robots, "/a": PAGE})

    assert (await make_fetcher().fetch(f"{site}/a")).text == PAGE


class LoopbackDialer(httpcore2.AsyncNetworkBackend):
    """Connects to a site on loopback whichever address it is told."""

    def __init__(self, site: str) -> None:
        self._port = urlsplit(site).port or 80
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        del host, port
        return await self._network.connect_tcp("127.0.0.1", self._port, *args, **kwargs)


@pytest.fixture
async def public_fetcher() -> AsyncIterator[Callable[..., HttpFetcher]]:
    """Makes fetchers for which a site on loopback is the public host `docs.test`."""
    made: list[HttpFetcher] = []

    async def resolver(_host: str, _port: int) -> list[str]:
        return ["93.184.215.14"]

    def make(site: str, **options: Any) -> HttpFetcher:
        config = FetchConfig(**{"host_delay_s": 0.0, **options})
        made.append(HttpFetcher(config, resolver=resolver, dialer=LoopbackDialer(site)))
        return made[-1]

    yield make
    for fetcher in made:
        await fetcher.aclose()


async def test_crawl_delay_of_the_robots_txt_is_kept(
    public_fetcher: Callable[..., HttpFetcher], static_site: Any
) -> None:
    site = static_site({"/robots.txt": "User-agent: *\nCrawl-delay: 0.3\n", "/a": PAGE, "/b": PAGE})
    fetcher = public_fetcher(site)
    started = time.monotonic()
    await fetcher.fetch("http://docs.test/a")

    await fetcher.fetch("http://docs.test/b")

    assert time.monotonic() - started > 0.3


async def test_site_that_is_busy_is_not_asked_for_other_pages_meanwhile(
    public_fetcher: Callable[..., HttpFetcher], static_site: Any
) -> None:
    answers = iter([(429, {"Retry-After": "1"}, ""), (200, HTML, PAGE)])
    site = static_site({"/a": lambda _: next(answers), "/b": PAGE})
    fetcher = public_fetcher(site)
    busy = asyncio.create_task(fetcher.fetch("http://docs.test/a"))
    while "/a" not in site.paths:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    started = time.monotonic()

    await fetcher.fetch("http://docs.test/b")

    assert time.monotonic() - started > 0.4
    assert isinstance(await busy, FetchedPage)
