"""Jobs as their users see them, and how the reports of their turns add up. No I/O."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from webrag.crawling.report import CrawlOptions, SiteReport
from webrag.frozen import FrozenModel, LenientModel

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]

JobKind = Literal["page", "site"]

_SHOWN_FAILURES = 20


class JobRequest(FrozenModel):
    """The task of a job: the pages of a site, which have options, or a single page.

    `refresh` and a library's version are for a single page. Without an address it is work that only
    earlier versions did.
    """

    url: str = ""
    options: CrawlOptions | None = None
    refresh: bool = False
    version: str = ""

    @property
    def kind(self) -> JobKind:
        """The queue it waits in."""
        return "page" if self.options is None else "site"

    @property
    def key(self) -> str:
        """Equal for requests that one job at a time may work on; of sites, the key of the crawl."""
        if self.options is not None:
            return self.options.key(self.url)
        return f"page {self.url}" + (f" of {self.version}" if self.version else "")


def stored_request(row: Any) -> JobRequest:
    """Read a request as it is stored, without fields that only earlier versions had."""
    return JobRequest.model_validate(row, extra="ignore")


_StoredRequest = Annotated[JobRequest, BeforeValidator(stored_request)]


class JobReport(LenientModel):
    """The work of a job so far: of a site in all its turns, or what became of a page."""

    site: SiteReport | None = None
    outcome: str | None = None


class Job(FrozenModel):
    """One job; `waiting` it is for a worker, for its next turn or for a site that is in trouble.

    The reason says why it failed or what its last turn met; it is tried again at `retry_at`, or as
    soon as a worker is free. Deaths are of workers in a row. Of its site pages are `visited`, or
    known and `queued`.
    """

    id: int
    request: _StoredRequest
    state: JobState
    enqueued_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    retry_at: datetime | None = None
    reason: str | None = None
    deaths: int = 0
    visited: int = 0
    queued: int = 0
    schedule: int | None = None
    report: JobReport = Field(default_factory=JobReport)


class Schedule(FrozenModel):
    """A site that is visited again and again; `overdue` is what no worker has enqueued in time."""

    id: int
    request: _StoredRequest
    every: timedelta
    next_at: datetime
    overdue: timedelta = timedelta()
    failures: int = 0
    last_job: int | None = None


class WorkerOptions(FrozenModel):
    """Limits of a worker, in seconds; no `queues` are all kinds of jobs.

    A job lets others have a turn after `turn_s`, if any wait; its page is given up after `page_s`.
    Jobs of a worker without a sign of life for `stalled_s` are taken over, and can be seen for
    `kept` after they have ended; pages under way get `grace_s` when it is asked to stop.
    """

    concurrency: int = Field(default=4, ge=1, le=64)
    queues: tuple[JobKind, ...] | None = None
    turn_s: float = Field(default=30.0, gt=0)
    page_s: float = Field(default=300.0, gt=0)
    heartbeat_s: float = Field(default=10.0, gt=0)
    stalled_s: float = Field(default=45.0, gt=0)
    grace_s: float = Field(default=20.0, ge=0)
    poll_s: float = Field(default=5.0, gt=0)
    kept: timedelta = Field(default=timedelta(days=30), ge=timedelta(0))


def merged_report(before: SiteReport | None, now: SiteReport, *, visited: int) -> SiteReport:
    """The report of all turns."""
    turns = [now] if before is None else [before, now]
    names = ("pages", "failed", "skipped")
    totals = {
        name: sum((Counter(getattr(turn, name)) for turn in turns), Counter()) for name in names
    }
    failures = {url: why for turn in turns for url, why in turn.failures.items()}
    return now.model_copy(
        update={
            **{name: dict(counts.most_common()) for name, counts in totals.items()},
            "failures": dict(list(failures.items())[:_SHOWN_FAILURES]),
            "degraded": tuple(dict.fromkeys(note for turn in turns for note in turn.degraded)),
            "not_pages": sum(turn.not_pages for turn in turns),
            "chunks_embedded": sum(turn.chunks_embedded for turn in turns),
            "before": max(0, visited - totals["pages"].total() - totals["failed"].total()),
            "resumed": False,
            "seconds": round(sum(turn.seconds for turn in turns), 3),
        }
    )
