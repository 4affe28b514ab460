"""`webrag read`: a stored page, or the part of it around a passage."""

from typing import TYPE_CHECKING
from uuid import UUID

import click

from webrag.argument_checks import LEAST_MAX_TOKENS
from webrag.cli.options import json_option, run_options, with_settings
from webrag.cli.output import print_json, print_text
from webrag.cli.running import run
from webrag.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webrag.retrieval.reading import PageExcerpt
    from webrag.settings import Settings


@with_settings
@click.command("read", short_help="Read a stored page; fetches nothing.")
@click.argument("url", required=False)
@click.option("--passage", type=click.UUID, metavar="ID", help="Begin with this passage.")
@click.option("--heading", metavar="TEXT", help="Begin at the heading with these words.")
@click.option("--quote", metavar="TEXT", help="Begin a little before this quotation.")
@click.option("--offset", type=click.IntRange(min=0), metavar="N", help="Begin at this character.")
@click.option(
    "--max-tokens",
    type=click.IntRange(min=LEAST_MAX_TOKENS),
    default=4_000,
    show_default=True,
    metavar="N",
    help="Tokens printed at most.",
)
@click.option("--no-pager", is_flag=True, help="Never page what is longer than a screen.")
@json_option
@click.pass_context
def read_command(
    ctx: click.Context,
    url: str | None,
    passage: UUID | None,
    heading: str | None,
    quote: str | None,
    offset: int | None,
    max_tokens: int,
    no_pager: bool,
) -> None:
    """Print the stored page URL as markdown, from its beginning or from a place.

    \b
    webrag read https://docs.python.org/3/library/asyncio-task.html --heading "Timeouts"
    webrag read --passage ID
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    if url is None and passage is None:
        raise InputError("Give the URL of a stored page, or --passage with the id of a passage.")
    place = {"heading": heading, "quote": quote, "offset": offset, "passage_id": passage}
    text, excerpt = run(_read(ctx.obj, url, place, max_tokens))
    if run_options(ctx).json:
        shown = excerpt.model_dump(mode="json")
        print_json(shown | {"next_offset": excerpt.next_offset})
    else:
        print_text(text, pager=not no_pager)


async def _read(
    settings: "Settings", url: str | None, place: "Mapping[str, object]", max_tokens: int
) -> "tuple[str, PageExcerpt]":
    from webrag.app import WebRAG
    from webrag.presentation.reports import format_excerpt

    async with WebRAG(settings) as rag:
        excerpt = await rag.read(url, max_tokens=max_tokens, **place)  # type: ignore[arg-type]
        text, shown = format_excerpt(
            excerpt, token_budget=max_tokens, count_tokens=rag.count_tokens
        )
    return text.replace("; read on with offset=", "; read on with --offset ", 1), shown
