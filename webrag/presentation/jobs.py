"""Jobs and schedules as text."""

from collections.abc import Sequence
from datetime import timedelta

from webrag.argument_checks import shown_moment
from webrag.jobs.models import Job, Schedule
from webrag.presentation.reports import counted, format_site
from webrag.presentation.untrusted import one_line


def format_jobs(jobs: Sequence[Job]) -> str:
    """One line for each job."""
    if not jobs:
        return "There are no jobs: `webrag ingest URL --queue` makes one."
    lines = [f"- {job.id}: {_subject(job)}\n  ({_state(job)})" for job in jobs]
    return "\n".join(["[JOBS]", *lines])


def format_job(job: Job) -> str:
    """All about one job."""
    lines = [
        f"[JOB {job.id}]",
        f"{job.request.kind.capitalize()}: {_subject(job)}",
        f"State: {_state(job)}",
        f"Enqueued: {shown_moment(job.enqueued_at)}",
    ]
    lines += [f"Begun: {shown_moment(job.started_at)}"] if job.started_at else []
    lines += [f"Ended: {shown_moment(job.ended_at)}"] if job.ended_at else []
    lines += [f"Schedule: {job.schedule}"] if job.schedule is not None else []
    if job.deaths:
        lines.append(f"Workers that ended while they worked on it: {job.deaths} in a row")
    if job.report.outcome:
        lines.append(f"The page was {job.report.outcome}.")
    if job.report.site:
        lines += ["", format_site(job.report.site)]
    return "\n".join(lines)


def format_schedules(schedules: Sequence[Schedule]) -> str:
    """One line for each schedule: what is due, overdue and failing."""
    if not schedules:
        return (
            "No site is visited again by itself: `webrag jobs schedule SITE --every 7d` does that."
        )
    return "\n".join(["[SCHEDULES]", *map(_schedule, schedules)])


def format_span(span: timedelta) -> str:
    """A time span in its largest whole unit, as the command line takes it: `7d`."""
    seconds = round(span.total_seconds())
    for unit, size in (("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _subject(job: Job) -> str:
    return one_line(job.request.url) or "work that an earlier version enqueued"


def _state(job: Job) -> str:
    said: list[str] = [job.state]
    if job.request.options is not None and not job.ended_at:
        said.append(f"{counted(job.visited, 'page')} visited, {job.queued:,} known and waiting")
    if job.report.site is not None and job.ended_at:
        said.append(f"{counted(job.report.site.obtained + job.report.site.before, 'page')} visited")
    if job.retry_at:
        said.append(f"tried again at {shown_moment(job.retry_at)}")
    if job.reason:
        said.append(one_line(job.reason))
    return "; ".join(said)


def _schedule(schedule: Schedule) -> str:
    said = [f"every {format_span(schedule.every)}"]
    if schedule.overdue > timedelta(minutes=5):
        minutes = schedule.overdue.total_seconds() / 60
        late = f"{minutes / 60:.0f} hours" if minutes >= 120 else f"{minutes:.0f} minutes"
        said.append(f"overdue for {late}: no worker has begun it")
    elif schedule.overdue:
        said.append("due now")
    else:
        said.append(f"due at {shown_moment(schedule.next_at)}")
    if schedule.failures:
        said.append(f"failed {counted(schedule.failures, 'time')} in a row")
    if schedule.last_job is not None:
        said.append(f"last visit: job {schedule.last_job}")
    return f"- {schedule.id}: {schedule.request.url}\n  ({'; '.join(said)})"
