"""Options that every command takes, how they are read, and the settings made from them."""

import functools
import logging
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from typing_extensions import override

from webrag.argument_checks import LEAST_MAX_TOKENS
from webrag.cli.words import typed_addresses
from webrag.redaction import redacted_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webrag.question import Question

_KEY = "webrag.run_options"

_Command = TypeVar("_Command", bound="Callable[..., Any]")


@dataclass
class RunOptions:
    """How a command talks.

    Attributes:
        json: Results and errors are JSON objects on standard output.
        verbose: 1 for messages of what is done and tracebacks, 2 for details.
        quiet: No progress, and only errors.
    """

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


json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_remember,
    help="Print the result, or the error, as JSON.",
)

wordings_option = click.option(
    "--wording",
    "wordings",
    multiple=True,
    metavar="TEXT",
    help="Other words the page may use: terms, names of options or functions, a sentence you expect"
    " there. A wrong guess does little harm. Repeatable, up to 5.",
)

parts_option = click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="TEXT",
    help="One of the 2 to 4 questions that QUESTION holds; each is to be answered. Repeatable.",
)

url_option = click.option(
    "--url",
    "urls",
    multiple=True,
    callback=typed_addresses,
    metavar="URL",
    help="Only this page. Repeatable.",
)


def deep_option(help: str) -> "Callable[[_Command], _Command]":
    """The option that lets a question follow links."""
    return click.option("--deep", "research_mode", flag_value="deep", default="fast", help=help)


site_option = click.option(
    "--site",
    "sites",
    multiple=True,
    metavar="HOST",
    help="Only this host; the address of its root will do. HOST@1.5 for one version of it."
    " Repeatable.",
)

version_option = click.option(
    "--version",
    metavar="VERSION",
    help="Only this version, as 1.5; of --site, or of whatever has it.",
)


def versioned_sites(sites: tuple[str, ...], version: str | None) -> tuple[str, ...]:
    """The sites that are asked for, with the version where one is; `@1.5` stands for any site's.

    Raises:
        InputError: The version cannot be used.
    """
    if version is None:
        return sites
    from webrag.ingestion.versions import checked_version

    return tuple(f"{site}@{checked_version(version)}" for site in sites or ("",))


year_option = click.option(
    "--year",
    "years",
    type=click.IntRange(1, 9999),
    multiple=True,
    metavar="YEAR",
    help="Only pages published in this year. Repeatable.",
)


def with_options(*options: "Callable[[_Command], _Command]") -> "Callable[[_Command], _Command]":
    """A decorator that gives a command several options, listed by its help in this order."""

    def decorated(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


@dataclass(frozen=True)
class Reading:
    """How much of a result is printed.

    Attributes:
        full: All there is, in sections.
        top_k: Results at most.
        max_tokens: Of everything.
        pager: Page what is longer than a screen.
    """

    full: bool
    top_k: int | None
    max_tokens: int | None
    pager: bool

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> "Reading":
        """Take the values of `reading_options` out of those of a command."""
        full, top_k, max_tokens = map(options.pop, ("full", "top_k", "max_tokens"))
        return cls(full, top_k, max_tokens, pager=not options.pop("no_pager"))


def asked_question(text: str, options: "Mapping[str, Any]", **more: Any) -> "Question":
    """Check what a command asks before anything is started for it.

    Args:
        text: The question.
        options: Those of the command, named as fields of a question, and `version`.
        more: Further fields of the question.

    Raises:
        InputError: A value cannot be used.
    """
    from webrag.question import Question, check_question

    given = {name: None if value == () else value for name, value in options.items()} | more
    version = given.pop("version")
    given["sites"] = versioned_sites(given["sites"] or (), version) or None
    check_question(text)
    return Question.of(text, **given)


def reading_options(command: _Command) -> _Command:
    """Options for how much of a result is printed, the same wherever a question is asked."""
    return with_options(
        click.option("--full", is_flag=True, help="Print all there is, in sections."),
        click.option("--top-k", type=click.IntRange(min=1), metavar="N", help="Results at most."),
        click.option(
            "--max-tokens",
            type=click.IntRange(min=LEAST_MAX_TOKENS),
            metavar="N",
            help="Tokens printed at most.",
        ),
        click.option("--no-pager", is_flag=True, help="Never page what is longer than a screen."),
    )(command)


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
    click.Option(["--collection"], metavar="NAME", help="Corpus to work on."),
    click.Option(
        ["--data-dir"],
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder of the embedded database.",
    ),
    click.Option(["--env-file"], type=click.Path(path_type=Path), help="Settings file to read."),
)

_RUN_OPTIONS = (
    click.Option(
        ["-v", "--verbose"],
        count=True,
        expose_value=False,
        is_eager=True,
        callback=_remember,
        help="Say what is done; twice for details.",
    ),
    click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_remember,
        help="No progress, and errors only.",
    ),
)


def with_settings(command: click.Command, **settings_by_option: str) -> click.Command:
    """Give a command the common options, and its callback the settings as the context's object.

    Args:
        command: Its callback takes the settings first, through `click.pass_obj`.
        settings_by_option: Further options of the command that set a setting, for example
            `transport="mcp_transport"`.
    """
    callback: Callable[..., Any] | None = command.callback
    assert callback is not None
    command.params = [*command.params, *_SETTINGS_OPTIONS, *_RUN_OPTIONS]
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
        return callback(**values)

    command.callback = run
    return command


def _log_to_stderr(ctx: click.Context) -> None:
    handler = _EchoHandler()
    root, ours = logging.getLogger(), logging.getLogger("webrag")
    level = ours.level
    _set_level(handler, run_options(ctx))
    root.addHandler(handler)

    def undo() -> None:
        root.removeHandler(handler)
        ours.setLevel(level)

    ctx.call_on_close(undo)


def _set_level(handler: logging.Handler, options: RunOptions) -> None:
    by_verbosity = (logging.WARNING, logging.INFO, logging.DEBUG)
    level = logging.ERROR if options.quiet else by_verbosity[min(options.verbose, 2)]
    handler.setLevel(level)
    # Only our own logger: other libraries write request headers, keys included, at DEBUG.
    logging.getLogger("webrag").setLevel(min(level, logging.WARNING))


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


as_of_option = click.option(
    "--as-of",
    callback=parse_moment,
    metavar="DATE|AGE",
    help="Answer from what was stored then, as far as it was kept, and fetch nothing:"
    " 2026-05-31, 2026-05-31T12:00, 30d.",
)

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
