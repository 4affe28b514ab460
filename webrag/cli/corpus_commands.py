"""`webrag ingest` and `webrag status`: filling the corpus, and looking at it."""

from typing import TYPE_CHECKING

import click

from webrag.cli.options import RunOptions, json_option, run_options, with_settings
from webrag.cli.output import print_brief, print_json
from webrag.cli.progress import page_progress
from webrag.cli.running import run

if TYPE_CHECKING:
    from webrag.app import IngestReport
    from webrag.indexing.models import AcquiredPage, CorpusStatus
    from webrag.settings import Settings

__all__ = ["ingest_command", "status_command"]


@with_settings
@click.command("ingest", short_help="Fetch and store pages.")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option("--refresh", is_flag=True, help="Ask the site again even if the page is fresh.")
@json_option
@click.pass_context
def ingest_command(ctx: click.Context, urls: tuple[str, ...], refresh: bool) -> None:
    """Fetch and index every URL; each page is stored completely or not at all.

    Exit code 1 when a page could not be obtained.
    """
    options = run_options(ctx)
    report = run(_ingest(ctx.obj, urls, refresh, options))
    if options.json:
        shown = report.model_dump(mode="json")
        if report.failed:
            shown["error"] = {"type": "FetchError", "message": _failure(report), "hint": None}
        print_json(shown)
    else:
        _print_report(report)
    if report.failed:
        ctx.exit(1)


@with_settings
@click.command("status", short_help="Show what is stored.")
@click.argument("url", required=False)
@click.option("--no-urls", is_flag=True, help="Only the totals, without the list of pages.")
@json_option
@click.pass_context
def status_command(ctx: click.Context, url: str | None, no_urls: bool) -> None:
    """Show what the corpus holds, or what is known of the page URL."""
    from webrag.presentation.status import format_status

    status = run(_status(ctx.obj, url, include_urls=not no_urls))
    if run_options(ctx).json:
        print_json(status.model_dump(mode="json"))
    else:
        print_brief(format_status(status, max_pages=len(status.pages)))


async def _ingest(
    settings: "Settings", urls: tuple[str, ...], refresh: bool, options: RunOptions
) -> "IngestReport":
    from webrag.app import WebRAG
    from webrag.errors import WebRAGError

    with page_progress(len(set(urls)), quiet=options.quiet) as advance:

        def on_page(_url: str, outcome: "AcquiredPage | WebRAGError") -> None:
            advance(not isinstance(outcome, WebRAGError))

        async with WebRAG(settings) as rag:
            return await rag.ingest(urls, refresh=refresh, on_page=on_page)


async def _status(settings: "Settings", url: str | None, *, include_urls: bool) -> "CorpusStatus":
    from webrag.app import WebRAG

    async with WebRAG(settings) as rag:
        return await rag.status(url, include_urls=include_urls)


def _print_report(report: "IngestReport") -> None:
    from webrag.presentation.status import format_ingest

    if report.pages:
        print_brief(format_ingest(report.pages, report.failed))
    if report.failed:
        click.echo(f"Error: {_failure(report)}", err=True)


def _failure(report: "IngestReport") -> str:
    reasons = [
        reason if url in reason else f"{url}: {reason}" for url, reason in report.failed.items()
    ]
    total = len(report.pages) + len(reasons)
    return (
        reasons[0]
        if total == 1
        else f"{len(reasons)} of {total} pages were not obtained: " + (" ".join(reasons))
    )
