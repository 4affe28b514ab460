"""Does jobs, turn by turn, until it is stopped; what pages and crawls need is others' business."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, NamedTuple

import procrastinate
from procrastinate.exceptions import ConnectorException, JobAborted
from procrastinate.job_context import AbortReason, JobContext
from procrastinate.jobs import Job as QueuedJob
from procrastinate.jobs import Status
from procrastinate.manager import JobManager
from procrastinate.retry import BaseRetryStrategy, RetryDecision

from webrag.concurrency import ended, settled
from webrag.corpus.acquirer import PageAcquirer
from webrag.crawling.crawl import CrawlTurn, SiteCrawler, is_no_answer
from webrag.crawling.queue import TurnLostError
from webrag.crawling.report import SiteReport
from webrag.errors import ConfigurationError, ProviderError, StorageError, WebRAGError
from webrag.jobs.models import WorkerOptions
from webrag.jobs.queue import TASK, JobQueue, Turn, TurnEnd, priority_of, use_queue_schema
from webrag.postgres.database import Connection
from webrag.redaction import redacted_failure

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 60
_PAUSE_FACTOR: Final = 4
_MOST_FAILURES: Final = 5
_LOST_PAUSE_S: Final = 10
_MOST_INTERRUPTIONS: Final = 5
_TIDIED_EVERY_S: Final = 3600
_MOST_REASON_CHARS: Final = 300
_RESTART_PAUSE_S: Final = 3.0
# Of a pool of its own: heartbeats, looks for jobs, and what becomes of them.
_CONNECTIONS: Final = 3


def decide_after_visit(report: SiteReport, failures: int) -> TurnEnd:
    """Decide what follows a turn at a site that went as it should, or met a silent site."""
    if report.ended == "paused":
        return TurnEnd()
    if report.ended != "unreachable":
        return TurnEnd("done")
    if report.obtained:
        failures = 0
    return _again_or_failed("The site stopped answering.", failures)


def decide_after_failure(error: WebRAGError, failures: int) -> TurnEnd:
    """Decide what follows a turn that failed: another one after a pause where that may help."""
    # Settings are a worker's own: those of another may fit, or of this one when it starts anew.
    may_pass = (ConfigurationError, ProviderError, StorageError)
    if isinstance(error, may_pass) or is_no_answer(error):
        return _again_or_failed(str(error), failures)
    return TurnEnd("failed", reason=str(error))


def decide_after_defect(error: Exception, failures: int) -> TurnEnd:
    """Decide what follows an error of WebRAG itself: it may lie in a single page."""
    said = redacted_failure(f"{type(error).__name__}: {error}").replace("\0", "")
    reason = "An unexpected error, which the worker's log has whole: " + said[:_MOST_REASON_CHARS]
    return _again_or_failed(reason, failures)


def _again_or_failed(reason: str, failures: int) -> TurnEnd:
    failures += 1
    if failures >= _MOST_FAILURES:
        return TurnEnd("failed", failures=failures, reason=reason)
    return TurnEnd(None, _FIRST_PAUSE_S * _PAUSE_FACTOR ** (failures - 1), failures, reason)


class _TurnEndedError(Exception):
    """Ends a turn; a job that goes on gets another one, any other has its own record."""

    def __init__(self, decision: RetryDecision | None) -> None:
        super().__init__()
        self.decision = decision


class _Turns(BaseRetryStrategy):
    """Puts a job back into the queue unless it has failed for good."""

    def get_retry_decision(self, *, exception: BaseException, job: QueuedJob) -> Any:
        del job
        if isinstance(exception, _TurnEndedError):
            return exception.decision
        # A worker that stops, or one that could not write down what its turn came to.
        pause_s = 0 if isinstance(exception, asyncio.CancelledError) else _LOST_PAUSE_S
        return RetryDecision(retry_in={"seconds": pause_s})


_IF_MINE: Final = """
with mine as (
  select id from procrastinate_jobs
  where id = %(job_id)s and worker_id = %(worker_id)s and status = 'doing' for update)
