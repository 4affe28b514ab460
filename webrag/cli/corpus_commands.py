"""The commands about what is stored: `status`, `forget`, `reindex`, `corpus`, `read`, `verify`."""

import re
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from webrag.argument_checks import LEAST_MAX_TOKENS, USUAL_READ_TOKENS
from webrag.cli.options import (
    command,
    parse_age,
    run_options,
    split_named,
    stored_address,
    with_settings,
)
from webrag.cli.output import error_value, print_columns, print_either, print_json
from webrag.cli.running import count_progress, run, run_opened
from webrag.errors import InputError, WebRAGError, file_trouble
from webrag.ingestion.addresses import host_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webrag.app import WebRAG
    from webrag.corpus.maintenance.transfer import ImportReport
    from webrag.corpus.models import CollectionSize, CorpusStatus

    Tell = Callable[[int, int], None]
    from webrag.retrieval.citation_checks import Citation
    from webrag.retrieval.reading import PageExcerpt


_T = TypeVar("_T")


@command("status", short_help="Show what is stored.")
@click.argument("place", metavar="[URL|PATH|HOST]", required=False)
@click.option("--pages", "pages", is_flag=True, help="List every page, too.")
def status_command(ctx: click.Context, place: str | None, pages: bool) -> None:
    """Show what is stored in all and of each site, or of a page, a file, a folder or a HOST.

    With --pages or a place, all pages that could not be fetched are listed with the reason, else
    the latest. Exit code 1 when nothing of the place is stored.
    """
    from webrag.ingestion.addresses import file_path, is_file
    from webrag.presentation.reports import format_status, status_of

    host = host_of(place) if place else None
    url = stored_address(place) if place and not host else None
    is_folder = url is not None and is_file(url) and file_path(url).is_dir()

    is_listed = pages or place is not None

    def ask(rag: "WebRAG") -> "Awaitable[CorpusStatus]":
        return rag.status(None if is_folder else url, include_urls=is_listed)

    status = run_opened(ctx.obj, ask, quiet=run_options(ctx).quiet)
    if host is not None or (url is not None and is_folder):
        status = status_of(status, host or url or "")
    most = max(len(status.pages), len(status.failures))
    text = format_status(status, max_pages=most, is_listed=is_listed)
    print_either(ctx, status, text)
    if place and not status.pages:
        ctx.exit(1)


_SHOWN = 10


@command("forget", short_help="Delete stored pages.")
@click.argument("urls", metavar="[URL|PATH|HOST]...", nargs=-1)
@click.option("--site", metavar="HOST", help="All pages of this host.")
@click.option(
    "--older-than",
    callback=parse_age,
    metavar="AGE",
    help="Pages not confirmed for this long: 30d, 12h.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget_command(
    ctx: click.Context,
    urls: tuple[str, ...],
    site: str | None,
    older_than: timedelta | None,
    yes: bool,
) -> None:
    """Delete pages, by URL or by --site and --older-than, with everything made from them.

    A HOST alone, as `webrag status` prints it, counts as --site; a folder stands for all files
    below it. Asks first; without a terminal it needs --yes. Exit code 1 when one is not stored.
    """
    from webrag.presentation.reports import format_forget

    if not yes and not sys.stdin.isatty():
        raise InputError("Forgetting pages needs --yes when nobody can be asked.")
    host = host_of(urls[0]) if len(urls) == 1 and site is None else None
    site, named = site or host, () if host else tuple(map(stored_address, urls))
    conditions: dict[str, Any] = {"site": site, "older_than": older_than}
    conditions["confirm"] = True if yes else _confirm_pages
    report = _worked(
        ctx,
        "Forgetting pages",
        lambda rag, tell: rag.forget(named or None, **conditions, on_progress=tell),
    )
    unknown = report.unknown
    if site is not None and older_than is None and not report.removed:
        unknown = (site,)
    verb = "is" if len(unknown) == 1 else "are"
    error = f"{', '.join(unknown)} {verb} not stored." if unknown else None
    text = format_forget(report.model_copy(update={"unknown": ()}))
    failed = {"error": error_value("InputError", error)} if error else {}
    is_json = run_options(ctx).json
    if report.removed or error is None or is_json:
        print_either(ctx, {**dict(report), **failed}, text)
    if error is not None:
        if not is_json:
            click.echo(f"Error: {error}", err=True)
        ctx.exit(1)


