"""Crawls that workers take turns at, and the pages that they may have died of."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.webrag.crawling.crawl_lab import CrawlLab, page
from webrag.crawling.crawl import CrawlTurn, SiteCrawler
from webrag.crawling.queue import QueuedPage, begin_crawl
from webrag.crawling.report import CrawlOptions, SiteReport

ALL = CrawlOptions(max_pages=50)


def in_turn(crawler: SiteCrawler, url: str, number: int = 1) -> "asyncio.Task[SiteReport]":
    return asyncio.create_task(crawler.crawl(url, ALL, turn=CrawlTurn(number, lambda: False)))


async def begun(lab: CrawlLab, url: str) -> dict[str, int]:
    """Pages that a worker has begun with and not finished, and how often."""
    record = await begin_crawl(lab.database, ALL.key(url))
    return {each.url: each.attempts for each in await record.begun()}


async def suspect(lab: CrawlLab, url: str) -> None:
    """Leave a crawl behind as a worker does that dies of its second page."""
    crawl = await begin_crawl(lab.database, ALL.key(url), turn=1)
    await crawl.add([QueuedPage(f"{url}a.html", 1)])
    await crawl.set_roots([url])
    await crawl.begin_page(f"{url}a.html", 1)


@pytest.fixture
def held() -> Any:
    """Holds every answer back until it is set, at the latest at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


async def test_page_that_the_site_has_not_given_yet_is_not_what_a_worker_died_of(
    crawl_lab: CrawlLab, static_site: Callable[..., Any], held: threading.Event
) -> None:
    def hang(_request: Any) -> Any:
        held.wait(60)
        return 200, {}, page("late")

    site = static_site({"/": page("start", "a.html"), "/a.html": hang})
    crawl = in_turn(crawl_lab.crawler(), f"{site}/")
    while "/a.html" not in site.paths:
        await asyncio.sleep(0.02)

    assert await begun(crawl_lab, f"{site}/") == {}
    crawl.cancel()
    await asyncio.wait([crawl])


async def test_page_is_begun_with_while_it_is_worked_on(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/": page("start", "a.html"), "/a.html": page("a")})
    seen: dict[str, int] = {}
    acquire = crawl_lab.lab.acquirer.acquire

    class Watching:
        """Looks at the queue when the page has been stored and the crawl not been told."""

        def __getattr__(self, name: str) -> Any:
            return getattr(crawl_lab.lab.acquirer, name)

        async def acquire(self, url: str, **options: Any) -> Any:
            obtained = await acquire(url, **options)
            seen.update(await begun(crawl_lab, f"{site}/"))
            return obtained

    crawler = SiteCrawler(Watching(), crawl_lab.database)  # type: ignore[arg-type]

    await in_turn(crawler, f"{site}/")

    assert seen == {f"{site}/": 1, f"{site}/a.html": 1}


async def test_worker_visits_one_suspected_page_at_a_time_whatever_the_number_of_crawls(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    mutex = threading.Lock()
    at_once: list[int] = [0]
    most: list[int] = []

    def slow(_request: Any) -> Any:
        with mutex:
            at_once[0] += 1
            most.append(at_once[0])
        time.sleep(0.3)
        with mutex:
            at_once[0] -= 1
        return 200, {}, page("a")

    sites = [static_site({"/": page("start"), "/a.html": slow}) for _ in range(3)]
    for site in sites:
        await suspect(crawl_lab, f"{site}/")
    crawler = crawl_lab.crawler()

    await asyncio.gather(*(in_turn(crawler, f"{site}/", 2) for site in sites))

    assert most == [1, 1, 1]
