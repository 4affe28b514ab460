"""Reads what is typed: words, the options that every command takes, and settings from them."""

import functools
import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import click
from typing_extensions import override

from webrag.argument_checks import LEAST_MAX_TOKENS
from webrag.ingestion.addresses import as_address, host_of, sites_and_addresses, split_words
from webrag.redaction import redacted_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic.fields import FieldInfo

    from webrag.presentation.results import CommandLine
    from webrag.question import Question


def split_named(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Split what was typed where an address has to be among it."""
    addresses, question = split_words(words)
    if addresses:
        return tuple(map(as_address, addresses)), question
    for word, rest in ((words[0], words[1:]), (words[-1], words[:-1])):
        is_named = len(words) == 2 or host_of(word) or "/" in word or os.path.lexists(word)
        if rest and is_named and len(word.split()) == 1:
            return (as_address(word),), " ".join(rest)
    if len(words) == 1 and (host_of(words[0]) or split_words([*words, "?"])[0]):
        raise click.UsageError(f"There is no question beside {words[0]}.")
    raise click.UsageError(
        "There is no address among these words. What is stored is asked with `webrag ask` and"
        " `webrag search`, without one."
    )


def sites_and_pages(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split what is named among stored pages: a host alone, as `status` prints it, is a site."""
    from webrag.ingestion.files.folder import named_address

    hosts, addresses = sites_and_addresses(words)
    return hosts, tuple(map(named_address, addresses))


def stored_address(word: str) -> str:
    """Give the address under which a page or file is stored; InputError for anything else."""
    from webrag.ingestion.files.folder import named_address

    return named_address(as_address(word))


def addresses(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
    """Give the addresses that an argument or option names; hosts without a scheme get one."""
    if isinstance(value, tuple):
        return tuple(map(as_address, value))
    return value and as_address(value)


_KEY = "webrag.run_options"

_Command = TypeVar("_Command", bound="Callable[..., Any]")


@dataclass
class RunOptions:
    """The verbosity of a command: `verbose` 1 shows steps and tracebacks, 2 details."""

    json: bool = False
    verbose: int = 0
    quiet: bool = False


def run_options(ctx: click.Context) -> RunOptions:
    """The options of the running command; the defaults until they are parsed."""
    options: RunOptions = ctx.meta.setdefault(_KEY, RunOptions())
    return options


class _EchoHandler(logging.Handler):
    # Looks standard error up for each message, as a progress display replaces it meanwhile.
    @override
    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = redacted_failure(record.getMessage())
            click.echo(f"{record.levelname.capitalize()}: {message}", err=True)
        except (TypeError, ValueError, OSError):
            self.handleError(record)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    setattr(run_options(ctx), str(param.name), value)
    return value


def _run_option(*names: str, help: str, **more: Any) -> click.Option:
    """Make an option that `run_options` holds, known before any other is read."""
    return click.Option(
        names, expose_value=False, is_eager=True, callback=_remember, help=help, **more
    )


# What a field of a question is called on the command line, where that is not its own name.
_FLAGS = {
    "wordings": ("--wording",),
    "parts": ("--part",),
    "urls": ("--url", "--also"),
    "source_urls": ("--url",),
    "sites": ("--site",),
    "years": ("--year",),
    "research_mode": ("--deep",),
    "expansion_budget": ("--budget",),
    "retrieval_mode": ("--mode",),
    "constraints": ("--constraint",),
}
# Its descriptions are for a model; what people have to know is less.
_HELP = {
    "wordings": "Other words that the page may use; up to 5. Wrong guesses do little harm.",
    "parts": "One of the questions that QUESTION holds, of 2 to 4.",
    "research_mode": "Follow the most promising links where the evidence is too thin.",
}
_METAVARS = {"urls": "URL", "source_urls": "URL", "sites": "HOST", "years": "YEAR"}


_ASKING_OPTIONS = (
    click.Option(
        ["--version"],
        metavar="VERSION",
        help="Only this version, as 1.5; of --site, or of whatever has it.",
    ),
    click.Option(["--full"], is_flag=True, help="Print all there is, in sections."),
    click.Option(["--top-k"], type=click.IntRange(min=1), metavar="N", help="Results at most."),
    click.Option(
        ["--max-tokens"],
        type=click.IntRange(min=LEAST_MAX_TOKENS),
        metavar="N",
        help="Tokens printed at most.",
    ),
    click.Option(["--no-pager"], is_flag=True, help="Never page what is longer than a screen."),
)


def question_command(name: str, *fields: str, **more: Any) -> "Callable[[Any], click.Command]":
    """Make a command of a function, with options for fields of a `Question` and for printing."""

    class QuestionCommand(click.Command):
        # Made when they are asked for: the help of the whole program does without pydantic.
        @override
        def get_params(self, ctx: click.Context) -> list[click.Parameter]:
            words, *others = super().get_params(ctx)
            return [words, *map(_question_option, fields), *_ASKING_OPTIONS, *others]

    return command(name, cls=QuestionCommand, **more)


def _question_option(name: str) -> click.Option:
    from webrag.question import Question

    info = Question.model_fields[name]
    parts = get_args(info.annotation)
    kind = parts[0] if NoneType in parts else info.annotation
    is_many = get_origin(kind) is tuple
    value = get_args(kind)[0] if is_many else kind
    more: dict[str, Any] = {"multiple": True} if is_many else {}
    help_text = f"{_HELP.get(name, info.description)}{' Repeatable.' if is_many else ''}"
    if name == "research_mode":
        more = {"flag_value": "deep", "default": info.default}
    elif get_origin(value) is Literal:
        more |= {"type": click.Choice(get_args(value))}
        if info.default in get_args(value):
            more |= {"default": info.default, "show_default": True}
    elif value is int:
        more |= {"type": click.IntRange(min=_least(info))}
        more |= {"metavar": _METAVARS.get(name, "N")}
    elif value is datetime:
        more |= {"callback": parse_moment, "metavar": "DATE|AGE"}
        help_text += " As 2026-05-31, 2026-05-31T12:00, 30d."
    else:
        more |= {"metavar": _METAVARS.get(name, "TEXT")}
        if name in ("urls", "source_urls"):
            more |= {"callback": addresses}
    flags = _FLAGS.get(name, (f"--{name.replace('_', '-')}",))
    return click.Option([*flags, name], help=help_text, **more)


def _least(info: "FieldInfo") -> int:
    return next((each.ge for each in info.metadata if hasattr(each, "ge")), 1)


class Reading(NamedTuple):
    """Limits of what is printed: in sections, so many results and tokens, not paged."""

    full: bool
    top_k: int | None
    max_tokens: int | None
    no_pager: bool

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> "Reading":
        """Take its values out of the options of a command that asks a question."""
        return cls(*map(options.pop, cls._fields))


def asked_question(text: str, options: "Mapping[str, Any]", **more: Any) -> "Question":
    """Check what a command asks, by fields of a question and `version`, before it starts."""
    from webrag.ingestion.versions import checked_version
    from webrag.question import Question, check_question

    given = {name: None if value == () else value for name, value in options.items()} | more
    if version := given.pop("version"):
        # `@1.5` stands for any site's.
        sites = given["sites"] or ("",)
        given["sites"] = tuple(f"{site}@{checked_version(version)}" for site in sites)
    check_question(text)
    return Question.of(text, **given)


host_option = click.option(
    "--host", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]"
)

_SETTINGS_OPTIONS = (
    click.Option(
        ["--allow-host", "allow_host"],
        multiple=True,
        metavar="HOST[:PORT]",
        help="Also contact this host, although its address is private. Repeatable.",
    ),
    click.Option(["--collection"], metavar="NAME", help="Collection of pages to work on."),
    click.Option(
        ["--data-dir"],
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder of the embedded database.",
    ),
    click.Option(["--env-file"], type=click.Path(path_type=Path), help="Settings file to read."),
)

_JSON_OPTION = _run_option("--json", is_flag=True, help="Print the result, or the error, as JSON.")
_RUN_OPTIONS = (
    _run_option("-v", "--verbose", count=True, help="Say what is done; twice for details."),
    _run_option("-q", "--quiet", is_flag=True, help="No progress, and errors only."),
)


def with_settings(
    command: click.Command, *, has_json: bool = True, **settings_by_option: str
) -> click.Command:
    """Give a command the common options, and its callback, context first, the settings as `obj`.

    Only what gives no result takes no `--json`. `settings_by_option` maps the command's own options
    to the settings they set.
    """
    callback: Callable[..., Any] | None = command.callback
    assert callback is not None
    own = [*command.params, _JSON_OPTION] if has_json else command.params
    command.params = [*own, *_SETTINGS_OPTIONS, *_RUN_OPTIONS]
    fields = {"collection": "collection", "data_dir": "data_dir", **settings_by_option}

    @functools.wraps(callback)
    def run(**values: Any) -> Any:
        from webrag.settings import load_settings

        ctx = click.get_current_context()
        _log_to_stderr(ctx)
        overrides = {field: values.pop(option) for option, field in fields.items()}
        chosen = {field: value for field, value in overrides.items() if value is not None}
        env_file, hosts = values.pop("env_file"), values.pop("allow_host")
        ctx.obj = load_settings(env_file, **chosen).allowing(hosts)
        return callback(ctx, **values)

    command.callback = run
    return command


def command(
    name: str,
    *,
    has_json: bool = True,
    sets: "Mapping[str, str] | None" = None,
    **more: Any,
) -> "Callable[[Callable[..., Any]], click.Command]":
    """Make a command as `click.command` does, and give it what `with_settings` gives."""
    make: Callable[..., click.Command] = click.command(name, **more)
    return lambda callback: with_settings(make(callback), has_json=has_json, **sets or {})


def command_line(ctx: click.Context) -> "CommandLine":
    """Say how to print a command that is to be run after this one, with its common options.

    A program within a virtual environment that is not active is named by its path, or as `uv run`
    finds it, which started it. One outside was put on the search path by whoever installed it.
    """
    from webrag.presentation.results import CommandLine
    from webrag.settings.variables import is_run_by_uv

    script, here = Path(sys.argv[0]), Path.cwd()
    program = "webrag"
    if script.name == "__main__.py":
        program = f"{_path(Path(sys.executable), here)} -m webrag"
    elif script.stem == "webrag" and script.is_relative_to(sys.prefix):
        program = _path(script, here)
        if is_run_by_uv():  # which lends its search path
            is_here = here.is_relative_to(Path(sys.prefix).parent)
            program = "uv run webrag" if is_here else program
        elif shutil.which("webrag") == str(script):
            program = "webrag"
    words = [word for host in ctx.params["allow_host"] for word in ("--allow-host", host)]
    for option in ("collection", "data_dir", "env_file"):
        if (value := ctx.params[option]) is not None:
            path = value.absolute() if isinstance(value, Path) else value
            words += [f"--{option.replace('_', '-')}", str(path)]
    return CommandLine(program, tuple(words))


def _path(program: Path, here: Path) -> str:
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))


