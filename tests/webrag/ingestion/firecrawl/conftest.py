from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from webrag.ingestion.firecrawl.source import FirecrawlSource
from webrag.ingestion.models import FirecrawlConfig

from .fake_firecrawl import KEY, FakeFirecrawl


@pytest.fixture
def firecrawl() -> Iterator[FakeFirecrawl]:
    """A running fake Firecrawl."""
    fake = FakeFirecrawl()
    yield fake
    fake.stop()


async def public_resolver(host: str, _port: int) -> list[str]:
    """Says that every name ending in `.test` is public, and knows no other."""
    if not host.endswith(".test"):
        raise OSError("unknown name")
    return ["192.168.1.5"] if host.startswith("intranet.") else ["93.184.215.14"]


@pytest.fixture
async def make_source(
    firecrawl: FakeFirecrawl,
) -> AsyncIterator[Callable[..., FirecrawlSource]]:
    """Makes Firecrawl sources that ask the fake; names ending in `.test` are public."""
    made: list[FirecrawlSource] = []

    def make(**config: Any) -> FirecrawlSource:
        given = {"api_url": firecrawl.url, "api_key": KEY, "timeout_s": 5.0, "backoff_s": 0.01}
        given |= {"poll_s": 0.02, **config}
        made.append(FirecrawlSource(FirecrawlConfig(**given), resolver=public_resolver))
        return made[-1]

    yield make
    for source in made:
        await source.aclose()
