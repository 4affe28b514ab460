"""Gives a model of this process the tools of the MCP server, as any client of it sees them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from mcp import Client

from webrag.evaluation.agent import Tools, tool
from webrag.mcp_server.assembly import assemble_server

if TYPE_CHECKING:
    from webrag.app import WebRAG


@asynccontextmanager
async def mcp_tools(memory: "WebRAG") -> AsyncIterator[Tools]:
    """Open a server over an open memory, which stays open, and a session with it.

    Args:
        memory: What the tools work on; its settings are the server's.
    """
    settings = memory.settings.model_copy(update={"mcp_transport": "stdio"})
    server = assemble_server(settings, load=lambda: nullcontext(memory)).server
    async with Client(server) as client:

        async def call(name: str, arguments: dict[str, Any]) -> str:
            result = await client.call_tool(name, arguments)
            return "\n".join(part.text for part in result.content if part.type == "text")

        listed = (await client.list_tools()).tools
        described = [tool(each.name, each.description or "", each.input_schema) for each in listed]
        yield Tools("WebRAG", described, call, client.instructions or "")