"""

_FINISH: Final = f"""{_IF_MINE}
select procrastinate_finish_job_v1(mine.id, %(status)s, false) from mine"""

_RETRY: Final = f"""{_IF_MINE}
select procrastinate_retry_job_v2(mine.id, %(retry_at)s, %(priority)s, null, null) from mine"""


class _OwnJobs(JobManager):
    """Ends and retries only what this worker still has: others may have taken it over.

    Both in one statement, which procrastinate's own methods are not: with a look before each of
    them `benchmarks/workers.py kills --kills 40` lost a site of six, with these none. A lost
    connection is waited out: a job that is done and not told so would be done again.
    """

    async def finish_job(self, job: QueuedJob, status: Status, delete_job: bool) -> None:
        del delete_job
        await self._say(_FINISH, job, status=status.value)

    async def retry_job(
        self,
        job: QueuedJob,
        retry_at: Any = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        del queue, lock
        await self._say(_RETRY, job, retry_at=retry_at, priority=priority)

    async def _say(self, query: Any, job: QueuedJob, **values: Any) -> None:
        for pause_s in (0.2, 1.0, 3.0, 10.0, None):
            try:
                await self.connector.execute_query_all_async(
                    query, job_id=job.id, worker_id=job.worker_id, **values
                )
            except ConnectorException:
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)
            else:
                return


class Tools(NamedTuple):
    """The tools of jobs, fit for the collection's model."""

    crawler: SiteCrawler
    acquirer: PageAcquirer


