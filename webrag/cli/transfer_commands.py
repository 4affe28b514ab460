"""`webrag export` and `webrag import`: a corpus as a file."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from webrag.cli.options import RunOptions, json_option, run_options, with_settings
from webrag.cli.output import error_value, print_json
from webrag.cli.progress import count_progress
from webrag.cli.running import run

if TYPE_CHECKING:
    from webrag.indexing.corpus_export import ExportReport
    from webrag.indexing.corpus_import import ImportReport
    from webrag.settings import Settings

__all__ = ["export_command", "import_command"]

_FILE = click.Path(dir_okay=False, path_type=Path)
_SHOWN = 20


@with_settings
@click.command("export", short_help="Write all pages to a portable file.")
@click.argument("file", type=_FILE)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@json_option
@click.pass_context
def export_command(ctx: click.Context, file: Path, overwrite: bool) -> None:
    """Write every page of the collection to FILE, compressed when its name ends with .gz.

    The file has one JSON object per line. It holds texts, links and dates; vectors are made anew
    by `webrag import`, with the model of the importing side.
    """
    options = run_options(ctx)
    report = run(_export(ctx.obj, file, overwrite, options))
    if options.json:
        print_json(report.model_dump(mode="json"))
        return
    click.echo(f"{report.documents:,} pages, {report.bytes:,} bytes written to {report.path}.")
    if report.left_out:
        click.echo(f"{report.left_out:,} documents without a web address were left out.", err=True)


@with_settings
@click.command("import", short_help="Store the pages of an exported file.")
@click.argument("file", type=_FILE)
@json_option
@click.pass_context
def import_command(ctx: click.Context, file: Path) -> None:
    """Store the pages of FILE; those that are stored already, or newer, are left alone.

    Exit code 1 when a line could not be used; the others are imported.
    """
    options = run_options(ctx)
    report = run(_import(ctx.obj, file, options))
    message = _failure(report)
    if options.json:
        shown = report.model_dump(mode="json")
        if message is not None:
            shown["error"] = error_value("InputError", message)
        print_json(shown)
    else:
        click.echo(
            f"{report.indexed:,} pages added, {report.updated:,} updated,"
            f" {report.unchanged:,} unchanged, {report.kept:,} kept as they are newer here."
        )
        _print_failures(report, message)
    if message is not None:
        ctx.exit(1)


async def _export(
    settings: "Settings", file: Path, overwrite: bool, options: RunOptions
) -> "ExportReport":
    from webrag.app import WebRAG

    with count_progress("Exporting pages", quiet=options.quiet) as report:
        return await WebRAG(settings).export_corpus(file, overwrite=overwrite, on_progress=report)


async def _import(settings: "Settings", file: Path, options: RunOptions) -> "ImportReport":
    from webrag.app import WebRAG

    with count_progress("Importing pages", quiet=options.quiet) as report:
        async with WebRAG(settings) as rag:
            return await rag.import_corpus(file, on_progress=report)


def _failure(report: "ImportReport") -> str | None:
    if not report.failed:
        return None
    count = len(report.failed)
    return f"{count:,} {'line' if count == 1 else 'lines'} could not be used."


def _print_failures(report: "ImportReport", message: str | None) -> None:
    if message is None:
        return
    click.echo(f"Error: {message}", err=True)
    for number, reason in list(report.failed.items())[:_SHOWN]:
        click.echo(f"- line {number}: {reason}", err=True)
    if len(report.failed) > _SHOWN:
        click.echo(f"... and {len(report.failed) - _SHOWN:,} more; --json lists all.", err=True)
