"""Serves a folder of pages on loopback, for demo and evaluation; never beyond this machine."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typing_extensions import override


class _QuietHandler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal for the answer."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that go away."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serve_static_site(directory: Path) -> Iterator[str]:
    """Serve `directory` on a free loopback port while the block runs.

    Yields:
        The base URL, `http://127.0.0.1:PORT/`.
    """
    server = _Server(("127.0.0.1", 0), partial(_QuietHandler, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever, name="static-site", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
