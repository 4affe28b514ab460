"""Checks what requests carry: JSON-RPC messages, with the words of a refusal, names and origins."""

import ipaddress
import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webrag.settings import Settings

# No answer can repeat it: UTF-8 has none.
_HALF_PAIR = re.compile("[\ud800-\udfff]")

_NO_MESSAGE = (
    "Invalid request: this is not one JSON-RPC 2.0 message of valid Unicode; `jsonrpc` must be "
    '"2.0", `method` a string, `params` an object, `id` a string or an integer.'
)


def refusal(text: bytes) -> JSONRPCError | None:
    """Give the error to answer with; None for a request, a notification or a response.

    The SDK drops such lines unanswered over stdio, takes a request with an unusable id for a
    notification, and words the others over HTTP with the internals of its validator.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return _error(PARSE_ERROR, "Parse error: the message is not JSON.")
    given = message if isinstance(message, dict) else {}
    if _is_identity(given.get("id", 0)) or "method" not in given:
        with suppress(ValidationError):
            jsonrpc_message_adapter.validate_json(text, by_name=False)
            return None
    return _error(INVALID_REQUEST, _NO_MESSAGE, given.get("id"))


def _is_identity(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _error(code: int, text: str, identity: object = None) -> JSONRPCError:
    known = identity if _is_identity(identity) and not _HALF_PAIR.search(str(identity)) else None
    error = ErrorData(code=code, message=text)
    return JSONRPCError.model_validate({"jsonrpc": "2.0", "id": known, "error": error})


class MessageCheck:
    """Answers 400 to bodies, limited before, that are no JSON-RPC message; others get through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, receive, is_whole = await read_ahead(receive)
        refused = refusal(body) if is_whole else None
        if refused is None:
            await self._app(scope, receive, send)
            return
        # `id` must be told even when it is null.
        content = refused.model_dump_json(by_alias=True, exclude_unset=True)
        response = Response(content, status_code=400, media_type="application/json")
        await response(scope, receive, send)


async def read_ahead(receive: Receive, at_most: float = math.inf) -> tuple[bytes, Receive, bool]:
    """Read a body, of a longer one its beginning; the request can be received again.

    The last is False where the body is longer or its client has gone.
    """
    seen: list[Message] = []
    size, is_whole = 0, False
    while not is_whole and size <= at_most:
        message = await receive()
        seen.append(message)
        size += len(message.get("body", b""))
        if message["type"] != "http.request":
            break
        is_whole = not message.get("more_body", False)
    body = b"".join(message.get("body", b"") for message in seen)
    seen.reverse()

    async def again() -> Message:
        return seen.pop() if seen else await receive()

    return body, again, is_whole


_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 - compared with, not bound

_DEFAULT_PORTS = {"http": 80, "https": 443}

_MAX_PORT = 65_535

# DNS allows 253; a longer header is not worth reading.
_AUTHORITY = re.compile(
    r"(?P<host>\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?)"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?",
    re.IGNORECASE | re.ASCII,
)

_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#@\s]+)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Authority:
    """Host, lower case and short IPv6 in brackets, and port of a Host header or an origin."""

    host: str
    port: int | None


def parse_authority(text: str) -> Authority | None:
    """Read `host` or `host:port`; None for everything else, a user name included."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    port = None if match["port"] is None else int(match["port"])
    if port is not None and port > _MAX_PORT:
        return None
    host = match["host"].lower()
    if not host.startswith("["):
        return None if ".." in host else Authority(host, port)
    try:
        return Authority(f"[{ipaddress.IPv6Address(host[1:-1])}]", port)
    except ValueError:
        return None


@dataclass(frozen=True)
class AllowedNames:
    """The names that a server answers to, without a port for every port, and the origins it serves.

    Origins have scheme, authority and port; those of this machine may have any port.
    """

    hosts: frozenset[Authority]
    origins: frozenset[tuple[str, Authority]]

    def accepts_host(self, value: str) -> bool:
        """Tell if a Host header names this server."""
        named = parse_authority(value)
        if named is None:
            return False
        return named in self.hosts or Authority(named.host, None) in self.hosts

    def accepts_origin(self, value: str) -> bool:
        """Tell if a page of this origin may call this server."""
        origin = _parse_origin(value)
        if origin is None:
            return False
        return origin in self.origins or origin[1].host in _LOOPBACK


def allowed_names(settings: Settings) -> AllowedNames:
    """Read which Host and Origin headers are accepted, on every bind address.

    A page that a user visits can send requests to a server on their machine under a name of its own
    (DNS rebinding), but not choose the Host header. Origins of this machine may have any port.
    """
    hosts = [*_LOOPBACK, *map(_as_sent, settings.mcp_allowed_hosts)]
    if settings.mcp_bind_host not in _WILDCARDS:
        host = settings.mcp_bind_host
        hosts.append(f"[{host}]" if ":" in host and not host.startswith("[") else host)
    origins = [
        f"{scheme}://{_as_sent(authority)}"
        for scheme, _, authority in (each.partition("://") for each in settings.mcp_allowed_origins)
    ]
    if settings.mcp_public_url:
        parts = urlsplit(settings.mcp_public_url)
        hosts.append(_as_sent(parts.netloc))
        origins.append(f"{parts.scheme}://{_as_sent(parts.netloc)}")
    return AllowedNames(
        hosts=frozenset(filter(None, map(parse_authority, hosts))),
        origins=frozenset(filter(None, map(_parse_origin, origins))),
    )


class HostCheck:
    """Answers 421 and 403 to requests for another name or from a page of another origin.

    Paths that tell nothing and that probes ask for by changing addresses stay unchecked.
    """

    def __init__(
        self, app: ASGIApp, names: AllowedNames, *, unchecked: frozenset[str] = frozenset()
    ) -> None:
        self._app = app
        self._names = names
        self._unchecked = unchecked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        if scope["type"] != "http" or scope["path"] in self._unchecked:
            return None
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or not self._names.accepts_host(hosts[0]):
            return Response("Invalid Host header", status_code=421)
        origins = _values(scope, b"origin")
        # Programs send none; a browser sends one.
        if len(origins) > 1 or not all(map(self._names.accepts_origin, origins)):
            return Response("Invalid Origin header", status_code=403)
        return None


def _parse_origin(text: str) -> tuple[str, Authority] | None:
    match = _ORIGIN.fullmatch(text)
    authority = None if match is None else parse_authority(match["authority"])
    if match is None or authority is None:
        return None
    scheme = match["scheme"].lower()
    # Browsers leave the default port out.
    return scheme, Authority(authority.host, authority.port or _DEFAULT_PORTS[scheme])


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _as_sent(authority: str) -> str:
    """A configured name as clients write it: in the alphabet of the DNS."""
    if authority.isascii():
        return authority
    host, colon, port = authority.partition(":")
    return f"{host.encode('idna').decode()}{colon}{port}"
