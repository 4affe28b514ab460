"""The documentation site bundled for `webrag demo`, and the question the demo asks of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webrag.static_site import serve_static_site

__all__ = ["QUESTION", "START_PAGE", "serve_demo_site"]

START_PAGE = "index.html"

# Its answer stands two links away from the start page, so the loop has to find it.
QUESTION = "What happens to the embedded Postgres server when the last client process is killed?"


@contextmanager
def serve_demo_site() -> Iterator[str]:
    """Serve the bundled site on loopback while the block runs; yields its base URL."""
    with serve_static_site(Path(__file__).parent / "site") as base_url:
        yield base_url
