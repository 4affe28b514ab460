import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.webrag.crawling.crawl_lab import TREE, CrawlLab, page
from webrag.corpus.schema import queue_schema
from webrag.crawling.queue import begin_crawl
from webrag.crawling.report import CrawlOptions, SiteReport
from webrag.errors import FetchError, PageGoneError, ProviderError, StorageError
from webrag.jobs.models import Job
from webrag.jobs.queue import JobQueue
from webrag.jobs.worker import (
    JobWorker,
    decide_after_defect,
    decide_after_failure,
    decide_after_visit,
)
from webrag.postgres.database import Database

Make = Callable[..., JobWorker]
Start = Callable[..., asyncio.Task[None]]


async def ended(queue: JobQueue, job: Job, within_s: float = 30) -> Job:
    async with asyncio.timeout(within_s):
        while (now := await queue.job(job.id)).ended_at is None:
            await asyncio.sleep(0.05)
    return now


async def test_queued_crawl_stores_what_a_crawl_at_once_stores(
    crawl_lab: CrawlLab, queue: JobQueue, make_worker: Make, static_site: Any
) -> None:
    site = static_site(TREE)
    job = await queue.enqueue_site(f"{site}/docs/", CrawlOptions(max_pages=50))
    await make_worker().run(until_empty=True)
    queued = await crawl_lab.stored()
    done = await queue.job(job.id)

    report = await crawl_lab.crawl(f"{site}/docs/", max_pages=50)

    assert queued == await crawl_lab.stored()
    assert report.pages == {"stored": len(queued)}
    assert done.state == "done"
    assert done.report.site is not None
    assert done.report.site.pages == {"indexed": len(queued)}
    assert done.report.site.before == 0


async def test_crawl_in_many_turns_stores_and_reports_the_same(
    crawl_lab: CrawlLab, queue: JobQueue, working: Start, static_site: Any
) -> None:
    site, other = static_site(TREE), static_site(TREE)
    jobs = [await queue.enqueue_site(f"{s}/docs/", CrawlOptions()) for s in (site, other)]
    working(concurrency=1, turn_s=0.05, poll_s=0.05)

    reports = [(await ended(queue, job)).report.site for job in jobs]

    assert [r and (r.pages, r.before) for r in reports] == [({"indexed": 5}, 0)] * 2
    assert len(await crawl_lab.stored()) == 10
    for each in (site, other):
        assert sorted(p for p in each.paths if p.startswith("/docs")) == sorted(
            p for p in TREE if p.startswith("/docs")
        )


async def test_small_site_does_not_wait_for_a_large_one(
    queue: JobQueue, working: Start, static_site: Any
) -> None:
    large = static_site(
        {"/": page("start", *(f"/{n}.html" for n in range(300)))}
        | {f"/{n}.html": page(f"large {n}") for n in range(300)}
    )
    small = static_site({"/": page("small")})
    first = await queue.enqueue_site(f"{large}/", CrawlOptions())
    working(concurrency=1, turn_s=0.3, poll_s=0.1)
    while not large.paths:
        await asyncio.sleep(0.02)

    second = await queue.enqueue_site(f"{small}/", CrawlOptions())
    await ended(queue, second)

    assert (await queue.job(first.id)).ended_at is None
    await queue.cancel(first.id)


async def test_single_page_comes_before_sites(
    crawl_lab: CrawlLab, queue: JobQueue, make_worker: Make, static_site: Any
) -> None:
    site = static_site({"/": page("site"), "/page": page("page")})
    await queue.enqueue_site(f"{site}/", CrawlOptions(depth=0))
    await queue.enqueue_pages([f"{site}/page"])

    await make_worker(concurrency=1).run(until_empty=True)

    assert [path for path in site.paths if "robots" not in path] == ["/page", "/"]


async def test_worker_of_some_queues_leaves_the_jobs_of_others_alone(
    queue: JobQueue, make_worker: Make, static_site: Any
) -> None:
    site = static_site({"/": page("site"), "/page": page("page")})
    left = await queue.enqueue_site(f"{site}/", CrawlOptions(depth=0))
    (done,) = await queue.enqueue_pages([f"{site}/page"])

    await make_worker(queues=("page",)).run(until_empty=True)

    assert (await queue.job(done.id)).state == "done"
    assert (await queue.job(left.id)).state == "waiting"
    assert site.paths == ["/page"]


async def test_running_job_that_is_cancelled_stops(
    queue: JobQueue, working: Start, static_site: Any
) -> None:
    site = static_site(
        {"/": page("start", *(f"/{n}.html" for n in range(500)))}
        | {f"/{n}.html": page(f"page {n}") for n in range(500)}
    )
    job = await queue.enqueue_site(f"{site}/", CrawlOptions())
    working()
    while not site.paths:
        await asyncio.sleep(0.02)

    await queue.cancel(job.id)
    other = await queue.enqueue_site(f"{site}/", CrawlOptions(depth=0))
    await ended(queue, other)

    assert (await queue.job(job.id)).state == "cancelled"
    await asyncio.sleep(0.5)
    asked = len(site.paths)
    await asyncio.sleep(1)
    assert len(site.paths) == asked