@dataclass(eq=False)
class JobWorker:
    """Works on the jobs of one collection, several at once, with tools asked for at each turn."""

    queue: JobQueue
    tools: Callable[[], Awaitable[Tools]]
    options: WorkerOptions
    _: KW_ONLY
    on_turn: Callable[[Turn, TurnEnd], None] | None = None
    _is_stopping: bool = field(default=False, init=False)
    _turns: int = field(default=0, init=False)
    _tidies_at: float = field(default=0.0, init=False)

    async def run(self, *, until_empty: bool = False) -> None:
        """Work until cancelled, or until no job waits; pages under way get `grace_s` to finish.

        It fails where the queue cannot be reached at the start, or, `until_empty`, later on, or
        after five failures in a row without a turn in between.
        """
        await self.queue.prepare()
        self._is_stopping = False
        interruptions = turns = 0
        while True:
            error: BaseException | None
            try:
                async with self._engine() as app:
                    await self._look_after(app)
                    error = await self._work(app, until_empty=until_empty)
            except (ConnectorException, StorageError) as lost:
                if until_empty:
                    raise StorageError(f"The job queue was lost: {_said(lost)}") from lost
                error = lost
                _log.warning("The job queue cannot be reached: %s", _said(lost))
            is_same = error is not None and turns == self._turns
            interruptions, turns = interruptions + 1 if is_same else 0, self._turns
            if until_empty and error is not None and interruptions >= _MOST_INTERRUPTIONS:
                raise StorageError(
                    f"The job queue failed {interruptions} times in a row: {_said(error)}",
                    hint="The jobs wait; `webrag corpus check` checks the database.",
                ) from error
            if until_empty and not await self.queue.others_wait(self.options.queues):
                return
            if until_empty:
                # What waits may be for another worker to give up first.
                await asyncio.sleep(min(self.options.poll_s, _RESTART_PAUSE_S))
            else:
                _log.warning("The connection to the job queue was lost; trying again.")
                await asyncio.sleep(_RESTART_PAUSE_S)

    @asynccontextmanager
    async def _engine(self) -> AsyncIterator[procrastinate.App]:

        async def configure(connection: Connection) -> None:
            await use_queue_schema(connection, is_local=False)
            await connection.commit()

        pool = self.queue.database.make_pool(configure, max_size=_CONNECTIONS)
        app = procrastinate.App(connector=procrastinate.PsycopgConnector())
        app.job_manager = _OwnJobs(app.connector)
        app.task(name=TASK, pass_context=True, retry=_Turns())(self._take_turn)
        async with pool, app.open_async(pool):
            yield app

    async def _work(self, app: procrastinate.App, *, until_empty: bool) -> BaseException | None:
        options = self.options
        working = asyncio.create_task(
            app.run_worker_async(
                queues=None if options.queues is None else list(options.queues),  # type: ignore[arg-type]
                concurrency=options.concurrency,
                wait=not until_empty,
                fetch_job_polling_interval=options.poll_s,
                abort_job_polling_interval=options.poll_s,
                shutdown_graceful_timeout=options.grace_s,
                install_signal_handlers=False,
                update_heartbeat_interval=options.heartbeat_s,
                stalled_worker_timeout=options.stalled_s,
            )
        )
        looking = asyncio.create_task(self._keep_looking_after(app))
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError:
            self._is_stopping = True
            raise
        finally:
            await ended([looking])
            working.cancel()  # which lets the jobs under way come to their end
            await settled([working])
        error = None if working.cancelled() else working.exception()
        if error is not None:
            _log.warning("The worker was interrupted: %s", _said(error))
        return error

    async def _keep_looking_after(self, app: procrastinate.App) -> None:
        while True:
            await asyncio.sleep(self.options.stalled_s / 4)
            try:
                await self._look_after(app)
            except (ConnectorException, StorageError) as error:
                _log.warning(
                    "Jobs of workers that are gone could not be looked for: %s", _said(error)
                )

    async def _look_after(self, app: procrastinate.App) -> None:
        """Take jobs of dead workers back into the queue, put in what is due, and tidy up."""
        manager = JobManager(app.connector)
        async with self.queue.alone() as is_alone:
            if is_alone:
                for job in await manager.get_stalled_jobs(
                    seconds_since_heartbeat=self.options.stalled_s
                ):
                    _log.warning("Job %s is taken over: its worker is gone.", job.id)
                    await manager.retry_job(job)
                if time.monotonic() >= self._tidies_at:
                    self._tidies_at = time.monotonic() + _TIDIED_EVERY_S
                    if removed := await self.queue.remove_ended(self.options.kept):
                        _log.info("Removed %d jobs that ended long ago.", removed)
        await self.queue.repair()
        await self.queue.enqueue_due()

    async def _take_turn(self, context: JobContext) -> None:
        assert context.job.id is not None
        turn = await self.queue.begin_turn(context.job.id)
        if turn is None:
            return
        try:
            end = await self._done(turn)
        except TurnLostError:
            _log.warning("Job %d was taken over by another worker.", turn.job)
            return
        except asyncio.CancelledError:
            if context.abort_reason() is AbortReason.USER_REQUEST:
                raise JobAborted from None
            await asyncio.shield(self.queue.end_turn(turn, TurnEnd(failures=turn.failures)))
            raise
        self._turns += 1
        if self.on_turn is not None:
            self.on_turn(turn, end)
        if end.outcome == "failed":
            raise _TurnEndedError(None)
        if end.outcome is None:
            raise _TurnEndedError(
                RetryDecision(retry_in={"seconds": end.pause_s}, priority=priority_of(turn.request))
            )

    async def _done(self, turn: Turn) -> TurnEnd:
        site: SiteReport | None = None
        page_outcome: str | None = None
        end = TurnEnd("done")
        try:
            tools = await self.tools()
            if turn.request.options is None:
                page_outcome = await self._visit_page(turn, tools.acquirer)
            else:
                async with self._watched() as is_over:
                    site = await tools.crawler.crawl(
                        turn.request.url,
                        turn.request.options,
                        turn=CrawlTurn(turn.number, is_over, page_s=self.options.page_s),
                    )
                end = decide_after_visit(site, turn.failures)
        except TurnLostError:
            raise
        except WebRAGError as error:
            end = decide_after_failure(error, turn.failures)
        except Exception as error:  # noqa: BLE001 - the job says what its worker met
            _log.exception("Job %d met an error that nobody foresaw.", turn.job)
            end = decide_after_defect(error, turn.failures)
        await self.queue.end_turn(turn, end, site=site, page_outcome=page_outcome)
        return end

    async def _visit_page(self, turn: Turn, acquirer: PageAcquirer) -> str:
        request = turn.request
        async with acquirer.given_up_after(self.options.page_s, request.url):
            page = await acquirer.acquire(
                request.url, refresh=request.refresh, version=request.version
            )
        return page.outcome

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[Callable[[], bool]]:
        """Watch whether the turn is over: others wait, or the worker is to stop."""
        is_over = False

        async def watch() -> None:
            nonlocal is_over
            pause_s = self.options.turn_s
            try:
                while not is_over:
                    await asyncio.sleep(pause_s)
                    is_over = await self.queue.others_wait(self.options.queues)
                    pause_s = self.options.poll_s
            except StorageError as error:
                _log.info("Nobody knows whether other jobs wait: %s", error)

        watching = asyncio.create_task(watch())
        try:
            yield lambda: is_over or self._is_stopping
        finally:
            await ended([watching])


def _said(error: BaseException) -> str:
    """Give the database's words, which procrastinate hides behind a sentence of its own."""
    return " ".join(str(error.__cause__ or error).split())
