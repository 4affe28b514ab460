"""`webrag status`: what the corpus holds."""

from typing import TYPE_CHECKING

import click

from webrag.cli.options import json_option, run_options, with_settings
from webrag.cli.output import print_brief, print_json
from webrag.cli.running import run

if TYPE_CHECKING:
    from webrag.indexing.models import CorpusStatus
    from webrag.settings import Settings

__all__ = ["status_command"]


@with_settings
@click.command("status", short_help="Show what is stored.")
@click.argument("url", required=False)
@click.option("--no-urls", is_flag=True, help="Only the totals, without the list of pages.")
@json_option
@click.pass_context
def status_command(ctx: click.Context, url: str | None, no_urls: bool) -> None:
    """Show what the corpus holds, or what is known of the page URL.

    Pages that could not be obtained are listed with the reason.
    """
    from webrag.presentation.status import format_status

    status = run(_status(ctx.obj, url, include_urls=not no_urls))
    if run_options(ctx).json:
        print_json(status.model_dump(mode="json"))
    else:
        shown = max(len(status.pages), len(status.failures))
        print_brief(format_status(status, max_pages=shown))


async def _status(settings: "Settings", url: str | None, *, include_urls: bool) -> "CorpusStatus":
    from webrag.app import WebRAG

    async with WebRAG(settings) as rag:
        return await rag.status(url, include_urls=include_urls)
