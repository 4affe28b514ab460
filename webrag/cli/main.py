"""The command group: which commands there are, and how every error ends."""

import atexit
import contextlib
import errno
import gc
import os
import re
import shlex
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click
from typing_extensions import override

from webrag.cli.options import RunOptions, run_options
from webrag.cli.output import as_json, error_value, hints_of
from webrag.errors import ConfigurationError, FetchError, InputError, WebRAGError
from webrag.ingestion.addresses import split_words
from webrag.ingestion.characters import normalize_characters
from webrag.redaction import redacted_failure

# What people do, the commands for it in the order of the help, and the module that has each as
# `NAME_command`.
_GROUPS = {
    "Start": {"demo": "demo_command", "setup": "setup_command", "config": "setup_command"},
    "Ask": {
        "ask": "answer_command",
        "answer": "answer_command",
        "search": "answer_command",
        "read": "corpus_commands",
        "verify": "corpus_commands",
    },
    "Add": {"ingest": "ingest_command", "login": "login_commands"},
    "Look after": {
        "status": "corpus_commands",
        "forget": "corpus_commands",
        "reindex": "corpus_commands",
        "corpus": "corpus_commands",
        "jobs": "jobs_commands",
    },
    "Serve": {"web": "serve_commands", "mcp": "serve_commands"},
    "Measure": {"eval": "eval_command"},
}
_HOMES = {name: home for commands in _GROUPS.values() for name, home in commands.items()}

# Commands, and what people type for them who know another program, or an earlier version.
_TOLD = {
    word: command
    for command, words in {
        "ask QUESTION": "query",
        "config": "settings",
        "corpus check": "doctor",
        "corpus drop COLLECTION": "drop",
        "corpus export FILE": "export",
        "corpus import FILE": "import",
        "eval QUESTIONS --compare FIRST SECOND": "compare",
        "forget URL": "delete remove rm",
        "ingest URL": "add download fetch get index scrape",
        "ingest URL --max-pages 500": "crawl",
        "ingest URL --refresh": "update",
        "jobs schedule SITE --every 7d": "schedule",
        "jobs work": "worker",
        "login": "logins",
        "login HOST --remove": "logout",
        "mcp --install CLIENT": "install",
        "read URL": "open show",
        "search QUESTION": "find",
        "setup": "init",
        "status": "list ls",
        "web": "serve start ui",
    }.items()
    for word in words.split()
}

# Commands and options of earlier versions that no other command stands for.
_FORMER = {
    "compare-versions": "Search twice, with --version OLD and --version NEW.",
    "models": "WEBRAG_MODELS=small names a set of models; the first use downloads them.",
    "eval --report": "--out FILE holds what was found for each question.",
    "ingest --watch": "`webrag ingest FOLDER` reads only the files that have changed.",
    "reindex --queue": "`webrag reindex` does it at once.",
    "search --between": "Search twice, with --version OLD and --version NEW.",
    "setup --models": "WEBRAG_MODELS=small names a set of models; the first use downloads them.",
    "verify --queue": "`webrag verify` does it at once.",
}

