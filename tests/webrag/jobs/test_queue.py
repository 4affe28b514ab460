import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import procrastinate
import pytest
from psycopg.types.json import Jsonb
from pydantic import ValidationError

from webrag.corpus.schema import drop_collection, queue_schema
from webrag.crawling.queue import QueuedPage, begin_crawl
from webrag.crawling.report import CrawlOptions, SiteReport
from webrag.errors import ConfigurationError, InputError
from webrag.jobs.models import Job, JobRequest, merged_report
from webrag.jobs.queue import JobQueue, TurnEnd, is_behind, use_queue_schema
from webrag.jobs.worker import JobWorker
from webrag.postgres.database import Connection, Database

START = "https://docs.test/guide/"
ALL = CrawlOptions(max_pages=50)


async def count(database: Database, schema: str, name: str) -> int:
    async def work(connection: Any) -> int:
        cursor = await connection.execute(f'select count(*) from "{schema}".{name}')
        (number,) = await cursor.fetchone()
        return int(number)

    return await database.run(work)


async def test_site_asked_for_by_several_at_once_is_one_job(queue: JobQueue) -> None:
    jobs = await asyncio.gather(*(queue.enqueue_site(START, ALL) for _ in range(4)))

    assert len({job.id for job in jobs}) == 1
    assert [job.state for job in await queue.jobs()] == ["waiting"]


async def test_failed_transaction_leaves_neither_job_nor_place_in_the_queue(
    queue: JobQueue, database: Database
) -> None:
    await queue.prepare()
    schema = queue_schema(database.config.collection)
    # The place in the queue is made first; the job itself is then refused.
    await database.run(
        lambda c: c.execute(
            f'alter table "{database.config.collection}".jobs add check (kind <> $$site$$)'
        )
    )

    with pytest.raises(Exception, match="check"):
        await queue.enqueue_site(START, ALL)

    assert await count(database, schema, "procrastinate_jobs") == 0


async def made_by(queue: JobQueue, version: str) -> JobQueue:
    """The queue as a process finds it whose tables another version of procrastinate has made."""
    await queue.prepare()
    collection = queue.collection
    await queue.database.run(
        lambda c: c.execute(
            f'update "{collection}".corpus_meta set value = %s where key = $$queue_version$$',
            (Jsonb(version),),
        )
    )
    return JobQueue(queue.database)


async def version_of(queue: JobQueue) -> str:
    async def work(connection: Any) -> str:
        cursor = await connection.execute(
            f'select value from "{queue.collection}".corpus_meta where key = $$queue_version$$'
        )
        (version,) = await cursor.fetchone()
        return str(version)

    return await queue.database.run(work)


async def test_queue_of_a_newer_procrastinate_is_refused_and_left_as_it_is(
    queue: JobQueue,
) -> None:
    newer = await made_by(queue, "99.1.0")

    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"made by procrastinate 99\.1\.0"):
            await newer.jobs()


async def test_queue_of_an_older_procrastinate_is_brought_to_the_installed_one(
    queue: JobQueue,
) -> None:
    job = await queue.enqueue_site(START, ALL)
    # No change of its tables lies between the two.
    older = await made_by(queue, "3.4.0")

    assert [each.id for each in await older.jobs()] == [job.id]
    assert await version_of(older) == procrastinate.__version__


@pytest.mark.parametrize(
    ("stored", "behind"),
    [(None, True), ("3.9.0", True), ("3.10", False), ("3.10.0.post1", False)],
)
def test_versions_of_the_queue_are_compared_as_numbers(stored: str | None, behind: bool) -> None:
    assert is_behind(stored, "3.10.0") is behind


async def test_pages_get_a_job_each_in_the_order_given(queue: JobQueue) -> None:
    jobs = await queue.enqueue_pages(["https://b.test/x", "https://a.test/x", "https://b.test/x"])

    assert [job.request.url for job in jobs] == ["https://b.test/x", "https://a.test/x"]
    assert {job.request.kind for job in jobs} == {"page"}


class CountingDatabase(Database):
    """Counts its transactions."""

    transactions = 0

    async def run(self, *args: Any, **options: Any) -> Any:
        self.transactions += 1
        return await super().run(*args, **options)


