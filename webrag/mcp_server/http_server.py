"""The MCP server over Streamable HTTP: its address, connections, health, and an orderly end."""

import asyncio
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from webrag.concurrency import run_in_loop
from webrag.errors import AccessDeniedError, ConfigurationError, WebRAGError
from webrag.mcp_server.authorization.callers import (
    InvalidTokenError,
    UncheckedTokenError,
    missing_scopes,
)
from webrag.mcp_server.authorization.gate import (
    UNCHECKED,
    Admission,
    Gate,
    caller_of,
    metadata_route,
)
from webrag.mcp_server.request_checks import HostCheck, MessageCheck, allowed_names
from webrag.mcp_server.runtime import RunningCalls
from webrag.mcp_server.server import AssembledServer
from webrag.settings import Settings
from webrag.settings.variables import is_loopback
from webrag.web.asking import ask_routes
from webrag.web.corpus import corpus_routes
from webrag.web.reading import read_routes
from webrag.web.rendering import Templates
from webrag.web.runs import Runs
from webrag.web.settings import settings_routes
from webrag.web.sign_in import SignIn
from webrag.web.site import COLLECTION_COOKIE, NotKeptError, Site, is_part_of_another_site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webrag.app import WebRAG


# The form for a token needs them, and they say nothing.
STATIC_PATHS = ("/static/icon.svg", "/static/page.js", "/static/style.css")


def add_page(
    app: Starlette, assembled: AssembledServer, settings: Settings, *, is_local: bool
) -> Templates:
    """Serve the page at `/` over the server's memory; give what renders it.

    Whoever opens the page of a server that `is_local` may delete pages, open other collections and
    change settings, as the commands do.
    """
    entry = assembled.access
    assert entry is not None, "the server was assembled for stdio"
    templates = Templates(collection=settings.collection)
    may_switch = is_local and assembled.admission is None
    # A proxy on this machine may bring others here.
    has_other_names = bool(settings.mcp_public_url or settings.mcp_allowed_hosts)

    def switched(request: Request) -> str | None:
        """The collection that was opened in place of the server's own."""
        chosen = templates.read_signed(request.cookies.get(COLLECTION_COOKIE, ""))
        return chosen if may_switch and chosen != settings.collection else None

    def collection_of(request: Request) -> str:
        caller = caller_of(request)
        own = None if caller is None else caller.collection
        return switched(request) or own or settings.collection

    @asynccontextmanager
    async def enter(request: Request, tool: str) -> "AsyncIterator[WebRAG]":
        if is_part_of_another_site(request):
            raise AccessDeniedError("A page of another site cannot show this as a part of itself.")
        caller = caller_of(request)
        with assembled.calls.entered():
            async with entry.admitted(caller, tool, collection=switched(request)) as runtime:
                yield await runtime.memory()

    def check(request: Request, tool: str) -> None:
        entry.check_scopes(caller_of(request), tool)

    def owner_of(request: Request) -> str:
        caller = caller_of(request)
        # No name of a collection has a blank.
        return f"{collection_of(request)} {'' if caller is None else caller.name}"

    site = Site(
        enter=enter,
        check=check,
        owner_of=owner_of,
        collection_of=collection_of,
        templates=templates,
        runs=Runs(assembled.calls.entered),
        may_forget=is_local or settings.mcp_enable_forget,
        may_switch=may_switch,
        settings=lambda: assembled.settings,
        renew=assembled.renew if may_switch and not has_other_names else None,
    )

    async def show_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, WebRAGError)
        return site.error(request, error)

    async def show_missing(request: Request, _error: Exception) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse("Not Found", status_code=404)
        return site.error(request, NotKeptError("There is no page at this address."))

    app.add_exception_handler(WebRAGError, show_error)
    app.add_exception_handler(404, show_missing)
    parts = (ask_routes, read_routes, corpus_routes, settings_routes)
    app.router.routes.extend(route for routes in parts for route in routes(site))
    app.mount("/static", StaticFiles(packages=[("webrag.web", "static")]), name="static")
    return templates


def add_sign_in(
    app: Starlette, templates: Templates, admission: Admission, *, api_path: str
) -> None:
    """Let browsers show a token; must be added outside of the check of tokens."""

    async def accepts(token: str) -> bool:
        try:
            caller = await admission.caller(token)
        except InvalidTokenError:
            return False
        except UncheckedTokenError as error:
            raise WebRAGError(UNCHECKED) from error
        if missing := missing_scopes(caller, None):
            raise AccessDeniedError(f"The token lacks {' and '.join(sorted(missing))}.")
        return True

    app.add_middleware(SignIn, templates=templates, accepts=accepts, api_path=api_path)


def listen(host: str, port: int) -> list[socket.socket]:
    """Bind a socket, which the caller closes, for each address of a name; port 0 is a free one."""
    with ExitStack() as unfinished:
        bound: list[socket.socket] = []
        for family, address in _addresses(host, port):
            try:
                server = socket.create_server(address, family=family, backlog=2048)
                bound.append(unfinished.enter_context(server))
            except OSError as error:
                # A name may have an address of a family that is switched off.
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise _refusal(host, port, error.errno) from None
        if not bound:
            raise _refusal(host, port)
        unfinished.pop_all()
    return bound