@command("reindex", short_help="Embed the stored text with another model.")
@click.option("--force", is_flag=True, help="Do so although the model is the same.")
def reindex_command(ctx: click.Context, force: bool) -> None:
    """Embed all stored text again, with the model that EMBEDDING_PROVIDER and EMBEDDING_MODEL name.

    Searches go on as before until all is done. Interrupted, it goes on where it stopped when it is
    run again.
    """
    from webrag.presentation.reports import format_reindexing

    report = _worked(
        ctx, "Embedding passages", lambda rag, tell: rag.reindex(force=force, on_progress=tell)
    )
    print_either(ctx, report, format_reindexing(report))
    if report.failed and not run_options(ctx).json:
        _echo_failures(
            f"Warning: {_pages(len(report.failed))} with passages that the model does not take;"
            " these are found by their words only.",
            report.failed,
        )


@click.group("corpus", short_help="Check, export, import or drop all that is stored.")
def corpus_command() -> None:
    """Look after a corpus as a whole."""


@corpus_command.command("check", short_help="Check the database and what is stored.")
@click.option("--all", "everything", is_flag=True, help="Verify every page, not 100 at random.")
def check_command(ctx: click.Context, everything: bool) -> None:
    """Check server, tables, indexes and rows, and verify that every quotation can be located.

    Exit code 1 when a check fails.
    """
    result = _worked(
        ctx,
        "Verifying pages",
        lambda rag, tell: rag.check_corpus(everything=everything, on_progress=tell),
    )
    if run_options(ctx).json:
        print_json({"ok": result.is_sound, **dict(result)})
    else:
        print_columns([(check.level, check.name, check.found) for check in result.checks])
        if remedies := [check for check in result.checks if check.remedy]:
            click.echo("\nWhat to do:")
        for check in remedies:
            click.echo(f"- {check.name}: {check.remedy}")
    if not result.is_sound:
        ctx.exit(1)


@corpus_command.command("drop", short_help="Delete a whole collection.")
@click.argument("name", metavar="COLLECTION")
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop_command(ctx: click.Context, name: str, yes: bool) -> None:
    """Delete COLLECTION with all its pages. Asks first; without a terminal it needs --yes."""
    if not yes and not sys.stdin.isatty():
        raise InputError(f"Dropping the collection {name!r} needs --yes when nobody can be asked.")

    def confirmed(collection: "CollectionSize") -> bool:
        held = "" if collection.documents is None else f" with {_pages(collection.documents)}"
        return yes or click.confirm(f"Drop {collection.name}{held}?", err=True, abort=True)

    if not _worked(ctx, "", lambda rag, _: rag.drop_collection(name, confirm=confirmed)):
        raise WebRAGError(
            f"There is no collection {name!r}.", hint="`webrag status` lists the collections."
        )
    print_either(ctx, {"dropped": name}, f"The collection {name} was dropped.")


def _worked(ctx: click.Context, what: str, work: "Callable[[WebRAG, Tell], Awaitable[_T]]") -> _T:
    async def worked() -> _T:
        from webrag.app import WebRAG

        with count_progress(quiet=run_options(ctx).quiet) as tell:
            return await work(WebRAG(ctx.obj), partial(tell, what))

    return run(worked())


def _confirm_pages(urls: "Sequence[str]") -> bool:
    for url in urls[:_SHOWN]:
        click.echo(f"- {url}", err=True)
    if len(urls) > _SHOWN:
        click.echo(f"... and {len(urls) - _SHOWN:,} more", err=True)
    return click.confirm(f"Forget {_pages(len(urls))}?", err=True, abort=True)


