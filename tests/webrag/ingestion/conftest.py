import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from webrag.ingestion.extract import extract
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig, FetchedPage, NormalizedDocument
from webrag.ingestion.service import ExtractionPool

MakePage = Callable[..., FetchedPage]
Convert = Callable[..., NormalizedDocument]


@pytest.fixture
def make_page() -> MakePage:
    def make(text: str, *, url: str = "https://site.test/docs/page", kind: Any = "html") -> Any:
        return FetchedPage(
            requested_url=url,
            url=url,
            status=200,
            kind=kind,
            text=text,
            fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
            source="test",
        )

    return make


@pytest.fixture
def convert(make_page: MakePage) -> Convert:
    """Extracts a document from the text of a page."""
    return lambda text, **options: extract(make_page(text, **options))


@pytest.fixture
async def make_fetcher() -> AsyncIterator[Callable[..., HttpFetcher]]:
    made: list[HttpFetcher] = []

    def make(*, config: FetchConfig | None = None, **options: Any) -> HttpFetcher:
        fields = {"allowed_hosts": ("127.0.0.1",), **options}
        made.append(HttpFetcher(config or FetchConfig(**fields)))
        return made[-1]

    yield make
    for fetcher in made:
        await fetcher.aclose()


@pytest.fixture
async def pool() -> AsyncIterator[ExtractionPool]:
    opened = ExtractionPool(workers=1, timeout_s=20.0)
    yield opened
    await opened.aclose()


@pytest.fixture
def raw_server() -> Iterator[Callable[[Callable[[socket.socket, bytes], None]], str]]:
    """Starts servers that speak as badly as the test wants: `answer(connection, request)`."""
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(listener: socket.socket, answer: Callable[[socket.socket, bytes], None]) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(5)
                answer(connection, connection.recv(65_536))

    def start(answer: Callable[[socket.socket, bytes], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threads.append(threading.Thread(target=serve, args=(listener, answer)))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join(timeout=10)
