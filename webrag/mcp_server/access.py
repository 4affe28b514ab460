"""Which names the HTTP server answers to, and from which origins. No I/O here."""

import ipaddress
from urllib.parse import urlsplit

from mcp.server.transport_security import TransportSecuritySettings

from webrag.settings import Settings

__all__ = ["is_loopback", "transport_security"]

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 - compared with, not bound


def transport_security(settings: Settings) -> TransportSecuritySettings:
    """Host and Origin headers that are accepted, on every bind address.

    A page that a user visits can send requests to a server on their machine under a name of its
    own (DNS rebinding); it cannot choose the Host header. Accepted are loopback names, the bind
    address, the host of the public URL and what is configured; an entry without a port stands
    for every port.
    """
    hosts = [*_LOOPBACK, *settings.mcp_allowed_hosts]
    if settings.mcp_bind_host not in _WILDCARDS:
        hosts.append(_bracketed(settings.mcp_bind_host))
    origins = [f"{scheme}://{name}" for name in _LOOPBACK for scheme in ("http", "https")]
    origins = [pattern for origin in origins for pattern in (origin, f"{origin}:*")]
    if settings.mcp_public_url:
        parts = urlsplit(settings.mcp_public_url)
        hosts.append(parts.netloc)
        origins.append(f"{parts.scheme}://{parts.netloc}")
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=list(dict.fromkeys(each for host in hosts for each in _with_ports(host))),
        allowed_origins=list(dict.fromkeys([*origins, *settings.mcp_allowed_origins])),
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _with_ports(host: str) -> list[str]:
    named = host.rpartition("]")[2] if host.startswith("[") else host
    return [host] if ":" in named else [host, f"{host}:*"]
