from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from webrag.corpus.indexer import Indexer
from webrag.corpus.models import LinkCandidate
from webrag.corpus.pages import Corpus
from webrag.corpus.site_index import MappedLinks, enriched
from webrag.ingestion.models import MappedLink, NormalizedDocument, OutgoingLink
from webrag.postgres.database import Database

URL = "https://docs.test/guide"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
OWN = [
    OutgoingLink(url="https://docs.test/a", anchor_text="here", char_start=0, char_end=1),
    OutgoingLink(url="https://docs.test/b", anchor_text="Page b", sentence="Read page b."),
]
MAPPED = [
    MappedLink(url="https://docs.test/a", title="Page a", description="About a."),
    MappedLink(url="https://docs.test/b", title="B, mapped", description="About b."),
    MappedLink(url="https://docs.test/c", title="Page c", description="About c."),
    MappedLink(url=URL, title="The page itself"),
]
MakeDocument = Callable[..., NormalizedDocument]


@pytest.fixture
def store(database: Database) -> MappedLinks:
    return MappedLinks(database)


@pytest.fixture
def index(indexer: Indexer, make_document: MakeDocument) -> Callable[..., Awaitable[Any]]:
    def store_page(text: str = "# Guide\n\nText of the guide.\n") -> Awaitable[Any]:
        return indexer.index(make_document(URL, text, OWN), depth=0)

    return store_page


async def test_mapped_links_fill_in_and_follow_the_pages_own(
    corpus: Corpus, store: MappedLinks, index: Callable[..., Awaitable[Any]]
) -> None:
    await index()

    await store.store(URL, MAPPED, NOW)

    found = await corpus.links([URL])
    assert [(link.url[-1], link.title, link.description, link.origin) for link in found] == [
        ("a", "Page a", "About a.", "page"),
        ("b", "Page b", "Read page b.", "page"),
        ("c", "Page c", "About c.", "map"),
    ]
    assert (found[0].char_start, found[2].char_start) == (0, None)


async def test_page_is_mapped_once(
    store: MappedLinks, index: Callable[..., Awaitable[Any]]
) -> None:
    await index()
    assert await store.unmapped([URL, "https://docs.test/unknown", URL]) == [URL]

    await store.store(URL, [], NOW)

    assert await store.unmapped([URL]) == []


async def test_storing_again_replaces_what_was_listed(
    corpus: Corpus, store: MappedLinks, index: Callable[..., Awaitable[Any]]
) -> None:
    await index()
    await store.store(URL, MAPPED, NOW)

    await store.store(URL, [MappedLink(url="https://docs.test/d")], NOW)

    assert [link.url[-1] for link in await corpus.links([URL])] == ["a", "b", "d"]


async def test_page_that_is_not_stored_keeps_nothing(corpus: Corpus, store: MappedLinks) -> None:
    await store.store(URL, MAPPED, NOW)

    assert await corpus.links([URL]) == []


async def test_mapped_links_do_not_change_what_the_page_is(
    corpus: Corpus, store: MappedLinks, index: Callable[..., Awaitable[Any]]
) -> None:
    await index()
    await store.store(URL, MAPPED, NOW)

    again = await index()

    assert again.outcome == "unchanged"
    assert await store.unmapped([URL]) == []


async def test_changed_page_may_be_mapped_again(
    store: MappedLinks, index: Callable[..., Awaitable[Any]]
) -> None:
    await index()
    await store.store(URL, MAPPED, NOW)

    await index("# Guide\n\nAnother text of the guide.\n")

    assert await store.unmapped([URL]) == [URL]


def test_links_of_other_pages_are_left_alone() -> None:
    links = [
        LinkCandidate(source_url="p", url="t", title=""),
        LinkCandidate(source_url="q", url="t", title="T", origin="map"),
    ]

    assert enriched(links) == links
