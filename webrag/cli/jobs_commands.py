"""`webrag jobs`: what workers do, did and will do."""

import logging
from typing import TYPE_CHECKING, Any

import click

from webrag.cli.ingest_command import crawl_options, given_crawl_options
from webrag.cli.options import addresses, parse_age, run_options, with_settings
from webrag.cli.output import print_either, print_jobs
from webrag.cli.running import run, run_on_jobs
from webrag.errors import InputError
from webrag.ingestion.characters import normalize_characters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from webrag.jobs.models import Job, JobKind, Schedule
    from webrag.jobs.queue import JobQueue, Turn, TurnEnd


_KINDS: "Sequence[JobKind]" = ("page", "site")


@click.group("jobs", short_help="Do jobs, look at them, and visit sites again and again.")
def jobs_command() -> None:
    """Look after what `webrag ingest --queue` and schedules have enqueued.

    Needs the extra `workers`, as docs/guide/install.md says.
    """


@jobs_command.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--unfinished", is_flag=True, help="Only jobs that wait or run.")
@click.option("--kind", type=click.Choice(_KINDS), help="Only jobs of this kind.")
def list_command(
    ctx: click.Context, /, limit: int, unfinished: bool, kind: "JobKind | None"
) -> None:
    """List the jobs, newest first."""
    jobs = run_on_jobs(
        ctx.obj, lambda queue: queue.jobs(limit=limit, unfinished=unfinished, kind=kind)
    )
    print_jobs(ctx, jobs)


def _job_command(name: str, help: str, method: str = "") -> None:
    @jobs_command.command(name, help=help)
    @click.argument("job", type=int)
    def job_command(ctx: click.Context, /, job: int) -> None:
        from webrag.presentation.jobs import format_job

        found: Job = run_on_jobs(ctx.obj, lambda queue: getattr(queue, method or name)(job))
        print_either(ctx, found, format_job(found))


_job_command("show", "Say all about one job.", "job")
_job_command("cancel", "Stop a job. Stored pages stay, and the same request goes on from there.")
_job_command("retry", "Enqueue a failed or cancelled job again. It goes on where it was.")


@jobs_command.command("schedule", short_help="Visit a site again and again.")
@click.argument("site", required=False, callback=addresses)
@click.option("--every", metavar="AGE", callback=parse_age, help="Time between two visits: 7d.")
@click.option("--remove", type=int, metavar="NUMBER", help="Visit this schedule's site no more.")
@crawl_options
def schedule_command(
    ctx: click.Context,
    /,
    site: str | None,
    every: "timedelta | None",
    remove: int | None,
    **crawl: Any,
) -> None:
    """Let workers visit a SITE every so often: only what has changed is stored again.

    Without SITE: list the schedules.

    Needs the extra `workers`, as docs/guide/install.md says.
    """
    chosen = given_crawl_options(crawl)
    if (site is None) != (every is None) or (remove is not None and site is not None):
        raise InputError("Give SITE with --every AGE, or --remove NUMBER, or nothing for the list.")
    if site is None and chosen:
        raise InputError("Options of a crawl need a SITE to visit.")

    async def work(queue: "JobQueue") -> "list[Schedule]":
        from webrag.crawling.report import CrawlOptions

        if remove is not None:
            await queue.remove_schedule(remove)
        if site is not None and every is not None:
            # The site is asked about every page, which costs little where nothing has changed.
            options = CrawlOptions(**chosen, refresh=True)
            return [await queue.set_schedule(site, options, every)]
        return await queue.schedules()

    from webrag.presentation.jobs import format_schedules

    schedules = run_on_jobs(ctx.obj, work)
    print_either(ctx, {"schedules": schedules}, format_schedules(schedules))


@jobs_command.command("work", short_help="Do jobs that others have enqueued.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Jobs at once; each site is asked for one page after the other all the same.",
)
@click.option(
    "--kind", "kinds", type=click.Choice(_KINDS), multiple=True, help="Only these jobs. Repeatable."
)
@click.option(
    "--keep",
    metavar="AGE",
    callback=parse_age,
    help="How long jobs can be seen after they have ended.  [default: 30d]",
)
@click.option("--until-empty", is_flag=True, help="End as soon as no job waits.")
def work_command(
    ctx: click.Context,
    /,
    concurrency: int,
    kinds: "tuple[JobKind, ...]",
    keep: "timedelta | None",
    until_empty: bool,
) -> None:
    """Do what `webrag ingest --queue` and `webrag jobs schedule` ask for.

    Start as many as you like, on any machine with the same WEBRAG_DATABASE_URL. Ctrl-C finishes the
    pages under way; what a worker leaves behind, others take over.

    Needs the extra `workers`, as docs/guide/install.md says.
    """
    from webrag.wiring.components import require_workers

    require_workers()
    from webrag.jobs.models import WorkerOptions

    options, settings = run_options(ctx), ctx.obj
    chosen: dict[str, Any] = {"concurrency": concurrency, "queues": kinds or None}
    chosen |= {} if keep is None else {"kept": keep}

    def tell(turn: "Turn", end: "TurnEnd") -> None:
        if not options.quiet:
            said = end.outcome or "waits for its next turn"
            why = f": {end.reason}" if end.reason else ""
            line = f"Job {turn.job} ({turn.request.url}) {said}{why}"
            click.echo(normalize_characters(line), err=True)

    # What became of a job is told below.
    logging.getLogger("procrastinate.worker").setLevel(logging.CRITICAL)
    one_at_a_time = settings.fetching.model_copy(update={"host_concurrency": 1})
    settings = settings.model_copy(update={"fetching": one_at_a_time})

    async def work() -> None:
        from webrag.app import WebRAG

        # Anybody who may reach the queue can ask for a page.
        async with WebRAG(settings, is_own_user=False) as rag:
            if not options.quiet:
                said = f"Working on the jobs of {settings.collection}; Ctrl-C ends it."
                click.echo(said, err=True)
            await rag.work(WorkerOptions(**chosen), until_empty=until_empty, on_turn=tell)

    run(work())


for _command in jobs_command.commands.values():
    with_settings(_command, has_json=_command is not work_command)
