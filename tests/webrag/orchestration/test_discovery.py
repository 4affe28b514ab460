import asyncio
from collections.abc import Sequence
from datetime import datetime

import pytest

from webrag.errors import FetchError, ProviderError
from webrag.ingestion.models import MappedLink
from webrag.orchestration.links.expander import LinkDiscovery

URLS = [f"https://docs.test/{number}" for number in range(5)]
DOWN = ProviderError("Firecrawl failed (HTTP 503).", provider="Firecrawl", hint="Wait.")


class Store:
    """Remembers which pages were mapped."""

    def __init__(self) -> None:
        self.mapped: dict[str, Sequence[MappedLink]] = {}

    async def unmapped(self, urls: Sequence[str]) -> list[str]:
        return [url for url in urls if url not in self.mapped]

    async def store(self, url: str, links: Sequence[MappedLink], at: datetime) -> None:
        assert at.tzinfo is not None
        self.mapped[url] = links


class Mapper:
    name = "firecrawl"

    def __init__(self, answer: object = None) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int]] = []

    async def map(self, url: str, *, limit: int) -> list[MappedLink]:
        self.asked.append((url, limit))
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer == "silence":
            await asyncio.Event().wait()
        return [MappedLink(url=f"{url}/more")]


async def discovered(mapper: Mapper, store: Store, timeout_s: float = 5) -> str | None:
    discovery = LinkDiscovery(mapper, store, limit=7)  # type: ignore[arg-type]
    return await discovery.discover_links(URLS, timeout_s=timeout_s)


async def test_few_pages_are_asked_about_in_one_round_and_none_twice() -> None:
    mapper, store = Mapper(), Store()

    for _ in range(3):
        assert await discovered(mapper, store) is None

    assert mapper.asked == [(url, 7) for url in URLS]
    assert store.mapped[URLS[0]] == [MappedLink(url=f"{URLS[0]}/more")]


async def test_failure_of_the_service_is_a_sentence_and_the_page_can_be_asked_about_later() -> None:
    store = Store()

    sentence = await discovered(Mapper(DOWN), store)

    assert sentence == (
        "Firecrawl failed (HTTP 503). Wait. Links were followed without its list of the site's"
        " pages."
    )
    assert store.mapped == {}


async def test_site_that_cannot_be_listed_is_not_asked_about_again() -> None:
    store = Store()

    assert await discovered(Mapper(FetchError("no site", url=URLS[0])), store) is None

    assert store.mapped == {url: [] for url in URLS[:3]}


async def test_silent_service_costs_no_more_than_its_time() -> None:
    sentence = await discovered(Mapper("silence"), Store(), timeout_s=0.05)

    assert sentence is not None
    assert "in time" in sentence
    assert len(asyncio.all_tasks()) == 1


async def test_failure_of_the_database_is_not_hidden() -> None:
    class Broken(Store):
        async def unmapped(self, _urls: Sequence[str]) -> list[str]:
            raise ValueError("database")

    with pytest.raises(ValueError, match="database"):
        await discovered(Mapper(), Broken())
