"""`webrag worker`: do jobs."""

import logging
from typing import TYPE_CHECKING, Any, get_args

import click

from webrag.cli.options import RunOptions, parse_age, run_options, with_settings
from webrag.cli.output import shown
from webrag.cli.running import run

if TYPE_CHECKING:
    from datetime import timedelta

    from webrag.jobs.models import JobKind
    from webrag.jobs.queue import Turn
    from webrag.jobs.worker import TurnEnd
    from webrag.settings import Settings


def parse_queues(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> "tuple[JobKind, ...] | None":
    """Give the kinds of jobs of an option such as `page,site`."""
    if value is None:
        return None
    from webrag.jobs.models import JobKind

    names = [name.strip() for name in value.split(",")]
    if unknown := [name for name in names if name not in get_args(JobKind)]:
        known = ", ".join(get_args(JobKind))
        raise click.BadParameter(f"{unknown[0]!r} is no kind of job; allowed are {known}.")
    return tuple(dict.fromkeys(names))  # type: ignore[arg-type]  # checked above


@with_settings
@click.command("worker", short_help="Do jobs that others have enqueued.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Jobs at once; each site is asked for one page after the other all the same.",
)
@click.option(
    "--queues",
    metavar="KIND,...",
    callback=parse_queues,
    help="Only jobs of these kinds: page, site, citation, embedding.  [default: all]",
)
@click.option(
    "--keep",
    metavar="AGE",
    callback=parse_age,
    help="How long jobs can be seen after they have ended.  [default: 30d]",
)
@click.option("--until-empty", is_flag=True, help="End as soon as no job waits.")
@click.pass_context
def worker_command(
    ctx: click.Context,
    /,
    concurrency: int,
    queues: "tuple[JobKind, ...] | None",
    keep: "timedelta | None",
    until_empty: bool,
) -> None:
    """Do what --queue of ingest, verify and reindex, and `webrag schedule` ask for.

    Start as many as you like, on any machine with the same WEBRAG_DATABASE_URL. Ctrl-C finishes the
    pages under way; what a worker leaves behind, others take over.

    Needs the extra `workers`, as docs/guide/install.md says.
    """
    chosen: dict[str, Any] = {"concurrency": concurrency, "queues": queues}
    chosen |= {} if keep is None else {"kept": keep}
    run(_work(ctx.obj, chosen, until_empty, run_options(ctx)))


async def _work(
    settings: "Settings", chosen: dict[str, Any], until_empty: bool, options: RunOptions
) -> None:
    from webrag.app import WebRAG
    from webrag.wiring.jobs import require_workers

    require_workers()
    from webrag.jobs.models import WorkerOptions

    def tell(turn: "Turn", end: "TurnEnd") -> None:
        if not options.quiet:
            said = end.outcome or "waits for its next turn"
            why = f": {end.reason}" if end.reason else ""
            click.echo(shown(f"Job {turn.job} ({turn.request.subject}) {said}{why}"), err=True)

    # What became of a job is told below.
    logging.getLogger("procrastinate.worker").setLevel(logging.CRITICAL)
    one_at_a_time = settings.fetching.model_copy(update={"host_concurrency": 1})
    settings = settings.model_copy(update={"fetching": one_at_a_time})
    # Anybody who may reach the queue can ask for a page.
    async with WebRAG(settings, is_own_user=False) as rag:
        if not options.quiet:
            click.echo(f"Working on the jobs of {settings.collection}; Ctrl-C ends it.", err=True)
        await rag.work(
            WorkerOptions(**chosen),
            until_empty=until_empty,
            on_turn=tell,
        )