def _log_to_stderr(ctx: click.Context) -> None:
    options = run_options(ctx)
    by_verbosity = (logging.WARNING, logging.INFO, logging.DEBUG)
    level = logging.ERROR if options.quiet else by_verbosity[min(options.verbose, 2)]
    handler = _EchoHandler(level)
    root, ours = logging.getLogger(), logging.getLogger("webrag")
    # Only our own logger: other libraries write request headers, keys included, at DEBUG.
    ctx.call_on_close(functools.partial(ours.setLevel, ours.level))
    ours.setLevel(min(level, logging.WARNING))
    root.addHandler(handler)
    ctx.call_on_close(functools.partial(root.removeHandler, handler))


def parse_moment(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> datetime | None:
    """Give the moment of an option: a date, or an age such as `7d`; UTC without a time zone."""
    if value is None:
        return None
    age = _age(value)
    if age is not None:
        return datetime.now(UTC) - age
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither a date such as 2026-05-31, a time such as"
            " 2026-05-31T12:00, nor an age such as 7d."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(_ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | None:
    """Give the time span of an option such as `30d`."""
    if value is None:
        return None
    age = _age(value)
    if age is None:
        raise click.BadParameter(f"{value!r} is not a number with s, m, h, d or w, such as 30d.")
    if not age:
        raise click.BadParameter(f"{value!r} would mean every page; give an age such as 30d.")
    return age


def _age(value: str) -> timedelta | None:
    match = re.fullmatch(r"([0-9]{1,5})([smhdw])", value)
    return None if match is None else timedelta(**{_UNITS[match[2]]: int(match[1])})
