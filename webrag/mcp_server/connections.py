"""How many connections the HTTP server holds, and how long one may keep it waiting."""

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

import h11
import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["ConnectionLimits", "connection_limits", "open_file_limit", "protocol"]

# Postgres, page fetches, models and worker processes of one server need fewer.
_OTHER_FILES = 256
_FEWEST = 64
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n"
    b"content-type: text/plain\r\ncontent-length: 21\r\n\r\nToo many connections."
)


@dataclass(frozen=True)
class ConnectionLimits:
    """What one server grants to those who connect.

    Attributes:
        connections: At once; one more is told so and closed.
        request_s: From the first moment of a connection, or the first byte of a later request, to
            the end of the request's body. Whoever sends a byte a second gains nothing.
        idle_s: Between an answer and the next request.
    """

    connections: int = 2000
    request_s: float = 20.0
    idle_s: float = 30.0


def connection_limits(open_files: int | None) -> ConnectionLimits:
    """The limits for a process that may open so many files; None when nobody knows.

    Without files to spare the server could not reach its database.
    """
    most = ConnectionLimits()
    if open_files is None or open_files < 0:  # minus one stands for no limit
        return most
    return ConnectionLimits(min(most.connections, max(_FEWEST, open_files - _OTHER_FILES)))


def open_file_limit() -> int | None:
    """How many files this process may open; None where the system does not tell."""
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
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
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
