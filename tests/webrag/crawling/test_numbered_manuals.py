import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any

from webrag.crawling.report import CrawlOptions, CrawlProgress, SiteReport
from webrag.presentation.reports import ending, format_site

from .crawl_lab import CrawlLab, page


def manual(count: int) -> dict[str, str]:
    """Pages as Texinfo numbers them: each about something else, each leading to the next."""
    names = [f"node{number}.html" for number in range(1, count + 1)]
    pages = {
        f"/manual/{name}": page(f"section about {word(number)}", following)
        for number, (name, following) in enumerate(
            zip(names, [*names[1:], "index.html"], strict=True)
        )
    }
    return pages | {"/manual/": page("manual", *names)}


def word(number: int) -> str:
    return "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=8))


class Counting(dict[str, Any]):
    """Any number has a page, which says what all others say."""

    def get(self, path: Any, *_: Any) -> Any:
        number = str(path).rpartition("/")[2]
        if str(path) == "/":
            return page("start", "/list/1", "/good.html")
        if str(path) == "/good.html":
            return page("good")
        return page("list", f"/list/{int(number) + 1}") if number.isdigit() else None


async def test_manual_of_numbered_pages_is_stored_whole(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(manual(110))

    report = await crawl_lab.crawl(f"{site}/manual/", max_pages=130)

    assert (len(await crawl_lab.stored()), report.skipped, report.ended) == (111, {}, "complete")


async def test_numbers_that_lead_on_without_end_are_left_and_counted(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(Counting())

    report = await crawl_lab.crawl(f"{site}/", max_pages=130)

    assert (report.ended, report.visited < 70, report.left_alone) == ("complete", True, 1)
    assert f"{site}/good.html" in await crawl_lab.stored()
    assert "Left alone:\n- 1: in a folder where one page after the other said the same" in (
        format_site(report)
    )


async def test_numbered_pages_beyond_their_share_wait_for_all_others(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    names = [f"n{letter}.html" for letter in "abcdefghijklmnop"]
    pages = manual(90) | {f"/manual/{name}": page(name) for name in names}
    pages["/manual/"] = page("manual", *(f"node{n}.html" for n in range(1, 91)), *names)
    site = static_site(pages)

    report = await crawl_lab.crawl(f"{site}/manual/", max_pages=80)

    assert {f"{site}/manual/{name}" for name in names} <= await crawl_lab.stored()
    assert (report.ended, report.visited, report.queued) == ("limit", 80, 27)


async def test_continued_crawl_counts_what_was_visited_before(
    crawl_lab: CrawlLab, static_site: Callable[..., Any]
) -> None:
    site = static_site(manual(9))
    begun: list[CrawlProgress] = []

    def stop(progress: CrawlProgress) -> None:
        begun.append(progress)
        if len(begun) == 4:
            running.cancel()

    start, options = f"{site}/manual/", CrawlOptions()
    running = asyncio.ensure_future(crawl_lab.crawler().crawl(start, options, on_progress=stop))
    with contextlib.suppress(asyncio.CancelledError):
        await running
    seen: list[CrawlProgress] = []

    report = await crawl_lab.crawler().crawl(start, options, on_progress=seen.append)

    assert report.before + report.visited == 11
    assert (seen[-1].done, seen[-1].queued) == (11, 0)
    assert f"had visited {report.before} page" in format_site(report)


def test_report_of_what_was_left_alone_says_how_many_and_what_stores_them() -> None:
    report = SiteReport(start_url="https://a.test/", skipped={"too many": 398, "robots": 2})

    said = ending(report)

    assert "400 addresses of the site were left alone" in said
    assert "`webrag ingest URL` stores any of them" in said
    assert "Every page that was found has been visited." not in said


def test_progress_tells_how_long_it_will_take() -> None:
    assert CrawlProgress(done=10, queued=30, failed=0, pages_per_second=2.0).seconds_left == 15.0
    assert CrawlProgress(done=0, queued=1, failed=0, pages_per_second=0.0).seconds_left is None
