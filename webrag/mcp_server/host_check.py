"""Checks the names and origins that a request carries; no tokens."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from webrag.settings import Settings

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

    Origins have scheme, authority and port, those of `any_port` scheme and host alone.
    """

    hosts: frozenset[Authority]
    origins: frozenset[tuple[str, Authority]]
    any_port: frozenset[tuple[str, str]]

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
        scheme, authority = origin
        return origin in self.origins or (scheme, authority.host) in self.any_port


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
    local = [f"{scheme}://{name}" for name in _LOOPBACK for scheme in _DEFAULT_PORTS]
    return AllowedNames(
        hosts=frozenset(filter(None, map(parse_authority, hosts))),
        origins=frozenset(filter(None, map(_parse_origin, origins))),
        any_port=frozenset(
            (scheme, authority.host)
            for scheme, authority in filter(None, map(_parse_origin, local))
        ),
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