async def test_pages_are_enqueued_in_as_many_transactions_whatever_their_number(
    queue: JobQueue,
) -> None:
    await queue.prepare()
    database = CountingDatabase(queue.database.config)
    counting = JobQueue(database)
    await counting.prepare()
    counts = []

    for number in (1, 40):
        before = database.transactions
        await counting.enqueue_pages([f"https://a.test/{number}/{n}" for n in range(number)])
        counts.append(database.transactions - before)
    await database.close()

    assert counts[0] == counts[1]


async def test_jobs_of_one_kind_are_listed_alone(queue: JobQueue) -> None:
    site = await queue.enqueue_site(START, ALL)
    (page,) = await queue.enqueue_pages([START])

    assert [job.id for job in await queue.jobs(kind="site")] == [site.id]
    assert [job.id for job in await queue.jobs(kind="page", unfinished=True)] == [page.id]


async def test_cancelled_job_can_be_retried_as_a_new_one(queue: JobQueue) -> None:
    job = await queue.enqueue_site(START, ALL)

    cancelled = await queue.cancel(job.id)
    again = await queue.retry(job.id)

    assert cancelled.state == "cancelled"
    assert again.id != job.id
    assert again.request == job.request


async def test_job_that_has_ended_cannot_be_cancelled(queue: JobQueue) -> None:
    job = await queue.enqueue_site(START, ALL)
    await queue.cancel(job.id)

    with pytest.raises(InputError, match=f"Job {job.id} has ended: it is cancelled"):
        await queue.cancel(job.id)


@pytest.fixture
async def left_over(queue: JobQueue) -> Job:
    """A job as an earlier version enqueued it: quotations to check."""
    (job,) = await queue.enqueue_pages([START])
    request = {"url": "", "citations": [{"url": START, "quote": "text"}], "live": True}

    async def change(connection: Connection) -> None:
        await use_queue_schema(connection, is_local=True)
        await connection.change("update procrastinate_jobs set queue_name = 'citation'")
        await connection.change(
            "update {jobs} set kind = 'citation', request = %s", (Jsonb(request),)
        )

    await queue.database.run(change)
    return await queue.job(job.id)


async def test_job_of_a_kind_that_is_no_more_ends_with_a_sentence(
    queue: JobQueue, left_over: Job, make_worker: Callable[..., JobWorker]
) -> None:
    await make_worker(queues=("page", "site")).run(until_empty=True)

    ended = await queue.job(left_over.id)
    assert ended.state == "failed"
    assert "`webrag verify` and `webrag reindex` do that at once." in str(ended.reason)


async def test_job_of_a_kind_that_is_no_more_cannot_be_retried(
    queue: JobQueue, left_over: Job
) -> None:
    await queue.cancel(left_over.id)

    with pytest.raises(InputError, match="Workers check no quotations"):
        await queue.retry(left_over.id)


def test_request_with_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError, match="refesh"):
        JobRequest(url=START, refesh=True)  # type: ignore[call-arg]


async def test_job_that_waits_cannot_be_retried(queue: JobQueue) -> None:
    job = await queue.enqueue_site(START, ALL)

    with pytest.raises(InputError, match="only failed and cancelled jobs"):
        await queue.retry(job.id)


async def test_unknown_job_is_told_so(queue: JobQueue) -> None:
    with pytest.raises(InputError, match="There is no job 7"):
        await queue.job(7)


async def test_turn_taken_over_can_write_no_more(queue: JobQueue) -> None:
    job = await queue.enqueue_site(START, ALL)
    first = await queue.begin_turn(job.id)
    second = await queue.begin_turn(job.id)
    assert first is not None
    assert second is not None

    assert not await queue.end_turn(first, TurnEnd("done"))
    assert (await queue.job(job.id)).ended_at is None
    assert await queue.end_turn(second, TurnEnd("done"))
    assert (await queue.job(job.id)).state == "done"


async def test_job_that_every_worker_dies_of_fails(queue: JobQueue) -> None:
    job = await queue.enqueue_site(START, ALL)
    turns = [await queue.begin_turn(job.id) for _ in range(25)]

    assert turns[-1] is None
    ended = await queue.job(job.id)
    assert ended.state == "failed"
    assert "workers in a row ended" in str(ended.reason)


