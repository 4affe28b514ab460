"""`webrag mcp`: serves the tools to MCP clients."""

import sys

import click

from webrag.cli.options import host_option, with_options, with_settings


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


_with_options = with_options(
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
    click.command("mcp", short_help="Serve MCP clients.")(_with_options(click.pass_context(_mcp))),
    transport="mcp_transport",
    host="mcp_host",
    port="mcp_port",
)
