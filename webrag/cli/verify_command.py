"""`webrag verify`: whether quotations are verbatim, as stored and as the page is now."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import json_option, run_options, with_settings
from webrag.cli.output import print_brief, print_jobs, print_json
from webrag.cli.running import run
from webrag.errors import InputError

if TYPE_CHECKING:
    from webrag.jobs.models import Job
    from webrag.retrieval.citation_checks import Citation, CitationCheck
    from webrag.settings import Settings


@with_settings
@click.command("verify", short_help="Check quotations.")
@click.argument("url", required=False)
@click.argument("quote", required=False)
@click.option("--chars", metavar="START-END", help="Offsets at which the quotation stands.")
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="JSON list of objects with url, quote and, if known, char_start and char_end; - is stdin.",
)
@click.option("--no-live", is_flag=True, help="Fetch nothing: look at the stored pages only.")
@click.option("--queue", is_flag=True, help="Let `webrag worker` do it; needs webrag[workers].")
@json_option
@click.pass_context
def verify_command(
    ctx: click.Context,
    url: str | None,
    quote: str | None,
    chars: str | None,
    file: Path | None,
    no_live: bool,
    queue: bool,
) -> None:
    """Check that QUOTE is verbatim in the stored page URL and still on the live page.

    Exit code 1 when a quotation is not verbatim in the stored version. With --queue, `webrag jobs
    show` says what was found; pages that do not answer are tried again for an hour and a half.
    """
    from webrag.presentation.reports import format_verification
    from webrag.retrieval.citation_checks import VERBATIM

    if (file is None) == (url is None) or (url is None) != (quote is None):
        raise InputError("Give URL and QUOTE, or --from with a file of citations.")
    given = _read(file) if file is not None else [_given(str(url), str(quote), chars)]
    if queue:
        job = run(_enqueued(ctx.obj, given, live=not no_live))
        print_jobs([job], is_json=run_options(ctx).json)
        return
    checks = run(_verify(ctx.obj, given, live=not no_live))
    if run_options(ctx).json:
        print_json({"checks": [check.model_dump(mode="json") for check in checks]})
    else:
        print_brief(format_verification(checks))
    if any(check.stored.state not in VERBATIM for check in checks):
        ctx.exit(1)


async def _verify(
    settings: "Settings", citations: "list[Citation]", *, live: bool
) -> "list[CitationCheck]":
    from webrag.app import WebRAG

    async with WebRAG(settings) as rag:
        return await rag.verify(citations, live=live)


async def _enqueued(settings: "Settings", citations: "list[Citation]", *, live: bool) -> "Job":
    from webrag.app import WebRAG
    from webrag.wiring.jobs import require_workers

    require_workers()
    async with WebRAG(settings) as rag:
        return await rag.enqueue_verification(citations, live=live)


def _given(url: str, quote: str, chars: str | None) -> "Citation":
    from webrag.retrieval.citation_checks import Citation

    if chars is None:
        return Citation(url=url, quote=quote)
    offsets = re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", chars)
    if offsets is None:
        raise InputError(f"--chars is {chars[:80]!r}; give two offsets, such as 395-440.")
    return Citation(url=url, quote=quote, char_start=int(offsets[1]), char_end=int(offsets[2]))


def _read(file: Path) -> "list[Citation]":
    from pydantic import TypeAdapter, ValidationError

    from webrag.retrieval.citation_checks import Citation

    try:
        with click.open_file(str(file), encoding="utf-8") as opened:
            value: Any = json.load(opened)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read as JSON: {error}") from None
    try:
        return TypeAdapter(list[Citation]).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{file} is not a list of citations: {first['msg']} at {place or 'its top'}."
        ) from None
