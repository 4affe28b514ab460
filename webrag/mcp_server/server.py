"""The MCP server over stdio; it answers the protocol before WebRAG itself is loaded."""

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib.metadata import version

from mcp.server.mcpserver import MCPServer

from webrag.errors import ConfigurationError
from webrag.mcp_server.runtime import LoadMemory, ResearchMemory, Runtime
from webrag.mcp_server.schemas import INSTRUCTIONS
from webrag.mcp_server.tools import ResearchTools
from webrag.settings import Settings

__all__ = ["build_server", "serve"]

logger = logging.getLogger(__name__)


def build_server(settings: Settings, *, load: LoadMemory | None = None) -> MCPServer[Runtime]:
    """A server that is ready to run; neither LlamaIndex nor a database is touched yet.

    Must be called where it will run: one server serves one event loop.

    Args:
        settings: Deadlines, logging and what the memory is opened with.
        load: Makes the memory, unopened; None for `WebRAG(settings)`. Runs in a thread.
    """
    runtime = Runtime(load or partial(_load_webrag, settings))
    tools = ResearchTools(
        runtime,
        timeout_s=settings.mcp_tool_timeout,
        soft_deadline_s=settings.mcp_soft_deadline,
    )

    @asynccontextmanager
    async def lifespan(_server: MCPServer[Runtime]) -> AsyncIterator[Runtime]:
        runtime.start()
        try:
            yield runtime
        finally:
            await runtime.close()
            logger.info("WebRAG MCP server stopped")

    return MCPServer(
        "webrag",
        title="WebRAG",
        instructions=INSTRUCTIONS,
        version=version("webrag"),
        lifespan=lifespan,
        tools=tools.tools(),
    )


def serve(settings: Settings) -> None:
    """Serve over standard input and output until the client goes away.

    Standard output carries the protocol alone; the log goes to standard error.

    Raises:
        ConfigurationError: Another transport is configured.
    """
    if settings.mcp_transport != "stdio":
        raise ConfigurationError(
            f"MCP_TRANSPORT is {settings.mcp_transport!r}; this version serves 'stdio' only."
        )
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    # Only our own logger: other libraries write request headers, keys included, at DEBUG.
    logging.getLogger("webrag").setLevel(settings.mcp_log_level)
    server = build_server(settings)
    logger.info("WebRAG MCP server starts on stdio")
    try:
        server.run("stdio")
    except KeyboardInterrupt:
        logger.info("WebRAG MCP server was interrupted")


def _load_webrag(settings: Settings) -> AbstractAsyncContextManager[ResearchMemory]:
    # Imported here: LlamaIndex takes more than a second, and clients wait for the tool list.
    from webrag.app import WebRAG

    return WebRAG(settings, soft_deadline_s=settings.mcp_soft_deadline)
