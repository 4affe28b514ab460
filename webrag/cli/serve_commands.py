"""The commands that serve: `webrag mcp` for MCP clients, `webrag web` for people."""

import sys

import click

from webrag.cli.options import host_option, run_options, with_options, with_settings


def _mcp(ctx: click.Context) -> None:
    """Serve the tools answer, search, status, ingest and verify to MCP clients.

    Over stdio the client starts this command itself; messages go to standard error. With a client
    that reads a JSON configuration, the entry is: {"command": "webrag", "args": ["mcp"]}

    With --transport http it serves http://HOST:PORT/mcp until it is stopped. MCP_AUTH_TOKEN sets
    the bearer token that clients must send.
    """
    from webrag.mcp_server.server import serve

    if ctx.obj.mcp_transport == "stdio" and sys.stdin.isatty():
        click.echo(
            "Waiting for an MCP client on standard input; clients start this command themselves, "
            "as docs/clients.md shows. Ctrl-C ends it.",
            err=True,
        )
    serve(ctx.obj)


def _full_name(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    return "streamable-http" if value == "http" else value


_with_mcp_options = with_options(
    click.option(
        "--transport",
        type=click.Choice(["stdio", "streamable-http", "http"]),
        callback=_full_name,
        help="How clients reach the server; http is short for streamable-http.  [default: stdio]",
    ),
    host_option,
    click.option("--port", type=int, help="Port to listen on.  [default: 8765]"),
)


mcp_command = with_settings(
    click.command("mcp", short_help="Serve MCP clients.")(
        _with_mcp_options(click.pass_context(_mcp))
    ),
    transport="mcp_transport",
    host="mcp_host",
    port="mcp_port",
)


def _web(ctx: click.Context, *, no_open: bool) -> None:
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

    quiet = run_options(ctx).quiet

    def listening(address: str) -> None:
        click.echo(address if quiet else f"WebRAG is at {address} (Ctrl-C ends it)")
        if not no_open:
            click.launch(address)

    try:
        serve_page(ctx.obj, on_listening=listening)
    except KeyboardInterrupt:
        if not quiet:
            click.echo("Stopped. What was stored completely is kept.", err=True)


_with_web_options = with_options(
    click.option("--no-open", is_flag=True, help="Print the address only; open no browser."),
    host_option,
    click.option(
        "--port",
        type=int,
        help="Port to listen on.  [default: 8765, or a free one when it is taken]",
    ),
)


web_command = with_settings(
    click.command("web", short_help="Ask and read in a browser.")(
        _with_web_options(click.pass_context(_web))
    ),
    host="mcp_host",
    port="mcp_port",
)