def _addresses(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    try:
        found = socket.getaddrinfo(
            host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"Nothing can listen on {host!r}: the name has no address.",
            hint="Give an address of this machine with --host or MCP_HOST, such as 127.0.0.1.",
        ) from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _refusal(host: str, port: int, code: int | None = None) -> ConfigurationError:
    if code == errno.EADDRINUSE:
        return ConfigurationError(
            f"Port {port} of {host} is in use by another program.",
            hint="Choose another with --port or MCP_PORT, or stop that program.",
        )
    if code == errno.EACCES:
        return ConfigurationError(
            f"Port {port} may not be used without special rights.",
            hint="Choose one from 1024 up with --port or MCP_PORT.",
        )
    return ConfigurationError(
        f"Nothing can listen on {host}: it is not an address of this machine.",
        hint="Give one that is with --host or MCP_HOST, such as 127.0.0.1 or 0.0.0.0.",
    )


# Postgres, page fetches, models and worker processes of one server need fewer.
_OTHER_FILES = 256

_FEWEST = 64

_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n"
    b"content-type: text/plain\r\ncontent-length: 21\r\n\r\nToo many connections."
)


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of connections at once, and of the time for requests and between them.

    A request's time is from its first byte, or the connection's start, to the end of its body:
    whoever sends a byte a second gains nothing.
    """

    connections: int = 2000
    request_s: float = 20.0
    idle_s: float = 30.0


def connection_limits(open_files: int | None) -> ConnectionLimits:
    """Give limits that leave some files of a process, None where unknown, for the database."""
    most = ConnectionLimits()
    if open_files is None or open_files < 0:  # minus one stands for no limit
        return most
    return ConnectionLimits(min(most.connections, max(_FEWEST, open_files - _OTHER_FILES)))


def open_file_limit() -> int | None:
    """Number of files this process may open; None where the system does not tell."""
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class _TimedProtocol(H11Protocol):
    limits = ConnectionLimits()

    def __init__(self, config: uvicorn.Config, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.timeout_keep_alive = self.limits.idle_s  # type: ignore[assignment]
        self._deadline: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.write(_BUSY)
            transport.close()
            return
        self._await_request()

    @override
    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        # As long as a request has not come whole: its head before there is a cycle, then its body.
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self._await_request()
        else:
            self._stop_waiting()

    @override
    def on_response_complete(self) -> None:
        self._stop_waiting()
        super().on_response_complete()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.limits.request_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The HTTP protocol of uvicorn with limits: its own waits without end for a first request."""
    return type("TimedProtocol", (_TimedProtocol,), {"limits": limits})


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
    is_local: bool = False,
) -> Starlette:
    """Make the application, which can be run once; sessions beyond the limit are refused."""
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
    templates = add_page(app, assembled, settings, is_local=is_local)
    if assembled.admission is not None:
        _guard(app, assembled.admission)
        add_sign_in(app, templates, assembled.admission, api_path=PATH)
    # Outside of the token's check: browsers ask beforehand, and without it.
    app.add_middleware(
        CORSMiddleware,
        allow_origins=settings.mcp_allowed_origins,
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=("*",),
        expose_headers=("Mcp-Session-Id", "WWW-Authenticate"),
    )
    # The outermost, so that nothing answers under a foreign name.
    app.add_middleware(HostCheck, names=allowed_names(settings), unchecked=frozenset({HEALTH_PATH}))
    return app


def _guard(app: Starlette, admission: Admission) -> None:
    """Let nobody in without a token, except to what says how to get one and to the health."""
    open_paths = [HEALTH_PATH, *STATIC_PATHS]
    metadata = metadata_route(admission)
    if metadata is not None:
        app.router.routes.append(metadata)
        open_paths.append(metadata.path)
    app.add_middleware(
        Gate, admission=admission, open_paths=open_paths, max_body_bytes=MAX_BODY_BYTES
    )


def serve_http(
    assembled: AssembledServer,
    settings: Settings,
    *,
    is_local: bool = False,
    on_listening: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; calls under way get 6 s to finish, then are cancelled.

    The page's address is told to `on_listening` as soon as a browser can connect.
    """
    # uvicorn would end the process with the words of the operating system.
    sockets = listen(settings.mcp_bind_host, settings.mcp_port)
    app = http_app(assembled, settings, is_local=is_local)
    _announce(settings)
    if on_listening is not None:
        on_listening(_page_address(settings.mcp_bind_host, sockets[0].getsockname()[1]))
    config = uvicorn_config(app, connection_limits(open_file_limit()))
    run_in_loop(_FinishingServer(config, assembled.calls).serve(sockets))


def _page_address(host: str, port: int) -> str:
    host = "127.0.0.1" if host in ("0.0.0.0", "") else "::1" if host == "::" else host  # noqa: S104
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def uvicorn_config(app: Starlette, limits: ConnectionLimits) -> uvicorn.Config:
    """Serving options of the application."""
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
