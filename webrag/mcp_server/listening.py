"""The address an HTTP server listens on, taken before anything else is started."""

import errno
import socket
from contextlib import ExitStack

from webrag.errors import ConfigurationError

__all__ = ["listen"]


def listen(host: str, port: int) -> list[socket.socket]:
    """Bound sockets, one for each address of the name; the caller closes them.

    Args:
        host: Name or address of this machine; `0.0.0.0` and `::` are all of a kind.
        port: From 1 to 65,535; 0 takes a free one.

    Raises:
        ConfigurationError: The port is taken or needs rights, or the address is not this machine's.
    """
    with ExitStack() as unfinished:
        bound: list[socket.socket] = []
        absent: OSError | None = None
        for family, address in _addresses(host, port):
            try:
                bound.append(unfinished.enter_context(_bind(family, address)))
            except OSError as error:
                # A name may have an address of a family that is switched off.
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise _refusal(host, port, error) from None
                absent = error
        if not bound and absent is not None:
            raise _refusal(host, port, absent)
        unfinished.pop_all()
    return bound


def _addresses(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    try:
        found = socket.getaddrinfo(
            host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise ConfigurationError(
            f"Nothing can listen on {host!r}: the name has no address.",
            hint="Give an address of this machine with --host or MCP_HOST, such as 127.0.0.1.",
        ) from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _bind(family: int, address: tuple[object, ...]) -> socket.socket:
    return socket.create_server(address, family=family, backlog=2048)


def _refusal(host: str, port: int, error: OSError) -> ConfigurationError:
    if error.errno == errno.EADDRINUSE:
        return ConfigurationError(
            f"Port {port} of {host} is in use by another program.",
            hint="Choose another with --port or MCP_PORT, or stop that program.",
        )
    if error.errno == errno.EACCES:
        return ConfigurationError(
            f"Port {port} may not be used without special rights.",
            hint="Choose one from 1024 up with --port or MCP_PORT.",
        )
    return ConfigurationError(
        f"Nothing can listen on {host}: it is not an address of this machine.",
        hint="Give one that is with --host or MCP_HOST, such as 127.0.0.1 or 0.0.0.0.",
    )
