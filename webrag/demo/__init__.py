"""The documentation site bundled for `webrag demo`, and the question the demo asks of it."""

import atexit
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from webrag.static_site import serve_static_site

START_PAGE = "index.html"

# Its answer stands two links away from the start page, so the loop has to find it.
QUESTION = "What happens to the embedded Postgres server when the last client process is killed?"


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
