"""HTTP servers for tests: on loopback, quiet, and gone afterwards with all their connections."""

import socket
import ssl
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override

_JSON = {"Content-Type": "application/json"}


class QuietHandler(BaseHTTPRequestHandler):
    """Reads a request's body and answers in one piece."""

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def send(self, status: int, body: bytes, headers: Mapping[str, str] = _JSON) -> None:
        with suppress(ConnectionError):  # the client may have gone
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if not {"Content-Length", "Transfer-Encoding"} & headers.keys():
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD" and status != 304:
                self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test output quiet."""


@contextmanager
def serving(handler: type[QuietHandler], *, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Answer with `handler` while the block runs; yields the base URL, without a slash."""
    server = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        for connection in list(server.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # an idle client keeps it open
        server.server_close()
        thread.join(timeout=10)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them, and no socket is left open
    request_queue_size = 128  # beyond Python's 5 a busy machine has clients connect a second later

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.connections: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.connections.add(connection)
        return connection, address

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients that go away, as cancelled ones do, would print into what a test looks at.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)
