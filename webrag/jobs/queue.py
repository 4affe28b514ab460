"""Jobs in the corpus' own Postgres: put in, listed, cancelled, begun and ended.

What a job is about and how far it is stands in the tables of the corpus; procrastinate's tables,
in a schema beside the collection's, hold its place in the queue. Both are written in one
transaction wherever both change.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import procrastinate
from packaging.version import Version
from procrastinate.schema import SchemaManager
from psycopg import sql
from psycopg.types.json import Jsonb

from webrag.corpus.schema import lock_tables, queue_schema
from webrag.crawling.report import CrawlOptions, SiteReport
from webrag.crawling.scope import CrawlScope
from webrag.errors import ConfigurationError, InputError
from webrag.ingestion.addresses import canonical_url
from webrag.jobs.models import (
    Job,
    JobKind,
    JobReport,
    JobRequest,
    Schedule,
    merged_report,
    stored_request,
)
from webrag.postgres.database import Connection, Database

TASK: Final = "webrag"
"""Name of the one task: work on the job with this number."""

_VERSION_KEY: Final = "queue_version"
_PAGE_PRIORITY: Final = 1  # somebody waits for it
_EPOCH: Final = 1_700_000_000
_MOST_DEATHS: Final = 20
_REMOVED_AT_ONCE: Final = 1_000
_KEY_SEED: Final = 43
_ALONE_SEED: Final = 44
_LONGEST_EVERY: Final = timedelta(days=3650)
_NO_LONGER_DONE: Final = (
    "Workers check no quotations and make no vectors any more; `webrag verify` and `webrag reindex`"
    " do that at once."
)


class Turn(NamedTuple):
    """A worker's turn at a job, with a higher number than all before; so many in a row failed."""

    job: int
    number: int
    request: JobRequest
    failures: int
    report: JobReport


class TurnEnd(NamedTuple):
    """The end of a turn; without an outcome another turn goes on with the job after `pause_s`."""

    outcome: Literal["done", "failed"] | None = None
    pause_s: int = 0
    failures: int = 0
    reason: str | None = None


async def use_queue_schema(connection: Connection, *, is_local: bool) -> None:
    """Let the names of procrastinate's tables and functions mean those of a collection."""
    path = "concat_ws(', ', quote_ident(%s), nullif(current_setting('search_path'), ''))"
    await connection.execute(
        f"select set_config('search_path', {path}, %s)",
        (queue_schema(connection.collection), is_local),
    )


def priority_of(request: JobRequest) -> int:
    """Its priority from now on: pages come first, then the site that has waited longest."""
    return _PAGE_PRIORITY if request.kind == "page" else _EPOCH - int(time.time())


