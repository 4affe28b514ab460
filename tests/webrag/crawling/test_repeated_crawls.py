import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from webrag.crawling.queue import begin_crawl
from webrag.crawling.report import CrawlOptions, CrawlProgress
from webrag.postgres.database import Database

from .crawl_lab import TREE, CrawlLab, endless_site, page


async def test_known_page_whose_site_says_not_found_with_status_200_keeps_its_text(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    pages = {"/": page("start", "/a"), "/a": page("a")}
    site = static_site(pages)
    await crawl_lab.crawl(f"{site}/")
    pages["/a"] = (
        "<html><head><title>Page not found</title></head><body><main><h1>Page not found</h1>"
        "<p>The page you are looking for does not exist.</p></main></body></html>"
    )

    report = await crawl_lab.crawl(f"{site}/", refresh=True)

    status = await crawl_lab.lab.corpus.status()
    assert report.failed == {"not found, although answered as if it were": 1}
    assert await crawl_lab.stored() == {f"{site}/", f"{site}/a"}
    assert status.gone == 0
    assert "About a." in (await crawl_lab.lab.corpus.markdown(f"{site}/a") or "")


async def test_repeating_a_crawl_of_fresh_pages_makes_no_request(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE)
    await crawl_lab.crawl(f"{site}/docs/")
    site.requests.clear()

    report = await crawl_lab.crawl(f"{site}/docs/")

    assert (report.pages, site.paths) == ({"stored": 5}, [])


async def test_refresh_costs_one_conditional_request_a_page_and_no_embedding(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE, validators=True)
    await crawl_lab.crawl(f"{site}/docs/")
    site.requests.clear()

    report = await crawl_lab.crawl(f"{site}/docs/", refresh=True)

    pages = [request for request in site.requests if request.path != "/robots.txt"]
    assert len(pages) == 5
    assert all("if-none-match" in request.headers for request in pages)
    assert (report.pages, report.chunks_embedded) == ({"unchanged": 5}, 0)


async def test_refresh_finds_changed_new_and_gone_pages(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    routes: dict[str, Any] = {
        "/": page("start", "/a", "/b"), "/a": page("a"), "/b": page("b"),
    }  # fmt: skip
    site = static_site(routes)
    await crawl_lab.crawl(f"{site}/")
    routes |= {"/": page("start", "/a", "/b", "/c"), "/c": page("c")}
    del routes["/b"]

    report = await crawl_lab.crawl(f"{site}/", refresh=True)

    status = await crawl_lab.lab.corpus.status()
    assert report.pages == {"updated": 1, "unchanged": 1, "indexed": 1}
    assert (status.documents, status.gone) == (3, 1)
    assert status.outcomes == {"gone": 1, "indexed": 1, "unchanged": 1, "updated": 1}


async def test_interrupted_crawl_goes_on_without_asking_again(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    names = [f"/p{chr(97 + n)}{chr(97 + m)}" for n in range(5) for m in range(8)]
    site = static_site({"/": page("start", *names)} | {name: page(name) for name in names})
    reached = asyncio.Event()

    def stop_later(progress: CrawlProgress) -> None:
        if progress.done >= 12:
            reached.set()

    options = CrawlOptions(refresh=True)
    running = asyncio.create_task(
        crawl_lab.crawler().crawl(f"{site}/", options, on_progress=stop_later)
    )
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    stored = await crawl_lab.stored()
    before = len(site.paths)

    report = await crawl_lab.crawler().crawl(f"{site}/", options)

    assert report.resumed
    assert report.ended == "complete"
    assert await crawl_lab.stored() == {f"{site}{name}" for name in ["/", *names]}
    assert len(site.paths) - before <= 41 - len(stored)


async def test_cancelled_crawl_leaves_no_task_and_no_connection(
    crawl_lab: CrawlLab, static_site: Callable[..., Any], database: Database
) -> None:
    site = static_site(endless_site())
    before = asyncio.all_tasks()
    for turn in range(12):
        running = asyncio.create_task(crawl_lab.crawl(f"{site}/", max_pages=1_000))
        await asyncio.sleep(0.05 + 0.03 * turn)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert {task for task in asyncio.all_tasks() - before if "pool" not in task.get_name()} == set()
    async with asyncio.timeout(5):
        other = await begin_crawl(crawl_lab.database, "other")
        await asyncio.gather(*(other.queued() for _ in range(10)))


async def test_finished_crawl_leaves_no_queue_behind(
    crawl_lab: CrawlLab, static_site: Callable[..., Any], database: Database
) -> None:
    site = static_site(TREE)

    await crawl_lab.crawl(f"{site}/docs/", max_pages=3)

    options = CrawlOptions(max_pages=3)
    assert not (await begin_crawl(crawl_lab.database, options.key(f"{site}/docs/"))).is_resumed


async def test_site_that_stops_answering_ends_the_crawl_and_is_tried_again_later(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    names = [f"/x{chr(97 + n)}/{chr(97 + m)}" for n in range(10) for m in range(5)]
    down = True

    def answer(request: Any) -> tuple[int, Mapping[str, str], str]:
        return (
            (500, {}, "down") if down else (200, {"Content-Type": "text/html"}, page(request.path))
        )

    site = static_site({"/": page("start", *names)} | dict.fromkeys(names, answer))
    first = await crawl_lab.crawl(f"{site}/")
    asked = len(site.paths)
    down = False

    second = await crawl_lab.crawl(f"{site}/")

    assert (first.ended, asked < 40) == ("unreachable", True)
    assert (second.ended, second.resumed) == ("complete", True)
    assert len(await crawl_lab.stored()) == 51


async def test_two_processes_may_crawl_one_site(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(TREE)

    await asyncio.gather(*(crawl_lab.crawl(f"{site}/docs/") for _ in range(3)))

    assert len(await crawl_lab.stored()) == 5