def _pages(count: int) -> str:
    from webrag.presentation.reports import counted

    return counted(count, "page")


def _echo_failures(said: str, failed: "Mapping[Any, str]", what: str = "") -> None:
    """Say on standard error what failed, the first twenty by name."""
    click.echo(said, err=True)
    for name, reason in list(failed.items())[:_NAMED]:
        click.echo(f"- {what}{name}: {reason}", err=True)
    if len(failed) > _NAMED:
        click.echo(f"... and {len(failed) - _NAMED:,} more; --json lists all.", err=True)


_FILE = click.Path(dir_okay=False, path_type=Path)

_NAMED = 20


@corpus_command.command("export", short_help="Write all pages to a portable file.")
@click.argument("file", type=_FILE)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.option("--with-logins", is_flag=True, help="Write pages that were read with a login, too.")
def export_command(ctx: click.Context, file: Path, overwrite: bool, with_logins: bool) -> None:
    """Write every page of the collection to FILE.

    The file has one JSON object per line. It holds texts, links and dates; the rest is made anew
    by `webrag corpus import`, with the model of the importing side. Pages that were read with a
    login of yours are left out unless you ask for them.
    """
    report = _worked(
        ctx,
        "Exporting pages",
        lambda rag, tell: rag.export_corpus(
            file, overwrite=overwrite, with_logins=with_logins, on_progress=tell
        ),
    )
    said = f"{_pages(report.documents)}, {report.bytes:,} bytes written to {report.path}."
    print_either(ctx, report, said)
    if run_options(ctx).json:
        return
    if report.left_out:
        click.echo(f"{report.left_out:,} documents without a web address were left out.", err=True)
    if report.private:
        click.echo(
            f"{_pages(report.private)} read with a login left out; --with-logins writes them, too.",
            err=True,
        )


@corpus_command.command("import", short_help="Store the pages of an exported file.")
@click.argument("file", type=_FILE)
def import_command(ctx: click.Context, file: Path) -> None:
    """Store the pages of FILE; those that are stored already, or newer, are left alone.

    Exit code 1 when a line could not be used; the others are imported.
    """

    async def work(rag: "WebRAG", tell: "Tell") -> "ImportReport":
        async with rag:
            return await rag.import_corpus(file, on_progress=tell)

    report = _worked(ctx, "Importing pages", work)
    count = len(report.failed)
    lines = "line" if count == 1 else "lines"
    message = f"{count:,} {lines} could not be used." if count else None
    said = (
        f"{_pages(report.indexed)} added, {report.updated:,} updated,"
        f" {report.unchanged:,} unchanged, {report.kept:,} kept as they are newer here."
    )
    failed = {"error": error_value("InputError", message)} if message else {}
    print_either(ctx, {**dict(report), **failed}, said)
    if message is not None:
        if not run_options(ctx).json:
            _echo_failures(f"Error: {message}", report.failed, "line ")
        ctx.exit(1)


for _command in corpus_command.commands.values():
    with_settings(_command)


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
    default=USUAL_READ_TOKENS,
    show_default=True,
    metavar="N",
    help="Tokens printed at most.",
)
@click.option("--no-pager", is_flag=True, help="Never page what is longer than a screen.")
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
def verify_command(
    ctx: click.Context, words: tuple[str, ...], chars: str | None, file: Path | None, no_live: bool
) -> None:
    """Check that QUOTE is verbatim in the stored page URL and still on the live page.

    Exit code 1 when a quotation is not verbatim in the stored version.
    """
    from webrag.presentation.reports import format_verification
    from webrag.retrieval.citation_checks import VERBATIM

    if (file is None) != (len(words) > 1):
        raise InputError("Give URL and QUOTE, or --from with a file of citations.")
    given = [_given(words, chars)] if file is None else _read_citations(file)
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
        raise InputError(f"{file} cannot be read: {file_trouble(error)}.") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{file} is not a list of citations: {first['msg']} at {place or 'its top'}."
        ) from None
