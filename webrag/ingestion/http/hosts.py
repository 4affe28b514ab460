"""Reads `host` and `host:port` as operators write them; it resolves no name."""

import re
from ipaddress import IPv6Address

_ENTRY = re.compile(r"(\[[^\]]*\]|[^\s/:@\[\]?#,*\\\x00-\x1f]+)(?::([1-9][0-9]{0,4}))?", re.ASCII)
_MAX_PORT = 65_535


def host_and_port(entry: str) -> tuple[str, int | None]:
    """The host, an IPv6 address without its brackets, and the port where one is named.

    An IPv6 address with a port needs brackets; without them, all of it is the host.

    Raises:
        ValueError: It is neither `host` nor `host:port`.
    """
    if entry.count(":") > 1 and not entry.startswith("["):
        return _ipv6(entry, entry), None
    found = _ENTRY.fullmatch(entry)
    if found is None or not found[1].strip("."):
        raise ValueError(f"{entry!r} is not a host, or a host and a port")
    host, port = found[1], found[2] and int(found[2])
    if port and port > _MAX_PORT:
        raise ValueError(f"{entry!r} names an impossible port")
    return _ipv6(host[1:-1], entry) if host.startswith("[") else host, port or None


def _ipv6(text: str, entry: str) -> str:
    try:
        # One of a link alone has its name behind a percent sign.
        return str(IPv6Address(text.replace("%", " ")))
    except ValueError:
        raise ValueError(f"{entry!r} is not a host, or a host and a port") from None
