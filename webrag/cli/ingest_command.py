"""`webrag ingest`: pages by name, or a whole site."""

from typing import TYPE_CHECKING, Any, TypeVar

import click

from webrag.cli.options import addresses, command, run_options
from webrag.cli.output import (
    error_value,
    hints_of,
    print_either,
    print_jobs,
    print_json,
    print_text,
)
from webrag.cli.running import count_progress, crawl_progress, run_on_jobs, run_opened
from webrag.errors import InputError, WebRAGError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webrag.app import IngestReport, WebRAG
    from webrag.corpus.models import AcquiredPage
    from webrag.jobs.models import Job
    from webrag.jobs.queue import JobQueue

_CRAWL_OPTIONS = ("max_pages", "depth", "scope", "include", "exclude")

_Command = TypeVar("_Command", bound="Callable[..., Any]")


def crawl_options(command: _Command) -> _Command:
    """Options for how far a crawl goes, the same wherever one is asked for."""
    options = (
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
    )
    for option in reversed(options):
        command = option(command)
    return command


def given_crawl_options(values: dict[str, Any]) -> dict[str, Any]:
    """The options of `crawl_options` that were given, as `CrawlOptions` takes them."""
    return {name: values[name] for name in _CRAWL_OPTIONS if values[name] not in (None, ())}


@command("ingest", short_help="Fetch and store pages, a site, files, folders.")
@click.argument("urls", metavar="URL|PATH...", nargs=-1, required=True, callback=addresses)
@crawl_options
@click.option("--refresh", is_flag=True, help="Ask the site again even about fresh pages.")
@click.option(
    "--version",
    metavar="VERSION",
    help="Of the library that the pages are about, as 3.2; else read from addresses and pages.",
)
@click.option("--queue", is_flag=True, help="Let `webrag jobs work` do it; needs webrag[workers].")
def ingest_command(ctx: click.Context, /, urls: tuple[str, ...], **given: Any) -> None:
    """Fetch and store every URL, file, and file of a folder, each completely or not at all.

    Of a folder what .gitignore names, hidden files and kinds that hold no text are left out; the
    next time only files that were changed are read.

    With --max-pages, --depth, --scope, --include or --exclude, URL is where a crawl of its site
    starts. Repeat an interrupted crawl to go on where it was. In a PATTERN, * stands for any
    characters within one folder or file name, ** for any folders.

    Exit code 1 when a named page could not be fetched, or when a folder or crawl gave nothing or
    a site stopped answering.
    """
    from webrag.ingestion.files.folder import named_address
    from webrag.ingestion.versions import checked_version

    if given["version"] is not None:
        given["version"] = checked_version(given["version"])
    for url in urls:
        named_address(url)  # refused before anything is started for it
    chosen = given_crawl_options(given)
    if chosen and len(urls) > 1:
        raise InputError(
            f"A crawl starts from one page, and {len(urls)} were given; run one crawl for each."
        )
    if chosen:
        chosen |= {name: given[name] for name in ("refresh", "version") if given[name]}
    if given["queue"]:
        _enqueue(ctx, urls, chosen, given)
    elif chosen:
        _ingest_site(ctx, urls[0], chosen)
    else:
        _ingest_pages(ctx, urls, given)


def _enqueue(
    ctx: click.Context, urls: tuple[str, ...], chosen: dict[str, Any], given: dict[str, Any]
) -> None:
    async def enqueue(queue: "JobQueue") -> "list[Job]":
        from webrag.crawling.report import CrawlOptions

        if chosen:
            return [await queue.enqueue_site(urls[0], CrawlOptions(**chosen))]
        version = given["version"] or ""
        return await queue.enqueue_pages(urls, refresh=given["refresh"], version=version)

    print_jobs(ctx, run_on_jobs(ctx.obj, enqueue))
    if not run_options(ctx).quiet:
        click.echo("Workers do it: `webrag jobs work` starts one.", err=True)


def _ingest_pages(ctx: click.Context, urls: tuple[str, ...], given: dict[str, Any]) -> None:
    from webrag.ingestion.files.folder import named_address

    options = run_options(ctx)
    hints: dict[str, None] = {}  # what can be done about pages that failed, each once

    async def ingest(rag: "WebRAG") -> "IngestReport":
        return await rag.ingest(
            urls,
            refresh=given["refresh"],
            version=given["version"],
            on_page=on_page,
            on_found=begin,
        )

    done = wanted = 0
    with count_progress(quiet=options.quiet) as tell:

        def begin(total: int) -> None:
            nonlocal wanted
            wanted = total
            tell("Pages", done, wanted)

        def on_page(_url: str, outcome: "AcquiredPage | WebRAGError") -> None:
            nonlocal done
            done += 1
            tell("Pages", done, wanted)
            if isinstance(outcome, WebRAGError):
                hints.update(dict.fromkeys(hints_of(outcome)))

        report = run_opened(ctx.obj, ingest, quiet=options.quiet)
    # Files of a folder fail as pages of a crawl do.
    named = {named_address(each).rstrip("/") for each in urls}
    failed = {url.rstrip("/") for url in report.failed}
    is_error = bool(failed & named) or not (report.pages or report.gone)
    if options.json:
        value = dict(report)
        if report.failed:
            hint = " ".join(hints) or None
            value["error"] = error_value("FetchError", _failure(report), hint=hint)
        print_json(value)
    else:
        _print_report(report, is_error=is_error)
        for hint in hints:
            click.echo(hint, err=True)
        # A start page alone is seldom what somebody who names one wants.
        is_page = len(report.pages) == 1 and report.pages[0].url.startswith("http")
        if is_page and not report.failed and not options.quiet:
            click.echo(
                "Only this page was stored; add --max-pages N to follow its links.", err=True
            )
    if is_error:
        ctx.exit(1)


def _ingest_site(ctx: click.Context, url: str, chosen: dict[str, Any]) -> None:
    from webrag.crawling.report import CrawlOptions
    from webrag.presentation.reports import format_site

    options, crawl = run_options(ctx), CrawlOptions(**chosen)
    try:
        with crawl_progress(quiet=options.quiet) as tell:
            report = run_opened(ctx.obj, lambda rag: rag.ingest_site(url, crawl, on_progress=tell))
    except KeyboardInterrupt:
        click.echo("The same command goes on where this one stopped.", err=True)
        raise
    print_either(ctx, report, format_site(report))
    if report.ended == "unreachable" or not report.obtained:
        ctx.exit(1)


def _print_report(report: "IngestReport", *, is_error: bool) -> None:
    if report.pages or report.gone:
        print_text(str(report))
    if report.failed:
        # The report has named them.
        said = _count(report) if report.pages else _failure(report)
        click.echo(f"{'Error' if is_error else 'Note'}: {said}", err=True)


def _failure(report: "IngestReport") -> str:
    lines = [
        why if url.removeprefix("file://") in why else f"{url}: {why}"
        for url, why in report.failed.items()
    ]
    if len(report.pages) + len(lines) == 1:
        return lines[0]
    return "\n".join([f"{_count(report).rstrip('.')}:", *(f"- {line}" for line in lines)])


def _count(report: "IngestReport") -> str:
    failed = len(report.failed)
    total = len(report.pages) + failed
    return f"{failed} of {total} pages could not be fetched."