class JobQueue:
    """The jobs of a database's collection, which must exist; tasks and processes share it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.collection = database.config.collection
        self._place = sql.Identifier(queue_schema(self.collection))
        self._app = procrastinate.App(connector=procrastinate.PsycopgConnector())
        self._is_ready = False

    async def prepare(self) -> None:
        """Make the queue's tables, or bring them to this procrastinate; refuse a newer one's."""
        if self._is_ready:
            return

        async def work(connection: Connection) -> None:
            if not is_behind(await self._version(connection), procrastinate.__version__):
                return
            await lock_tables(connection, self.collection)
            # Another process may have done it while this one waited.
            version = await self._version(connection)
            if is_behind(version, procrastinate.__version__):
                await self._install(connection, version)

        await self.database.run(work)
        self._is_ready = True

    async def enqueue_site(self, url: str, options: CrawlOptions) -> Job:
        """Let workers bring the pages of a site in; gives the same job where it is not done yet."""
        return (await self._enqueue([_site_request(url, options)]))[0]

    async def enqueue_pages(
        self, urls: Sequence[str], *, refresh: bool = False, version: str = ""
    ) -> list[Job]:
        """Let workers bring single pages in, before those of sites; gives jobs as `enqueue_site`.

        With `refresh` fresh ones, too; `version` is of the library that they are about, "" for what
        addresses and pages say.
        """
        wanted = dict.fromkeys(canonical_url(url) for url in urls)
        return await self._enqueue(
            [JobRequest(url=url, refresh=refresh, version=version) for url in wanted]
        )

    async def jobs(
        self, *, limit: int = 100, unfinished: bool = False, kind: JobKind | None = None
    ) -> list[Job]:
        """The jobs, newest first; all, or those that wait or run, or those of one queue."""
        await self.prepare()
        return await self._select(
            "(j.ended_at is null or not %s) and j.kind = coalesce(%s, j.kind)"
            " order by j.id desc limit %s",
            (unfinished, kind, limit),
        )

    async def job(self, number: int) -> Job:
        """One job, or InputError where there is none with this number."""
        await self.prepare()
        found = await self._select("j.id = %s", (number,))
        if not found:
            raise InputError(f"There is no job {number}; `webrag jobs list` lists them.")
        return found[0]

    async def cancel(self, number: int) -> Job:
        """Take a job out of the queue, or stop it."""
        job = await self.job(number)
        statement = (
            "update {jobs} set outcome = 'cancelled', ended_at = now()"
            " where id = %s and ended_at is null"
        )

        async def work(connection: Connection) -> None:
            await use_queue_schema(connection, is_local=True)
            if not await connection.change(statement, (number,)):
                raise InputError(f"Job {number} has ended: it is {job.state}.")
            await self._app.job_manager.cancel_job_by_id_async(
                number, abort=True, connection=connection
            )

        await self.database.run(work)
        return await self.job(number)

    async def retry(self, number: int) -> Job:
        """Enqueue a job that failed or was cancelled once more; it goes on where it was."""
        job = await self.job(number)
        if job.state not in ("failed", "cancelled"):
            raise InputError(
                f"Job {number} is {job.state}; only failed and cancelled jobs can be retried."
            )
        if not job.request.url:
            raise InputError(_NO_LONGER_DONE)
        return (await self._enqueue([job.request]))[0]

    async def begin_turn(self, number: int) -> Turn | None:
        """Take a turn at a job, None where it has ended; who had one before can write no more."""

        async def work(connection: Connection) -> Turn | None:
            visited = await self._visited(connection, number)
            rows = await connection.fetch(
                """
                update {jobs} set
                  turn = greatest(turn, (extract(epoch from clock_timestamp()) * 1000
                                        )::bigint) + 1,
                  started_at = coalesce(started_at, now()), is_running = true,
                  deaths = case when is_running and progress >= %(visited)s
                                then deaths + 1 else 0 end,
                  progress = %(visited)s
                where id = %(job)s and ended_at is null
                returning turn, request, failures, report, deaths
                """,
                {"job": number, "visited": visited},
            )
            if not rows:
                return None
            turn, request, failures, report, deaths = rows[0]
            asked, done = stored_request(request), JobReport.model_validate(report or {})
            begun = Turn(number, turn, asked, failures, done)
            if deaths < _MOST_DEATHS:
                return begun
            reason = f"{deaths} workers in a row ended while they worked on it."
            await self._end(connection, begun, TurnEnd("failed", reason=reason), begun.report)
            return None

        return await self.database.run(work)

    async def end_turn(
        self,
        turn: Turn,
        end: TurnEnd,
        *,
        site: SiteReport | None = None,
        page_outcome: str | None = None,
    ) -> bool:
        """Write down what a turn did, if it was the last, and give whether it was."""

        async def work(connection: Connection) -> bool:
            visited = await self._visited(connection, turn.job)
            changes: dict[str, Any] = {"outcome": page_outcome} if page_outcome else {}
            if site:
                changes["site"] = merged_report(turn.report.site, site, visited=visited)
            report = turn.report.model_copy(update=changes)
            if end.outcome is not None:
                return await self._end(connection, turn, end, report)
            # The worker lives, so it has not died of the pages it leaves behind.
            await connection.change(
                "update {crawl_urls} u set attempts = 1 from {crawls} c, {jobs} j"
                " where u.crawl = c.id and c.key = j.key and c.turn = %s and j.id = %s"
                " and u.state = 0 and u.attempts > 1",
                (turn.number, turn.job),
            )
            changed = await connection.change(
                "update {jobs} set is_running = false, deaths = 0, report = %s, reason = %s,"
                " failures = %s where id = %s and turn = %s and ended_at is null",
                (_json(report), end.reason, end.failures, turn.job, turn.number),
            )
            return changed > 0

        return await self.database.run(work)

    async def others_wait(self, kinds: Sequence[JobKind] | None = None) -> bool:
        """Tell whether a job that a worker does waits for one now; `kinds` None for all."""
        statement = (
            "select exists (select from {queue}.procrastinate_jobs where status = 'todo'"
            " and (scheduled_at is null or scheduled_at <= now())"
            " and queue_name = any(coalesce(%s, array[queue_name])))"
        )
        values = (None if kinds is None else list(kinds),)
        rows = await self.database.run(
            lambda each: each.fetch(statement, values, queue=self._place)
        )
        return bool(rows[0][0])

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[bool]:
        """Tell whether no other worker is in such a block; none gets in before its end."""
        async with self.database.holder() as connection:
            yield await connection.try_lock(self.collection, _ALONE_SEED)

    async def repair(self) -> None:
        """End jobs of kinds that are no more, or whose place in the queue has ended or is gone."""
        statement = """
            update {jobs} j set outcome = 'failed', ended_at = now(),
              reason = case when j.kind = any(%s)
                then coalesce(j.reason, 'Its place in the queue was lost.') else %s end
            where j.ended_at is null and (j.kind <> all(%s) or not exists (
              select from {queue}.procrastinate_jobs p
              where p.id = j.id and p.status in ('todo', 'doing')))
            """
        kinds = list(get_args(JobKind))
        values = (kinds, _NO_LONGER_DONE, kinds)
        await self.database.run(lambda each: each.change(statement, values, queue=self._place))

    async def remove_ended(self, kept: timedelta) -> int:
        """Delete jobs that ended longer ago, but for each schedule's latest, and count them."""
        ended = """
            delete from {jobs} where id in (
              select j.id from {jobs} j
              where j.ended_at < now() - %s and (j.schedule is null or exists (
                select from {jobs} l where l.schedule = j.schedule and l.id > j.id))
              order by j.id limit %s)
            returning id
            """
        places = "delete from {queue}.procrastinate_jobs where id = any(%s)"

        async def work(connection: Connection) -> int:
            rows = await connection.fetch(ended, (kept, _REMOVED_AT_ONCE))
            # A trigger of procrastinate's names its tables without a schema.
            await use_queue_schema(connection, is_local=True)
            await connection.change(places, ([number for (number,) in rows],), queue=self._place)
            return len(rows)

        removed = 0
        while last := await self.database.run(work):
            removed += last
        return removed

    async def set_schedule(self, url: str, options: CrawlOptions, every: timedelta) -> Schedule:
        """Visit a site every so often, first as soon as a worker is free; replaces its schedule."""
        if not timedelta(minutes=1) <= every <= _LONGEST_EVERY:
            raise InputError(
                f"The time between two visits is {every}; allowed are 1 minute to 10 years."
            )
        request = _site_request(url, options)
        await self.prepare()
        statement = (
            "insert into {schedules} as s (key, request, every_s, next_at)"
            " values (%s, %s, %s, now())"
            " on conflict (key) do update set request = excluded.request,"
            " every_s = excluded.every_s,"
            " next_at = least(s.next_at, now() + excluded.every_s * interval '1 s')"
            " returning id"
        )
        values = (request.key, _json(request), round(every.total_seconds()))

        async def work(connection: Connection) -> Schedule:
            ((number,),) = await connection.fetch(statement, values)
            return (await self._schedules(connection, number))[0]

        return await self.database.run(work)

    async def remove_schedule(self, number: int) -> None:
        """Visit a site no more of itself, or raise InputError; its pages and jobs stay."""
        statement = "delete from {schedules} where id = %s returning id"
        if not await self.database.fetch(statement, (number,)):
            raise InputError(f"There is no schedule {number}; `webrag jobs schedule` lists them.")

    async def schedules(self) -> list[Schedule]:
        """The sites that are visited again and again, the one due next first."""
        return await self.database.run(self._schedules)

    async def enqueue_due(self) -> int:
        """Enqueue the visits that are due, each once however many workers ask; their number."""

        async def work(connection: Connection) -> int:
            due = (
                "select id, request from {schedules} where next_at <= now()"
                " order by next_at for update skip locked"
            )
            rows = await connection.fetch(due)
            for schedule, request in rows:
                await self._enqueue_one(connection, stored_request(request), schedule)
                await connection.change(
                    # Visits that were missed are made up for once.
                    "update {schedules} set next_at = greatest(next_at, now()"
                    " - every_s * interval '1 s') + every_s * interval '1 s' where id = %s",
                    (schedule,),
                )
            return len(rows)

        return await self.database.run(work)

    async def _enqueue(self, requests: Sequence[JobRequest]) -> list[Job]:
        await self.prepare()

        async def work(connection: Connection) -> list[int]:
            # In one order, so that nobody deadlocks.
            ordered = sorted(requests, key=lambda request: request.key)
            numbers = {
                request.key: await self._enqueue_one(connection, request) for request in ordered
            }
            return [numbers[request.key] for request in requests]

        numbers = await self.database.run(work)
        jobs = {job.id: job for job in await self._select("j.id = any(%s)", (numbers,))}
        return [jobs[number] for number in numbers]

    async def _enqueue_one(
        self, connection: Connection, request: JobRequest, schedule: int | None = None
    ) -> int:
        await connection.take_lock(f"{self.collection}\n{request.key}", _KEY_SEED)
        waiting = "select id from {jobs} where key = %s and ended_at is null"
        for (number,) in await connection.fetch(waiting, (request.key,)):
            return int(number)
        await use_queue_schema(connection, is_local=True)
        number = await self._app.configure_task(
            TASK,
            queue=request.kind,
            lock=request.key,
            priority=priority_of(request),
            connection=connection,
        ).defer_async()
        await connection.change(
            "insert into {jobs} (id, kind, key, request, schedule) values (%s, %s, %s, %s, %s)",
            (number, request.kind, request.key, _json(request), schedule),
        )
        return number

    async def _end(
        self, connection: Connection, turn: Turn, end: TurnEnd, report: JobReport
    ) -> bool:
        rows = await connection.fetch(
            "update {jobs} set is_running = false, outcome = %s, reason = %s, report = %s,"
            " ended_at = now() where id = %s and turn = %s and ended_at is null"
            " returning key, schedule",
            (end.outcome, end.reason, _json(report), turn.job, turn.number),
        )
        if not rows:
            return False
        ((key, schedule),) = rows
        if end.outcome == "done":
            await connection.change("delete from {crawls} where key = %s", (key,))
        await connection.change(
            "update {schedules} set failures = case when %s = 'done' then 0"
            " else failures + 1 end where id = %s",
            (end.outcome, schedule),
        )
        return True

    async def _visited(self, connection: Connection, number: int) -> int:
        statement = (
            "select count(*) from {crawl_urls} u join {crawls} c on c.id = u.crawl"
            " join {jobs} j on j.key = c.key where j.id = %s and u.state in (1, 2)"
        )
        ((visited,),) = await connection.fetch(statement, (number,))
        return int(visited)

    async def _select(self, condition: str, values: tuple[Any, ...]) -> list[Job]:
        statement = (
            """
            select j.id, j.request, j.enqueued_at, j.started_at, j.ended_at, j.reason, j.deaths,
              j.schedule, coalesce(j.report, '{{}}') as report, coalesce(j.outcome,
                case when p.status = 'doing' then 'running' else 'waiting' end) as state,
              case when j.outcome is null and p.status <> 'doing' and p.scheduled_at > now()
                then p.scheduled_at end as retry_at,
              count(u.url) filter (where u.state in (1, 2)) as visited,
              count(u.url) filter (where u.state = 0) as queued
            from {jobs} j left join {queue}.procrastinate_jobs p on p.id = j.id
            left join {crawls} c on c.key = j.key and j.ended_at is null
            left join {crawl_urls} u on u.crawl = c.id
            where j.id in (select j.id from {jobs} j where """
            + condition
            + ") group by j.id, p.id order by j.id desc"
        )
        return await self.database.run(
            lambda each: each.fetch_as(Job, statement, values, queue=self._place)
        )

    async def _schedules(self, connection: Connection, number: int | None = None) -> list[Schedule]:
        statement = (
            "select s.id, s.request, s.every_s * interval '1 s' as every, s.next_at, s.failures,"
            " greatest(clock_timestamp() - s.next_at, interval '0') as overdue,"
            " (select max(j.id) from {jobs} j where j.schedule = s.id) as last_job"
            " from {schedules} s where s.id = coalesce(%s, s.id) order by s.next_at, s.id"
        )
        return await connection.fetch_as(Schedule, statement, (number,))

    async def _version(self, connection: Connection) -> str | None:
        statement = (
            "select value #>> '{{}}' from {corpus_meta} where key = %s and exists"
            " (select from pg_namespace where nspname = %s)"
        )
        rows = await connection.fetch(statement, (_VERSION_KEY, queue_schema(self.collection)))
        return str(rows[0][0]) if rows else None

    async def _install(self, connection: Connection, version: str | None) -> None:
        if version is None:
            await connection.change("create schema {queue}", queue=self._place)
        await use_queue_schema(connection, is_local=True)
        for script in _scripts(version):
            await connection.execute(script.encode())
        await connection.change(
            "insert into {corpus_meta} (key, value) values (%s, %s)"
            " on conflict (key) do update set value = excluded.value",
            (_VERSION_KEY, Jsonb(procrastinate.__version__)),
        )


def _site_request(url: str, options: CrawlOptions) -> JobRequest:
    start = canonical_url(url)
    CrawlScope.of(options, [start])
    return JobRequest(url=start, options=options)


def _json(stored: JobRequest | JobReport) -> Jsonb:
    return Jsonb(stored.model_dump(mode="json"))


def is_behind(stored: str | None, installed: str) -> bool:
    """Tell whether tables of one version of procrastinate need changes; refuse a newer one's."""
    if stored is None or _release(stored) < _release(installed):
        return True
    if _release(stored) > _release(installed):
        raise ConfigurationError(
            f"The job queue was made by procrastinate {stored}; {installed} is installed here.",
            hint=f"Install it with `pip install 'procrastinate>={stored}'`, on every machine.",
        )
    return False


def _scripts(version: str | None) -> list[str]:
    if version is None:
        return [SchemaManager.get_schema()]
    found = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    return [path.read_text("utf-8") for path in found if _release(path.name) > _release(version)]


def _release(version: str) -> Version:
    return Version(Version(version.partition("_")[0]).base_version)
