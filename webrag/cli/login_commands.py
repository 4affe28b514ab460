"""`webrag login`: sessions of the user's own, kept on this machine, listed and deleted."""

import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webrag.argument_checks import shown_moment
from webrag.cli.options import command, run_options
from webrag.cli.output import print_columns, print_either, print_json
from webrag.cli.running import run
from webrag.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webrag.ingestion.logins.session import Cookie
    from webrag.ingestion.logins.store import LoginStore
    from webrag.settings import Settings

_KEPT = {
    "keyring": "its key is in the keyring of your system",
    "file": "its key is in a file beside it, which only you can read",
}


@command("login", short_help="Keep your session of a site, to read its pages.")
@click.argument("host", required=False)
@click.option(
    "--cookies",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take them from a cookies.txt, in place of a window.",
)
@click.option(
    "--browser",
    "endpoint",
    metavar="URL",
    help="Sign in in a Chromium that runs already, as http://127.0.0.1:9222.",
)
@click.option(
    "--remove",
    is_flag=True,
    help="Delete the session of HOST; the site is not told, and pages read with it stay stored.",
)
def login_command(
    ctx: click.Context, host: str | None, file: Path | None, endpoint: str | None, remove: bool
) -> None:
    """Open HOST in a window, let you sign in, and keep the cookies, encrypted, on this machine.

    From then on your own commands read pages of HOST with them: that very host and port, over
    https, and no other. Pages read so are marked, and `webrag corpus export` leaves them out.

    Without HOST: list the sites whose session is kept, never what it holds.

    \b
    webrag login wiki.example.com
    webrag login wiki.example.com --cookies cookies.txt
    webrag login wiki.example.com --remove
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    from webrag.ingestion.logins.session import Login, checked_host, cookies_for, read_cookie_file

    if (file is not None) + (endpoint is not None) + remove > 1:
        raise InputError("--cookies, --browser and --remove exclude each other.")
    if host is None:
        if remove or file is not None or endpoint is not None:
            raise InputError("Name the host, as in `webrag login wiki.example.com`.")
        _list(ctx)
        return
    name = checked_host(host)
    store = _store(ctx.obj)
    if remove:
        if not store.forget(name):
            known = ", ".join(store.hosts()) or "none"
            raise InputError(f"There is no login for {name}; there is: {known}.")
        said = f"Deleted the login for {name}. `webrag forget --site {name}` deletes pages that"
        print_either(ctx, {"host": name}, f"{said} were read with it.")
        return
    if file is not None:
        cookies = cookies_for(name, read_cookie_file(file))
    else:
        cookies = _signed_in(ctx.obj, name, endpoint)
    if not cookies:
        whence = f"The file {file} has" if file is not None else "The browser has"
        raise InputError(f"{whence} no cookies of {name}, so that nothing was kept.")
    login = Login(name, cookies, saved_at=datetime.now(UTC))
    place = store.save(login)
    from webrag.presentation.reports import counted

    value = {"host": name, "cookies": len(cookies), "expires_at": login.expires_at}
    kept = f"Kept {counted(len(cookies), 'cookie')} of {name}, encrypted; {_KEPT[place]}."
    print_either(ctx, value, kept)


def _list(ctx: click.Context) -> None:
    settings: Settings = ctx.obj
    found = [*_store(settings).load(), *settings.header_logins]
    if run_options(ctx).json:
        print_json(
            {
                "logins": [
                    {
                        "host": each.host,
                        "cookies": len(each.cookies),
                        "headers": [name for name, _ in each.headers],
                        "saved_at": each.saved_at,
                        "expires_at": each.expires_at,
                    }
                    for each in found
                ]
            }
        )
        return
    if not found:
        click.echo("There are no logins; `webrag login HOST` keeps one.")
        return
    rows, now = [("HOST", "KEPT", "ENDS")], datetime.now(UTC)
    for each in found:
        kept = f"{each.saved_at:%Y-%m-%d}" if each.saved_at else "WEBRAG_LOGIN_HEADERS"
        end = shown_moment(each.expires_at) if each.expires_at else "when the site ends it"
        is_over = each.expires_at is not None and each.expires_at <= now
        rows.append((each.host, kept, "expired" if is_over else end))
    print_columns(rows)


def _store(settings: "Settings") -> "LoginStore":
    from webrag.ingestion.logins.store import LoginStore
    from webrag.wiring.page_sources import LOGINS_FOLDER

    return LoginStore(settings.data_dir / LOGINS_FOLDER)


def _signed_in(settings: "Settings", host: str, endpoint: str | None) -> "tuple[Cookie, ...]":
    from webrag.wiring.page_sources import find_browser_for_login

    executable = find_browser_for_login(settings, has_endpoint=endpoint is not None)
    from webrag.ingestion.logins.window import sign_in

    how = "press Enter here or close the tab" if sys.stdin.isatty() else "close the tab"
    click.echo(f"Sign in to {host}, then {how}.", err=True)
    return run(sign_in(host, executable=executable, endpoint=endpoint, finished=_end_of_line()))


def _end_of_line() -> "Callable[[], bool]":
    """Tell if the user has pressed Enter since; never, where nobody sits at a terminal."""
    pressed = threading.Event()

    def wait() -> None:
        sys.stdin.readline()
        pressed.set()

    if sys.stdin.isatty():
        threading.Thread(target=wait, daemon=True).start()
    return pressed.is_set
