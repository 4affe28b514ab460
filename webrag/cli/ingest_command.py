"""`webrag ingest`: pages by name, or a whole site."""

from typing import TYPE_CHECKING, Any, TypeVar

import click

from webrag.cli.options import RunOptions, json_option, run_options, with_options, with_settings
from webrag.cli.output import error_value, print_brief, print_jobs, print_json, shown
from webrag.cli.progress import crawl_progress, page_progress
from webrag.cli.running import run
from webrag.cli.words import typed_addresses
from webrag.errors import InputError, PageGoneError, WebRAGError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webrag.app import IngestReport
    from webrag.corpus.models import AcquiredPage
    from webrag.crawling.report import CrawlOptions, SiteReport
    from webrag.jobs.models import Job
    from webrag.settings import Settings

_CRAWL_OPTIONS = ("max_pages", "depth", "scope", "include", "exclude")

_Command = TypeVar("_Command", bound="Callable[..., Any]")


def crawl_options(command: _Command) -> _Command:
    """Options for how far a crawl goes, the same wherever one is asked for."""
    return with_options(
        click.option(
            "--max-pages",
            type=click.IntRange(min=1, max=1_000_000),
            help="Follow links until so many pages were visited.  [default: 500]",
        ),
        click.option(
            "--depth", type=click.IntRange(min=0), help="Links from URL followed at most."
        ),
        click.option(
            "--scope",
            type=click.Choice(["folder", "site"]),
            help="Stay below the folder of URL, or on its host.  [default: folder]",
        ),
        click.option(
            "--include",
            metavar="PATTERN",
            multiple=True,
            help="Only paths like /guide/**. Repeatable.",
        ),
        click.option(
            "--exclude", metavar="PATTERN", multiple=True, help="No paths like *.pdf. Repeatable."
        ),
    )(command)


def given_crawl_options(values: dict[str, Any]) -> dict[str, Any]:
    """Those of the options of `crawl_options` that the user gave, as `CrawlOptions` takes them."""
    return {name: values[name] for name in _CRAWL_OPTIONS if values[name] not in (None, ())}


@with_settings
@click.command("ingest", short_help="Fetch and store pages, a site, files, folders.")
@click.argument("urls", metavar="URL|PATH...", nargs=-1, required=True, callback=typed_addresses)
@crawl_options
@click.option("--refresh", is_flag=True, help="Ask the site again even about fresh pages.")
@click.option(
    "--version",
    metavar="VERSION",
    help="Of the library that the pages are about, as 3.2; else read from addresses and pages.",
)
@click.option("--queue", is_flag=True, help="Let `webrag jobs work` do it; needs webrag[workers].")
@click.option(
    "--watch", is_flag=True, help="Go on, and read files again when they change; Ctrl-C ends it."
)
@json_option
@click.pass_context
def ingest_command(
    ctx: click.Context,
    /,
    urls: tuple[str, ...],
    refresh: bool,
    version: str | None,
    queue: bool,
    watch: bool,
    **crawl: Any,
) -> None:
    """Fetch and index every URL, file, and file of a folder, each completely or not at all.

    Of a folder what .gitignore names, hidden files and kinds that hold no text are left out; the
    next time only files that were changed are read. With --watch that time is whenever one changes.

    With --max-pages, --depth, --scope, --include or --exclude, URL is where a crawl of its site
    starts. Repeat an interrupted crawl to go on where it was. In a PATTERN, * stands for any
    characters within one folder or file name, ** for any folders.

    Exit code 1 when a named page could not be obtained, or when a folder or crawl gave nothing or
    a site stopped answering.
    """
    from webrag.ingestion.files.naming import named_address
    from webrag.ingestion.versions import checked_version

    label = None if version is None else checked_version(version)
    for url in urls:
        named_address(url)  # refused before anything is started for it
    chosen = given_crawl_options(crawl)
    if chosen and len(urls) > 1:
        raise InputError(
            f"A crawl starts from one page, and {len(urls)} were given; run one crawl for each."
        )
    if watch:
        _check_watch(ctx, chosen, refresh=refresh, queue=queue)
        run(_watch(ctx.obj, urls, label, run_options(ctx)))
        return
    if chosen and label:
        chosen |= {"version": label}
    if queue:
        _enqueue(ctx, urls, chosen, refresh, label)
        return
    if not chosen:
        _ingest_pages(ctx, urls, refresh, label)
        return
    _ingest_site(ctx, urls[0], chosen | {"refresh": refresh})


def _check_watch(ctx: click.Context, chosen: dict[str, Any], *, refresh: bool, queue: bool) -> None:
    named = {"--queue": queue, "--refresh": refresh, "--json": run_options(ctx).json}
    named |= {f"--{name.replace('_', '-')}": True for name in chosen}
    excluded = next((name for name, is_given in named.items() if is_given), None)
    if excluded is not None:
        raise InputError(f"--watch reads files and folders without end; leave {excluded} out.")


async def _watch(
    settings: "Settings", paths: tuple[str, ...], version: str | None, options: RunOptions
) -> None:
    from contextlib import aclosing

    from webrag.app import WebRAG

    is_watching = False

    def tell(url: str, outcome: "AcquiredPage | WebRAGError") -> None:
        line = _change(url, outcome)
        if is_watching and line and not options.quiet:
            click.echo(shown(line))

    async with (
        WebRAG(settings) as rag,
        aclosing(rag.watch(paths, version=version, on_page=tell)) as reports,
    ):
        async for report in reports:
            if not is_watching:
                _print_report(report)
                if not options.quiet:
                    click.echo("Watching for changes; Ctrl-C ends it.", err=True)
            is_watching = True


