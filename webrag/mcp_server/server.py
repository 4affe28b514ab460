"""Serves MCP clients; the protocol is answered before WebRAG itself is loaded."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from mcp.server.mcpserver import MCPServer

from webrag.concurrency import run_in_loop
from webrag.errors import ConfigurationError
from webrag.mcp_server.assembly import AssembledServer, assemble_server
from webrag.mcp_server.runtime import LoadMemory, Runtime
from webrag.mcp_server.stdio import serve_stdio
from webrag.redaction import RedactingFormatter
from webrag.settings import Settings
from webrag.settings.fields import is_loopback

logger = logging.getLogger(__name__)

_ENDINGS = ((signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted"))
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def build_server(settings: Settings, *, load: LoadMemory | None = None) -> MCPServer[Runtime]:
    """A server that is ready to run, see `assemble_server`."""
    return assemble_server(settings, load=load).server


def serve(settings: Settings) -> None:
    """Serve over the configured transport until the client goes away or the process is told to end.

    Over stdio, standard output carries the protocol alone; the log goes to standard error.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING,
        force=True,
    )
    for handler in logging.getLogger().handlers:
        handler.setFormatter(RedactingFormatter(_LOG_FORMAT))
    # Only our own logger: other libraries write request headers, keys included, at DEBUG.
    logging.getLogger("webrag").setLevel(settings.mcp_log_level)
    try:
        if settings.mcp_transport == "stdio":
            run_in_loop(_serve_stdio(assemble_server(settings)))
        else:
            # Imported here: processes that speak stdio need no web server.
            from webrag.mcp_server.http_server import serve_http

            serve_http(assemble_server(settings), settings)
    except KeyboardInterrupt:
        logger.info("WebRAG MCP server was interrupted")


def serve_page(settings: Settings, *, on_listening: Callable[[str], None]) -> None:
    """Serve the page for people, and MCP beside it, until the process is told to end.

    Args:
        settings: Over HTTP whatever they say; with the port in use, a free one is taken unless it
            was asked for.
        on_listening: Told the address of the page.

    Raises:
        ConfigurationError: Nothing can listen on the configured address.
    """
    from webrag.mcp_server.http_server import serve_http

    over_http = settings.model_copy(update={"mcp_transport": "streamable-http"})
    assembled = assemble_server(over_http)
    # Whoever sits at this machine may do there what the commands do.
    is_local = is_loopback(settings.mcp_bind_host)
    try:
        serve_http(assembled, over_http, is_local=is_local, on_listening=on_listening)
    except ConfigurationError:
        if settings.origin("mcp_port") != "default":
            raise
        anywhere = over_http.model_copy(update={"mcp_port": 0})
        serve_http(assembled, anywhere, is_local=is_local, on_listening=on_listening)


async def _serve_stdio(assembled: AssembledServer) -> None:
    logger.info("WebRAG MCP server starts on stdio")
    ending: list[asyncio.Task[None]] = []

    def end(number: signal.Signals, how: str) -> None:
        if ending:  # told twice: at once
            os._exit(_exit_code(number))
        ending.append(asyncio.create_task(_end_process(assembled, number, how)))

    for number, how in _ENDINGS:
        with suppress(NotImplementedError, RuntimeError):  # no signal handlers on Windows
            asyncio.get_running_loop().add_signal_handler(number, end, number, how)
    await serve_stdio(assembled.server)
    if ending:
        await ending[0]


async def _end_process(assembled: AssembledServer, number: signal.Signals, how: str) -> None:
    await assembled.calls.finish(0)
    await assembled.runtime.close()
    logger.info("WebRAG MCP server was %s", how)
    logging.shutdown()
    # An exit in good order waits for threads, one of which may be in the middle of a computation.
    os._exit(_exit_code(number))


def _exit_code(number: signal.Signals) -> int:
    """As shells report the end by a signal."""
    return 128 + number