async def test_due_visit_is_enqueued_once_by_several_workers(queue: JobQueue) -> None:
    schedule = await queue.set_schedule(START, ALL, timedelta(days=7))

    enqueued = await asyncio.gather(*(queue.enqueue_due() for _ in range(4)))

    assert sum(enqueued) == 1
    assert [job.schedule for job in await queue.jobs()] == [schedule.id]
    (after,) = await queue.schedules()
    assert after.overdue == timedelta()
    assert timedelta(days=6) < after.next_at - schedule.next_at < timedelta(days=8)


async def test_jobs_that_ended_long_ago_are_removed_with_their_places_in_the_queue(
    queue: JobQueue, database: Database
) -> None:
    await queue.set_schedule(START, ALL, timedelta(days=7))
    await queue.enqueue_due()
    old, waiting, new = await queue.enqueue_pages([f"{START}{n}" for n in range(3)])
    for job in (await queue.jobs(kind="site"))[0], old, new:
        await queue.cancel(job.id)
    await database.run(
        lambda c: c.execute(
            f'update "{queue.collection}".jobs set ended_at = now() - interval $$31 days$$'
            " where ended_at is not null and id <> %s",
            (new.id,),
        )
    )

    removed = await queue.remove_ended(timedelta(days=30))

    kept = {job.id for job in await queue.jobs()}
    assert removed == 1
    assert kept == {waiting.id, new.id, (await queue.schedules())[0].last_job}
    assert await count(database, queue_schema(queue.collection), "procrastinate_jobs") == len(kept)


async def test_schedule_for_the_same_pages_is_replaced(queue: JobQueue) -> None:
    await queue.set_schedule(START, ALL, timedelta(days=7))
    await queue.set_schedule(START, ALL, timedelta(hours=6))

    assert [each.every for each in await queue.schedules()] == [timedelta(hours=6)]


async def test_schedule_counts_the_visits_that_failed_in_a_row(queue: JobQueue) -> None:
    await queue.set_schedule(START, ALL, timedelta(days=7))
    await queue.enqueue_due()
    (job,) = await queue.jobs()
    turn = await queue.begin_turn(job.id)
    assert turn is not None

    await queue.end_turn(turn, TurnEnd("failed", reason="The site is gone."))

    (schedule,) = await queue.schedules()
    assert (schedule.failures, schedule.last_job) == (1, job.id)


@pytest.mark.parametrize("every", [timedelta(seconds=1), timedelta(days=9999)])
async def test_schedule_with_an_unusable_time_span_is_refused(
    queue: JobQueue, every: timedelta
) -> None:
    with pytest.raises(InputError, match="1 minute to 10 years"):
        await queue.set_schedule(START, ALL, every)


async def test_dropped_collection_takes_its_queue_along(
    queue: JobQueue, database: Database
) -> None:
    await queue.enqueue_site(START, ALL)
    await drop_collection(database)

    async def work(connection: Any) -> Any:
        cursor = await connection.execute(
            "select 1 from pg_namespace where nspname = %s",
            (queue_schema(database.config.collection),),
        )
        return await cursor.fetchone()

    assert await database.run(work) is None


def test_report_of_all_turns_adds_up_and_names_pages_nobody_reported() -> None:
    first = SiteReport(
        start_url=START, pages={"indexed": 3}, failed={"empty": 1}, seconds=2, not_pages=4
    )
    last = SiteReport(start_url=START, pages={"indexed": 2, "stored": 1}, seconds=1, not_pages=1)

    total = merged_report(first, last, visited=9)

    assert total.pages == {"indexed": 5, "stored": 1}
    assert (total.failed, total.before, total.seconds) == ({"empty": 1}, 2, 3.0)
    assert total.not_pages == 5


async def test_pages_of_a_turn_that_ended_by_itself_are_no_more_suspect_than_after_the_first(
    queue: JobQueue, database: Database
) -> None:
    job = await queue.enqueue_site(START, ALL)
    turn = await queue.begin_turn(job.id)
    assert turn is not None
    crawl = await begin_crawl(database, ALL.key(START), turn.number)
    await crawl.add([QueuedPage(START, 0)])
    await crawl.begin_page(START, 4)

    await queue.end_turn(turn, TurnEnd(reason="The database was lost."))

    assert [each.attempts for each in await crawl.begun()] == [1]