def _change(url: str, outcome: "AcquiredPage | WebRAGError") -> str:
    """One line about a file that changed; "" where its text is what it was."""
    from webrag.presentation.reports import counted

    if isinstance(outcome, PageGoneError):
        return f"gone     {url}"
    if isinstance(outcome, WebRAGError):
        return f"failed   {url}: {outcome}"
    word = {"indexed": "added", "updated": "updated"}.get(outcome.outcome)
    return f"{word:<8} {outcome.url} ({counted(outcome.chunk_count, 'chunk')})" if word else ""


def _enqueue(
    ctx: click.Context,
    urls: tuple[str, ...],
    chosen: dict[str, Any],
    refresh: bool,
    version: str | None,
) -> None:
    from webrag.wiring.jobs import require_workers

    require_workers()
    jobs = run(_enqueued(ctx.obj, urls, chosen, refresh, version))
    print_jobs(jobs, is_json=run_options(ctx).json)


async def _enqueued(
    settings: "Settings",
    urls: tuple[str, ...],
    chosen: dict[str, Any],
    refresh: bool,
    version: str | None,
) -> "list[Job]":
    from webrag.app import WebRAG
    from webrag.crawling.report import CrawlOptions

    async with WebRAG(settings) as rag:
        if chosen:
            options = CrawlOptions(**chosen, refresh=refresh)
            return [await rag.enqueue_site(urls[0], options)]
        return await rag.enqueue(urls, refresh=refresh, version=version)


def _ingest_pages(
    ctx: click.Context, urls: tuple[str, ...], refresh: bool, version: str | None
) -> None:
    from webrag.ingestion.files.naming import named_address

    options = run_options(ctx)
    report, hints = run(_fetch_pages(ctx.obj, urls, refresh, version, options))
    if options.json:
        value = report.model_dump(mode="json")
        if report.failed:
            hint = " ".join(hints) or None
            value["error"] = error_value("FetchError", _failure(report), hint=hint)
        print_json(value)
    else:
        _print_report(report)
        for hint in hints:
            click.echo(shown(hint), err=True)
        _suggest_crawl(report, options)
    # Files of a folder fail as pages of a crawl do.
    named = {named_address(each).rstrip("/") for each in urls}
    failed = {url.rstrip("/") for url in report.failed}
    if failed & named or not (report.pages or report.gone):
        ctx.exit(1)


def _ingest_site(ctx: click.Context, url: str, chosen: dict[str, Any]) -> None:
    from webrag.crawling.report import CrawlOptions
    from webrag.presentation.reports import format_site

    options = run_options(ctx)
    try:
        report = run(_crawl(ctx.obj, url, CrawlOptions(**chosen), options))
    except KeyboardInterrupt:
        click.echo("The same command goes on where this one stopped.", err=True)
        raise
    if options.json:
        print_json(report.model_dump(mode="json"))
    else:
        print_brief(format_site(report))
    if report.ended == "unreachable" or not report.obtained:
        ctx.exit(1)


async def _fetch_pages(
    settings: "Settings",
    urls: tuple[str, ...],
    refresh: bool,
    version: str | None,
    options: RunOptions,
) -> "tuple[IngestReport, list[str]]":
    """What came of the pages, and what can be done about those that failed, each once."""
    from webrag.app import WebRAG

    hints: dict[str, None] = {}
    with page_progress(quiet=options.quiet) as (begin, advance):

        def on_page(_url: str, outcome: "AcquiredPage | WebRAGError") -> None:
            advance(not isinstance(outcome, WebRAGError))
            if isinstance(outcome, WebRAGError) and outcome.hint:
                hints[outcome.hint] = None

        async with WebRAG(settings) as rag:
            report = await rag.ingest(
                urls, refresh=refresh, version=version, on_page=on_page, on_found=begin
            )
    return report, list(hints)


async def _crawl(
    settings: "Settings", url: str, crawl: "CrawlOptions", options: RunOptions
) -> "SiteReport":
    from webrag.app import WebRAG

    with crawl_progress(quiet=options.quiet) as progress:
        async with WebRAG(settings) as rag:
            return await rag.ingest_site(url, crawl, on_progress=progress)


def _print_report(report: "IngestReport") -> None:
    if report.pages or report.gone:
        print_brief(str(report))
    if report.failed:
        # The report has named them.
        said = _count(report) if report.pages else _failure(report)
        click.echo(f"Error: {said}", err=True)


def _suggest_crawl(report: "IngestReport", options: RunOptions) -> None:
    """A start page alone is seldom what somebody who names one wants."""
    is_page = len(report.pages) == 1 and report.pages[0].url.startswith("http")
    if is_page and not report.failed and not options.quiet:
        click.echo("Only this page was stored; add --max-pages N to follow its links.", err=True)


def _failure(report: "IngestReport") -> str:
    reasons = [
        reason if url in reason else f"{url}: {reason}" for url, reason in report.failed.items()
    ]
    if len(report.pages) + len(reasons) == 1:
        return reasons[0]
    return "\n".join([f"{_count(report).rstrip('.')}:", *(f"- {reason}" for reason in reasons)])


def _count(report: "IngestReport") -> str:
    failed = len(report.failed)
    total = len(report.pages) + failed
    return f"{failed} of {total} pages {'was' if failed == 1 else 'were'} not obtained."
