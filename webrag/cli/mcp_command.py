"""`webrag mcp`: serves the tools to MCP clients."""

import click

from webrag.cli.options import with_settings

__all__ = ["mcp_command"]


def _mcp(ctx: click.Context) -> None:
    """Serve the tools answer, search, status and ingest to an MCP client.

    The client starts this command itself; messages go to standard error. With a client that reads
    a JSON configuration, the entry is: {"command": "webrag", "args": ["mcp"]}
    """
    from webrag.mcp_server.server import serve

    serve(ctx.obj)


mcp_command = with_settings(
    click.command("mcp", short_help="Serve MCP clients.")(
        click.option(
            "--transport",
            type=click.Choice(["stdio", "streamable-http"]),
            help="How clients reach the server.  [default: stdio]",
        )(click.pass_context(_mcp))
    ),
    transport="mcp_transport",
)
