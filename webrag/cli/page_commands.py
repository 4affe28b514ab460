"""The commands about one stored page: `read` and `verify`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webrag.argument_checks import LEAST_MAX_TOKENS
from webrag.cli.options import command, json_option, run_options
from webrag.cli.output import print_either, print_jobs
from webrag.cli.running import run_opened
from webrag.cli.words import split_named, stored_address
from webrag.errors import InputError

if TYPE_CHECKING:
    from webrag.app import WebRAG
    from webrag.retrieval.citation_checks import Citation
    from webrag.retrieval.reading import PageExcerpt


@command("read", short_help="Read a stored page; fetches nothing.")
@click.argument("words", nargs=-1, metavar="[URL]")
@click.option(
    "--passage", "passage_id", type=click.UUID, metavar="ID", help="Begin with this passage."
)
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
def read_command(
    ctx: click.Context, /, words: tuple[str, ...], max_tokens: int, no_pager: bool, **place: Any
) -> None:
    """Print the stored page URL as markdown, from its beginning or from a place.

    \b
    webrag read https://docs.python.org/3/library/asyncio-task.html --heading "Timeouts"
    webrag read --passage ID
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    from webrag.presentation.reports import format_excerpt

    if len(words) > 1 or not (words or place["passage_id"]):
        raise InputError(
            "Give the URL of one stored page, with --heading or --quote and words of it for a place"
            " in it, or --passage with the id of a passage."
        )
    url = stored_address(words[0]) if words else None

    async def read(rag: "WebRAG") -> "tuple[str, PageExcerpt]":
        excerpt = await rag.read(url, max_tokens=max_tokens, **place)
        return format_excerpt(excerpt, token_budget=max_tokens, count_tokens=rag.count_tokens)

    text, excerpt = run_opened(ctx.obj, read, quiet=run_options(ctx).quiet)
    text = text.replace("; read on with offset=", "; read on with --offset ", 1)
    value = {**dict(excerpt), "next_offset": excerpt.next_offset}
    print_either(ctx, value, text, pager=not no_pager)


@command("verify", short_help="Check quotations.")
@click.argument("words", nargs=-1, metavar="URL QUOTE")
@click.option("--chars", metavar="START-END", help="Offsets at which the quotation stands.")
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="JSON list of objects with url, quote and, if known, char_start and char_end; - is stdin.",
)
@click.option("--no-live", is_flag=True, help="Fetch nothing: look at the stored pages only.")
@click.option("--queue", is_flag=True, help="Let `webrag jobs work` do it; needs webrag[workers].")
@json_option
def verify_command(
    ctx: click.Context,
    words: tuple[str, ...],
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

    if (file is None) != (len(words) > 1):
        raise InputError("Give URL and QUOTE, or --from with a file of citations.")
    given = [_given(words, chars)] if file is None else _read_citations(file)
    if queue:
        from webrag.wiring.components import require_workers

        require_workers()
        job = run_opened(ctx.obj, lambda rag: rag.jobs.enqueue_citations(given, live=not no_live))
        print_jobs(ctx, [job])
        return
    checks = run_opened(
        ctx.obj, lambda rag: rag.verify(given, live=not no_live), quiet=run_options(ctx).quiet
    )
    print_either(ctx, {"checks": checks}, format_verification(checks))
    if any(check.stored.state not in VERBATIM for check in checks):
        ctx.exit(1)


def _given(words: tuple[str, ...], chars: str | None) -> "Citation":
    from webrag.retrieval.citation_checks import Citation

    (named, *_), quote = split_named(words)
    url = stored_address(named)
    if chars is None:
        return Citation(url=url, quote=quote)
    offsets = re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", chars)
    if offsets is None:
        raise InputError(f"--chars is {chars[:80]!r}; give two offsets, such as 395-440.")
    return Citation(url=url, quote=quote, char_start=int(offsets[1]), char_end=int(offsets[2]))


def _read_citations(file: Path) -> "list[Citation]":
    from pydantic import TypeAdapter, ValidationError

    from webrag.retrieval.citation_checks import Citation

    try:
        with click.open_file(str(file), encoding="utf-8") as opened:
            return TypeAdapter(list[Citation]).validate_json(opened.read())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{file} is not a list of citations: {first['msg']} at {place or 'its top'}."
        ) from None
