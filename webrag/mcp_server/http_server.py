"""The MCP server over Streamable HTTP: limits, health, and an orderly end."""

import asyncio
import logging
import signal
import socket
from types import FrameType

import uvicorn
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecuritySettings,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import override

from webrag.mcp_server.access import is_loopback
from webrag.mcp_server.assembly import AssembledServer
from webrag.mcp_server.connections import (
    ConnectionLimits,
    connection_limits,
    open_file_limit,
    protocol,
)
from webrag.mcp_server.gate import Admission, Gate, metadata_route
from webrag.mcp_server.host_check import HostCheck, allowed_names
from webrag.mcp_server.listening import listen
from webrag.mcp_server.messages import MessageCheck
from webrag.mcp_server.running_calls import RunningCalls
from webrag.settings import Settings

__all__ = [
    "HEALTH_PATH",
    "MAX_BODY_BYTES",
    "MAX_SESSIONS",
    "PATH",
    "http_app",
    "serve_http",
    "uvicorn_config",
]

logger = logging.getLogger(__name__)

PATH = "/mcp"
HEALTH_PATH = "/healthz"
# The largest sensible call: 20 quotations of 10,000 characters.
MAX_BODY_BYTES = 1_048_576
# An abandoned session holds 37 KB until its time is over.
MAX_SESSIONS = 1000
SESSION_IDLE_S = 300.0
# `docker stop` kills after 10 s.
_FINISH_S = 6.0
_CLOSE_S = 2


def http_app(
    assembled: AssembledServer,
    settings: Settings,
    *,
    max_sessions: int = MAX_SESSIONS,
    session_idle_s: float = SESSION_IDLE_S,
) -> Starlette:
    """The application, ready to be run by an ASGI server; it can be run once.

    Args:
        assembled: From `assemble_server`, with the same settings.
        settings: Names, origins and whether sessions are kept.
        max_sessions: Sessions at once; a client that would begin another one is refused.
        session_idle_s: Seconds without a request after which a session ends.
    """
    server, runtime = assembled.server, assembled.runtime

    async def health(_request: Request) -> Response:
        if runtime.has_failed:
            # Tried again with every question about it, so that the server recovers unasked.
            runtime.start()
            return JSONResponse({"status": "unavailable"}, status_code=503)
        return JSONResponse({"status": "ok" if runtime.is_ready else "starting"})

    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=settings.mcp_stateless,
        max_request_body_size=MAX_BODY_BYTES,
        session_idle_timeout=session_idle_s,
        max_sessions=max_sessions,
        # Checked by `HostCheck`, which the SDK's comparison of beginnings would only narrow.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        host=settings.mcp_bind_host,
    )
    sessions = server.session_manager
    # Inside of the token's check; limited once more, because a body is read whole before that.
    sessions.asgi_app = RequestBodyLimitMiddleware(MessageCheck(sessions.asgi_app), MAX_BODY_BYTES)
    app.router.routes.append(Route(HEALTH_PATH, health, methods=["GET"]))
    if assembled.admission is not None:
        _guard(app, assembled.admission)
    # The outermost, so that nothing answers under a foreign name.
    app.add_middleware(HostCheck, names=allowed_names(settings), unchecked=frozenset({HEALTH_PATH}))
    return app


def _guard(app: Starlette, admission: Admission) -> None:
    """Let nobody in without a token, except to what says how to get one and to the health."""
    open_paths = [HEALTH_PATH]
    metadata = metadata_route(admission)
    if metadata is not None:
        app.router.routes.append(metadata)
        open_paths.append(metadata.path)
    app.add_middleware(
        Gate, admission=admission, open_paths=open_paths, max_body_bytes=MAX_BODY_BYTES
    )


def serve_http(assembled: AssembledServer, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; calls under way get 6 s to finish, then are cancelled.

    Raises:
        ConfigurationError: Nothing can listen on the configured address.
    """
    # uvicorn would end the process with the words of the operating system.
    sockets = listen(settings.mcp_bind_host, settings.mcp_port)
    asyncio.run(_serve(assembled, settings, sockets))


async def _serve(
    assembled: AssembledServer, settings: Settings, sockets: list[socket.socket]
) -> None:
    limits = connection_limits(open_file_limit())
    config = uvicorn_config(http_app(assembled, settings), limits)
    _announce(settings)
    await _FinishingServer(config, assembled.calls).serve(sockets)


def uvicorn_config(app: Starlette, limits: ConnectionLimits) -> uvicorn.Config:
    """How the application is served."""
    return uvicorn.Config(
        app,
        http=protocol(limits),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_CLOSE_S,
        # Proxies are told apart by names, not by headers that anybody can send.
        proxy_headers=False,
        server_header=False,
        ws="none",
    )


def _announce(settings: Settings) -> None:
    host, port = settings.mcp_bind_host, settings.mcp_port
    shown = f"[{host}]" if ":" in host else host
    logger.info("WebRAG MCP server starts on http://%s:%d%s", shown, port, PATH)
    if is_loopback(host):
        return
    if not settings.mcp_needs_token:
        logger.warning(
            "ANYBODY who can reach %s:%d can use this server and read what it stored: MCP_HOST is "
            "public and MCP_AUTH_TOKEN is not set. Set a token, or bind to 127.0.0.1.",
            host,
            port,
        )
    if not settings.mcp_allowed_hosts and settings.mcp_public_url is None:
        logger.warning(
            "Clients can reach this server by loopback names and its bind address only; name "
            "others in MCP_ALLOWED_HOSTS or MCP_PUBLIC_URL."
        )


class _FinishingServer(uvicorn.Server):
    """Lets calls finish before it closes connections: uvicorn ends event streams at once."""

    def __init__(self, config: uvicorn.Config, calls: RunningCalls) -> None:
        super().__init__(config)
        self._calls = calls
        self._finishing: asyncio.Task[None] | None = None

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._finishing is not None or sig not in (signal.SIGTERM, signal.SIGINT):
            self.should_exit = True
            return
        loop = asyncio.get_running_loop()
        self._finishing = loop.create_task(self._finish())

    async def _finish(self) -> None:
        # A signal may come before anything listens.
        for server in getattr(self, "servers", ()):
            server.close()
        if self._calls:
            logger.info("Waiting for %d calls to finish", len(self._calls))
        await self._calls.finish(_FINISH_S)
        self.should_exit = True
