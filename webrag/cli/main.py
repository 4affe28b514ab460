"""The command group: which commands there are, and how every error ends."""

import atexit
import contextlib
import errno
import gc
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import click
from typing_extensions import override

from webrag.cli.answer_command import answer_command, search_command
from webrag.cli.ask_command import ask_command
from webrag.cli.config_command import config_command
from webrag.cli.corpus_commands import (
    doctor_command,
    drop_command,
    export_command,
    forget_command,
    import_command,
    reindex_command,
    status_command,
)
from webrag.cli.demo_command import demo_command
from webrag.cli.eval_command import compare_command, eval_command
from webrag.cli.ingest_command import ingest_command
from webrag.cli.jobs_commands import jobs_command, schedule_command
from webrag.cli.login_commands import login_command, logins_command, logout_command
from webrag.cli.mcp_command import mcp_command
from webrag.cli.models_command import models_command
from webrag.cli.options import RunOptions, run_options, with_settings
from webrag.cli.output import as_json, error_value, shown
from webrag.cli.read_command import read_command
from webrag.cli.verify_command import verify_command
from webrag.cli.versions_command import compare_versions_command
from webrag.cli.web_command import web_command
from webrag.cli.worker_command import worker_command
from webrag.errors import (
    ConfigurationError,
    FetchError,
    InputError,
    RefusedAddressError,
    WebRAGError,
)
from webrag.redaction import redacted_failure

__all__ = ["main"]

_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class _Commands(click.Group):
    """Turns every error of a command into a sentence and an exit code."""

    @override
    def invoke(self, ctx: click.Context) -> Any:
        _never_fail_on_output()
        options = run_options(ctx)
        try:
            with _seldom_collected():
                return super().invoke(ctx)
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
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="webrag", message="%(prog)s %(version)s")
def main() -> None:
    """Ask web pages a question, get verbatim, located, linked evidence.

    Start with `webrag demo`: it needs no key, no server and no network.
    """


main.add_command(demo_command)
main.add_command(answer_command)
main.add_command(search_command)
main.add_command(ask_command)
main.add_command(read_command)
main.add_command(ingest_command)
main.add_command(login_command)
main.add_command(logins_command)
main.add_command(logout_command)
main.add_command(worker_command)
main.add_command(jobs_command)
main.add_command(schedule_command)
main.add_command(status_command)
main.add_command(verify_command)
main.add_command(compare_versions_command)
main.add_command(forget_command)
main.add_command(export_command)
main.add_command(import_command)
main.add_command(doctor_command)
main.add_command(reindex_command)
main.add_command(drop_command)
main.add_command(config_command)
main.add_command(models_command)
main.add_command(web_command)
main.add_command(mcp_command)
main.add_command(with_settings(eval_command))
main.add_command(with_settings(compare_command))


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


def _never_fail_on_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


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
    click.echo(shown(f"Error: {error}"), err=True)
    if error.hint:
        click.echo(shown(error.hint), err=True)
    if isinstance(error, RefusedAddressError) and error.host:
        click.echo(shown(f"For this command alone: --allow-host {error.host}"), err=True)
