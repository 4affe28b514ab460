"""The commands that serve: `webrag mcp` for MCP clients, `webrag web` for people."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webrag.cli.options import command, host_option, run_options
from webrag.cli.running import run, start_progress
from webrag.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webrag.settings import Settings

_SERVED = {"host": "mcp_host", "port": "mcp_port"}


@command(
    "mcp",
    has_json=False,
    sets=_SERVED | {"transport": "mcp_transport"},
    short_help="Serve MCP clients.",
)
@click.option(
    "--transport",
    type=click.Choice(["stdio", "streamable-http", "http"]),
    callback=lambda _ctx, _param, value: "streamable-http" if value == "http" else value,
    help="How clients reach the server; http is short for streamable-http.  [default: stdio]",
)
@host_option
@click.option("--port", type=int, help="Port to listen on.  [default: 8765]")
@click.option("--print-config", metavar="CLIENT", help="Print what the client's file needs.")
@click.option("--install", metavar="CLIENT", help="Write that into the file, after asking.")
@click.option("--yes", is_flag=True, help="With --install: do not ask.")
@click.option("--check", is_flag=True, help="Start the server as a client would, and ask it.")
def mcp_command(
    ctx: click.Context, /, print_config: str | None, install: str | None, check: bool, yes: bool
) -> None:
    """Serve the tools answer, search, read, status, ingest and verify to MCP clients.

    Over stdio the client starts this command itself; messages go to standard error. A client is
    one of claude-desktop, claude-code, cursor, vscode, codex, gemini, windsurf and zed; what is
    written for it names this program by its path and keeps the options given here.

    With --transport http it serves http://HOST:PORT/mcp until it is stopped. MCP_AUTH_TOKEN sets
    the bearer token that clients must send.

    \b
    webrag mcp --install claude-desktop
    webrag mcp --print-config vscode --collection work
    webrag mcp --check
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    if (print_config is not None) + (install is not None) + check > 1:
        raise InputError("--print-config, --install and --check exclude each other.")
    if (print_config or install or check) and ctx.obj.mcp_transport != "stdio":
        raise InputError("--print-config, --install and --check are for a server on stdio.")
    if name := print_config or install:
        _configure(name, _start(ctx), writes=install is not None, asks=not yes)
        return
    if check:
        from webrag.mcp_server.clients import check as tried

        command = _start(ctx)
        click.echo(f"Starting {shlex.join(command)} ...", err=True)
        seconds, tools, status = run(tried(command))
        click.echo(f"It answers after {seconds:.1f} s, with {', '.join(tools)}.")
        count = status.partition("Documents indexed: ")[2].partition("\n")[0]
        click.echo(f"Pages stored: {count}" if count else status)
        return
    from webrag.mcp_server.server import serve

    if ctx.obj.mcp_transport == "stdio" and sys.stdin.isatty():
        click.echo(
            "Waiting for an MCP client on standard input; clients start this command themselves, "
            "as docs/clients.md shows. `webrag mcp --install CLIENT` tells one. Ctrl-C ends it.",
            err=True,
        )
    serve(ctx.obj)


def _configure(name: str, command: list[str], *, writes: bool, asks: bool) -> None:
    from webrag.mcp_server.clients import CLIENTS, block, install

    if name not in CLIENTS:
        raise InputError(f"There is no client {name!r}; there are {', '.join(CLIENTS)}.")
    client = CLIENTS[name]
    lines = block(client, command)
    if not writes:
        click.echo(lines)
        click.echo(f"It belongs in {client.path}.", err=True)
        return
    if asks:
        if not sys.stdin.isatty():
            raise InputError(f"Writing {client.path} needs --yes when nobody can be asked.")
        click.echo(lines, err=True)
        click.confirm(f"Write this into {client.path}?", err=True, abort=True)
    path = install(client, command)
    click.echo(f"Written to {path}. Start {client.title} again, and ask it to search WebRAG.")


def _start(ctx: click.Context) -> list[str]:
    """The command that starts this server from anywhere, with what a client would not see."""
    from webrag.settings.model import is_fixed
    from webrag.settings.variables import usual_folder

    settings: Settings = ctx.obj
    program = Path(sys.argv[0]).absolute()
    is_script = program.stem == "webrag" and program.is_file()
    command = [str(program)] if is_script else [sys.executable, "-m", "webrag"]
    values: dict[str, Sequence[object]] = {
        "collection": [settings.collection],
        "data_dir": [settings.data_dir.absolute()],
        "allow_hosts": settings.allow_hosts,
    }
    fixed = [field for field in settings.origins if is_fixed(settings, field)]
    for origin in sorted(settings.origin(field) for field in fixed if field not in values):
        if origin != "argument":
            click.echo(
                f"Note: clients do not see {origin}; write it into {settings.file}.", err=True
            )
    if settings.data_dir != usual_folder("data"):
        fixed.append("data_dir")
    words = [
        word
        for field in values
        if field in fixed
        for value in values[field]
        for word in (f"--{field.replace('_', '-').removesuffix('s')}", str(value))
    ]
    file = ctx.params["env_file"] or settings.file
    if file is not None and file != usual_folder("config") / ".env" and file.exists():
        words += ["--env-file", str(file.absolute())]
    return [*command, "mcp", *words]


@command("web", has_json=False, sets=_SERVED, short_help="Ask and read in a browser.")
@click.option("--no-open", is_flag=True, help="Print the address only; open no browser.")
@host_option
@click.option(
    "--port", type=int, help="Port to listen on.  [default: 8765, or a free one when it is taken]"
)
def web_command(ctx: click.Context, /, no_open: bool) -> None:
    """Ask and read in a browser, and look after what is stored.

    Serves a page on this machine until it is stopped with Ctrl-C, prints its address and opens it.
    Every sentence of an answer shows where it stands in the stored page; sites are added there,
    refreshed and forgotten. Nothing is loaded from elsewhere, and nobody else can reach it unless
    --host says so: set MCP_AUTH_TOKEN before, and the page asks for that token.

    The same server answers MCP clients at /mcp, as `webrag mcp --transport http` does, which serves
    this page too.

    \b
    webrag web
    webrag web --collection manuals --no-open
    webrag web --port 9000 --allow-host 192.168.1.10
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    from webrag.mcp_server.server import serve_page
    from webrag.settings.variables import has_display

    quiet = run_options(ctx).quiet

    def listening(address: str) -> None:
        is_started()
        click.echo(address if quiet else f"WebRAG is at {address} (Ctrl-C ends it)")
        if not no_open and has_display(for_addresses=True):
            click.launch(address)

    try:
        with start_progress("Starting", quiet=quiet) as is_started:
            serve_page(ctx.obj, on_listening=listening)
    except KeyboardInterrupt:
        if not quiet:
            click.echo("Stopped. What was stored completely is kept.", err=True)
