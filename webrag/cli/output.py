"""Writes results to standard output, as text, tables in columns or JSON, or to a file."""

import json
import re
import shutil
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any

import click

from webrag.cli.options import run_options
from webrag.errors import RefusedAddressError, WebRAGError
from webrag.ingestion.characters import normalize_characters

if TYPE_CHECKING:
    from webrag.jobs.models import Job

_SECTION = re.compile(r"^\[[A-Z][A-Z &-]*\]$", re.MULTILINE)


def print_either(
    ctx: click.Context, value: Any, text: str, *, pager: bool = False, has_links: bool = False
) -> None:
    """Print a value as JSON where that is asked for, else its text."""
    if run_options(ctx).json:
        print_json(value)
    else:
        print_text(text, pager=pager, has_links=has_links)


def print_jobs(ctx: click.Context, jobs: "Sequence[Job]") -> None:
    """Print what was enqueued, one line for each job."""
    from webrag.presentation.jobs import format_jobs

    print_either(ctx, {"jobs": jobs}, format_jobs(jobs))


def print_text(text: str, *, pager: bool = False, has_links: bool = False) -> None:
    """Print a text, its section headers bold; through PAGER, else `less`, when it fills a terminal.

    Of a link to words of a page, on a line of its own, the page alone is printed; a terminal opens
    it at the words all the same.
    """
    lines = shutil.get_terminal_size().lines
    is_paged = pager and sys.stdout.isatty() and text.count("\n") + 2 > lines
    is_rich = False
    if not is_paged and may_be_terminal(sys.stdout):
        from rich.console import Console

        console = Console()
        is_rich = console.is_terminal and not (console.no_color or console.is_dumb_terminal)
    if is_rich:
        text = _SECTION.sub(lambda match: click.style(match[0], bold=True), text)
    if has_links:
        is_opened = is_rich and sys.stdout.isatty()
        text = _WORDS_LINK.sub(_HYPERLINK if is_opened else r"\1\3", text)
    (click.echo_via_pager if is_paged else click.echo)(text)


_WORDS_LINK = re.compile(r"^( {3,4})((\S+?)#:~:text=\S+)$", re.MULTILINE)
# OSC 8, which terminals that do not know it pass over.
_HYPERLINK = "\\1\x1b]8;;\\2\x1b\\\\\\3\x1b]8;;\x1b\\\\"


def may_be_terminal(stream: IO[str]) -> bool:
    """Tell if `rich` is to be asked; importing it takes time that pipes do without."""
    from webrag.settings.variables import forces_terminal

    return stream.isatty() or forces_terminal()


def print_json(value: Any) -> None:
    """Print a model, or what holds models, as JSON, with characters unsafe on terminals escaped."""
    from pydantic_core import to_jsonable_python

    click.echo(as_json(to_jsonable_python(value), indent=2))


def as_json(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON whose characters are all drawn; the others are escapes in it."""
    document = json.dumps(value, ensure_ascii=False, indent=indent)
    return document if document.isascii() else "".join(map(_escaped, document))


@lru_cache(maxsize=4_096)
def _escaped(char: str) -> str:
    is_drawn = normalize_characters(char) not in ("", "\n") and not "\ud800" <= char <= "\udfff"
    return char if is_drawn or char == "\n" else json.dumps(char)[1:-1]


def hints_of(error: WebRAGError) -> list[str]:
    """Name what can be done about an error at a command line."""
    host = error.host if isinstance(error, RefusedAddressError) else None
    allowing = f"For this command alone: --allow-host {host}" if host else None
    return [normalize_characters(hint) for hint in (error.hint, allowing) if hint]


def error_value(kind: str, message: str, *, hint: str | None = None, **details: Any) -> Any:
    """An error as the JSON of a command holds it, under the name `error`."""
    return {"type": kind, "message": message, **details, "hint": hint}


def print_columns(rows: Sequence[Sequence[str]], *, indent: str = "") -> None:
    """Print rows in aligned columns; nothing is cut, so that output can be piped."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)
        ]
        click.echo((indent + "  ".join(cells)).rstrip())