_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class _Commands(click.Group):
    """Turns every error of a command into a sentence and an exit code."""

    @override
    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
                reconfigure(errors="backslashreplace")  # printing never fails
        # Numpy's own threads doubled the processor time of a search, whose matrices are small:
        # `benchmarks/search_scale.py --whole` with and without it.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        options = run_options(ctx)
        try:
            with _seldom_collected():
                return super().invoke(ctx)
        except click.NoSuchOption as error:
            command = error.ctx.info_name if error.ctx else ""
            said = _FORMER.get(f"{command} {error.option_name}")
            if said is None:
                raise
            raise click.UsageError(f"{error.message} {said}", error.ctx) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted. What was stored completely is kept.", err=True)
            ctx.exit(_INTERRUPTED)
        except WebRAGError as error:
            _report(error, options)
            ctx.exit(2 if isinstance(error, InputError | ConfigurationError) else 1)
        except OSError as error:
            _report(_unwritable(error) or _defect(error), options)
            ctx.exit(1)
        # A defect must still end in a sentence; --verbose shows where it happened.
        except Exception as error:  # noqa: BLE001
            _report(_defect(error), options)
            ctx.exit(1)

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take `help`, `help COMMAND` and `version` for the options that do that."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        try:
            return super().parse_args(ctx, ["--version"] if args == ["version"] else args)
        except click.NoSuchOption as error:
            said = (
                f"{error.message} Options follow a command: `webrag COMMAND {error.option_name}`."
            )
            raise click.UsageError(said, ctx) from error

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command when it is asked for; all of them take a tenth of a second."""
        if cmd_name in _HOMES and cmd_name not in self.commands:
            module = import_module(f"webrag.cli.{_HOMES[cmd_name]}")
            self.add_command(getattr(module, f"{cmd_name.replace('-', '_')}_command"))
        return super().get_command(ctx, cmd_name)

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx), 1)
            if args[0] in _FORMER:
                said = _FORMER[args[0]]
            elif args[0] in _TOLD:
                said = f"That is `webrag {_told(args[0], args[1:])}`."
            elif near:
                said = f"Did you mean {near[0]!r}?"
            else:
                if any(each.startswith("-") for each in args):
                    raise
                asked = args if len(" ".join(args).split()) > 1 else [*args, "your question"]
                addresses, question = split_words(asked)
                if not addresses and asked is not args:
                    raise
                command = "answer" if addresses else "ask"
                said = f"To ask it: `webrag {shlex.join([command, *addresses, question])}`."
            raise click.UsageError(f"{error.message} {said}", ctx) from error

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _HOMES))
        for title, names in _GROUPS.items():
            found = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (f"{name:<{width}}", each.get_short_help_str(80))
                        for name, each in found.items()
                        if each is not None
                    ]
                )

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys([*_HOMES, *self.commands]))


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    None, "-V", "--version", package_name="webrag", message="%(prog)s %(version)s"
)
def main() -> None:
    """Ask web pages a question, get verbatim, located, linked evidence.

    Start with `webrag demo`: it needs no key, no server and no network.
    """


def _told(word: str, given: list[str]) -> str:
    """The command that a word of another program stands for, with what was given to it."""
    what = re.search(r"\b(?:URL|QUESTION|HOST|SITE|FILE)\b", _TOLD[word])
    if what is None or not given or any(each.startswith("-") for each in given):
        return _TOLD[word]
    return f"{_TOLD[word][: what.start()]}{shlex.join(given)}{_TOLD[word][what.end() :]}"


@contextlib.contextmanager
def _seldom_collected() -> Iterator[None]:
    """Look for cycles of garbage three hundred times as seldom, and not when the program ends.

    Imports make a hundred thousand objects that stay. Going through them after every 700 new ones
    and again at the end was a quarter of the time of a search.
    """
    atexit.register(gc.freeze)
    usual = gc.get_threshold()
    gc.set_threshold(200_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _unwritable(error: OSError) -> WebRAGError | None:
    """The error of a full disk, when standard output is what cannot be written."""
    if error.errno != errno.ENOSPC or error.filename is not None:
        return None
    # What is left in the buffer would fail again, with a traceback, when Python ends.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return WebRAGError(f"The output cannot be written: {error.strerror}.")


def _defect(error: Exception) -> WebRAGError:
    kind = type(error).__name__
    said = str(error).strip().splitlines()
    detail = f"{kind}: {said[0][:300]}" if said else kind
    return WebRAGError(
        f"WebRAG failed unexpectedly ({detail}).",
        hint="This is a defect; run the command again with --verbose and report what it prints.",
    )


def _report(error: WebRAGError, options: RunOptions) -> None:
    if options.verbose > 1 or (options.verbose and type(error) is WebRAGError):
        click.echo(redacted_failure(traceback.format_exc().rstrip()), err=True)
    if options.json:
        where = {"url": error.url, "status": error.status} if isinstance(error, FetchError) else {}
        value = error_value(type(error).__name__, str(error), hint=error.hint, **where)
        click.echo(as_json({"error": value}))
        return
    click.echo(normalize_characters(f"Error: {error}"), err=True)
    for hint in hints_of(error):
        click.echo(hint, err=True)