async def test_page_that_cannot_be_had_ends_as_a_failed_job_that_says_why(
    queue: JobQueue, make_worker: Make, static_site: Any
) -> None:
    site = static_site({})
    (job,) = await queue.enqueue_pages([f"{site}/missing"])

    await make_worker().run(until_empty=True)

    failed = await queue.job(job.id)
    assert failed.state == "failed"
    assert "404" in str(failed.reason)


async def test_page_that_hangs_is_given_up_and_the_rest_is_stored(
    crawl_lab: CrawlLab, queue: JobQueue, make_worker: Make, static_site: Any
) -> None:
    held = threading.Event()

    def hang(_request: Any) -> Any:
        held.wait(60)
        return 200, {}, page("late")

    routes = {"/": page("start", "a.html", "b.html"), "/a.html": hang, "/b.html": page("b")}
    site = static_site(routes)
    job = await queue.enqueue_site(f"{site}/", CrawlOptions())

    await make_worker(page_s=1.5).run(until_empty=True)
    held.set()

    done = await queue.job(job.id)
    assert done.report.site is not None
    assert (done.state, done.report.site.failed) == ("done", {"given up": 1})
    assert await crawl_lab.stored() == {f"{site}/", f"{site}/b.html"}


def test_passing_failures_are_tried_again_after_growing_pauses_and_then_no_more() -> None:
    silent = FetchError("no answer", url="https://a.test/")
    ends = [decide_after_failure(silent, failures) for failures in range(5)]

    assert [end.outcome for end in ends] == [None] * 4 + ["failed"]
    pauses = [end.pause_s for end in ends[:4]]
    assert pauses == sorted(set(pauses))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (PageGoneError("gone", url="https://a.test/", status=404), "failed"),
        (FetchError("busy", url="https://a.test/", status=503), None),
        (ProviderError("no model answers", provider="local"), None),
    ],
)
def test_only_failures_that_may_pass_are_tried_again(error: Any, outcome: str | None) -> None:
    assert decide_after_failure(error, 0).outcome == outcome


async def test_error_that_nobody_foresaw_is_logged_and_told_and_is_no_death(
    crawl_lab: CrawlLab,
    queue: JobQueue,
    working: Start,
    database: Database,
    static_site: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = static_site({"/": page("start")})
    job = await queue.enqueue_site(f"{site}/", CrawlOptions())
    # What a turn has learned cannot be read by the next one.
    await begin_crawl(crawl_lab.database, CrawlOptions().key(f"{site}/"))
    await database.run(
        lambda c: c.execute(
            f"update \"{database.config.collection}\".crawls set learned = 'no such thing'"
        )
    )
    working()

    async with asyncio.timeout(30):
        while (now := await queue.job(job.id)).retry_at is None:
            await asyncio.sleep(0.05)

    assert "An unexpected error" in str(now.reason)
    assert (now.state, now.deaths) == ("waiting", 0)
    assert [each.exc_info is None for each in caplog.records if "foresaw" in each.message] == [
        False
    ]


async def test_worker_that_is_to_end_gives_up_a_queue_that_always_fails(
    queue: JobQueue, make_worker: Make, database: Database
) -> None:
    await queue.enqueue_pages(["https://a.test/"])
    function = f'"{queue_schema(queue.collection)}".procrastinate_fetch_job_v2'
    await database.run(lambda c: c.execute(f"alter function {function} rename to gone"))

    with pytest.raises(StorageError, match=r"failed 5 times in a row: .*fetch_job_v2"):
        await make_worker(poll_s=0.05).run(until_empty=True)


def test_error_that_nobody_foresaw_is_tried_again_only_so_often() -> None:
    ends = [decide_after_defect(KeyError("x"), failures) for failures in range(5)]

    assert [end.outcome for end in ends] == [None] * 4 + ["failed"]
    assert "KeyError: 'x'" in str(ends[-1].reason)


def test_error_that_nobody_foresaw_is_told_without_what_no_table_holds() -> None:
    long = ValueError("api_key=sk-secret1234567890abcdef \0 " + "x" * 1_000)

    reason = str(decide_after_defect(long, 0).reason)

    assert "sk-secret1234567890abcdef" not in reason
    assert "\0" not in reason
    assert len(reason) < 400


def test_turn_at_a_site_that_answered_before_it_fell_silent_starts_counting_anew() -> None:
    report = SiteReport(
        start_url="https://a.test/", pages={"indexed": 3}, queued=4, ended="unreachable"
    )

    assert decide_after_visit(report, 4).failures == 1
