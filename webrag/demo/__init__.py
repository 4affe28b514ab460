"""Serves folders of pages on loopback: the documentation site bundled for `webrag demo`."""

import atexit
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typing_extensions import override

START_PAGE = "index.html"

# Its answer stands two links away from the start page, so the loop has to find it.
QUESTION = "What happens to the embedded Postgres server when the last client process is killed?"


class _QuietHandler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body waits 40 ms for the client's word on the headers

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal for the answer."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # of 5, as it is else, a busy machine has some clients wait a second

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


@contextmanager
def serve_demo_site() -> Iterator[str]:
    """Serve the bundled site on loopback while the block runs; yields its base URL."""
    with serve_static_site(Path(__file__).parent / "site") as base_url:
        yield base_url


@cache
def demo_site_url() -> str:
    """Base URL of the bundled site, served on loopback until the process ends.

    For notebooks, whose cells have no block to serve it in. Every call gives the same address.
    """
    return _FOR_EVER.enter_context(serve_demo_site())


_FOR_EVER = ExitStack()
# Before the interpreter stops its threads: a server whose thread is gone cannot be shut down.
atexit.register(_FOR_EVER.close)
