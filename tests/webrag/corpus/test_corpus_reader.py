from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.ingestion.models import NormalizedDocument, OutgoingLink

MakeDocument = Callable[..., NormalizedDocument]
URL = "https://docs.test/guide"


def at(day: int) -> datetime:
    return datetime(2026, 6, day, tzinfo=UTC)


async def test_corpus_gives_back_the_markdown_it_was_given(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    document = make_document(markdown="# Ünïcode 🧪\r\n\r\nCafé e\u0301 text.\r\n")

    await indexer.index(document)

    assert await corpus.markdown(URL) == document.markdown


async def test_corpus_finds_a_page_by_its_requested_url(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(requested_url="https://docs.test/old"))

    page = await corpus.page("https://docs.test/old")

    assert page is not None
    assert page.url == URL


async def test_corpus_finds_a_page_by_every_url_that_led_to_it(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(requested_url="https://docs.test/a"))
    await indexer.index(make_document(requested_url="https://docs.test/b"))
    await indexer.index(make_document(markdown="# New\n\ntext\n"))

    found = await corpus.pages(
        ["https://docs.test/a", "https://docs.test/b", URL, "https://x.test/"]
    )

    assert {asked: page.url for asked, page in found.items()} == {
        "https://docs.test/a": URL,
        "https://docs.test/b": URL,
        URL: URL,
    }


async def test_canonical_url_wins_over_an_alias(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(requested_url="https://docs.test/a"))
    await indexer.index(make_document("https://docs.test/a", markdown="# Own page\n\ntext\n"))

    page = await corpus.page("https://docs.test/a")

    assert page is not None
    assert page.url == "https://docs.test/a"


async def test_status_counts_gone_pages_apart(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    await indexer.index(make_document("https://docs.test/b", markdown="# B\n\ntext\n"))
    await corpus.mark_gone("https://docs.test/b", at(1))

    status = await corpus.status()

    assert (status.documents, status.gone) == (1, 1)
    assert status.chunks == (await corpus.page(URL)).chunk_count


async def test_status_lists_the_most_recently_fetched_page_first(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document("https://docs.test/a", fetched_at=at(1)))
    await indexer.index(make_document("https://docs.test/b", "# B\n\ntext\n", fetched_at=at(2)))

    status = await corpus.status()

    assert [page.url for page in status.pages] == ["https://docs.test/b", "https://docs.test/a"]


async def test_status_names_the_embedding_model_and_the_database(corpus: Corpus) -> None:
    status = await corpus.status()

    assert (status.embedding_model, status.embedding_dimensions) == ("counting", 16)
    assert status.database.startswith("embedded PostgreSQL")


async def test_status_of_one_page_leaves_out_the_others(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(links=["https://docs.test/x"]))
    await indexer.index(
        make_document("https://docs.test/b", "# B\n\ntext\n", links=["https://y.test/"])
    )

    status = await corpus.status(URL)

    assert [page.url for page in status.pages] == [URL]
    assert (status.documents, status.links) == (1, 1)


async def test_status_of_an_unknown_page_is_empty(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())

    status = await corpus.status("https://docs.test/none")

    assert (status.documents, status.chunks, status.pages) == (0, 0, ())


async def test_status_leaves_the_listing_out_on_request(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())

    status = await corpus.status(include_urls=False)

    assert (status.documents, status.pages) == (1, ())


async def test_links_come_back_in_page_order_with_their_source(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    start = make_document().markdown.index("Snapshots")
    link = OutgoingLink(
        url="https://docs.test/snap",
        anchor_text="Snapshots",
        sentence="About snapshots.",
        heading="Storage guide",
        rel=("nofollow",),
        char_start=start,
        char_end=start + 9,
    )
    await indexer.index(make_document(links=[link, "https://docs.test/b"]), depth=2)

    first, second = await corpus.links([URL])

    assert first.model_dump() == {
        "source_url": URL,
        "url": "https://docs.test/snap",
        "title": "Snapshots",
        "description": "About snapshots.",
        "heading": "Storage guide",
        "rel": ("nofollow",),
        "char_start": start,
        "char_end": start + 9,
        "source_depth": 2,
        "origin": "page",
        "found_in": "",
    }
    assert second.url == "https://docs.test/b"


async def test_places_of_links_are_those_that_reach_into_a_passage(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    spans = [(0, 4), (6, 9), (12, 15)]
    links = [
        OutgoingLink(url=f"https://x.test/{at}", anchor_text="", char_start=start, char_end=end)
        for at, (start, end) in enumerate(spans)
    ]
    await indexer.index(make_document(links=[*links, "https://docs.test/navigation"]))

    places = await corpus.link_places([("https://docs.test/none", 0, 99), (URL, 4, 13)])

    assert list(map(sorted, places)) == [[], [(6, 9), (12, 15)]]


async def test_links_of_several_pages_follow_the_order_asked_for(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(links=["https://docs.test/1"]))
    await indexer.index(make_document("https://docs.test/b", "# B\n\nx\n", ["https://docs.test/2"]))

    links = await corpus.links(["https://docs.test/b", URL, "https://docs.test/none"])

    assert [link.url for link in links] == ["https://docs.test/2", "https://docs.test/1"]


async def test_scope_holds_retrievable_pages_of_the_sites(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    await indexer.index(make_document("https://www.docs.test/b", "# B\n\nx\n"))
    await indexer.index(make_document("https://other.test/", "# C\n\nx\n"))
    await indexer.index(make_document("https://docs.test/gone", "# D\n\nx\n"))
    await corpus.mark_gone("https://docs.test/gone", at(1))

    assert await corpus.urls_in_scope(["docs.test"]) == ([URL, "https://www.docs.test/b"], 2)
    assert await corpus.urls_in_scope(["docs.test"], limit=1) == ([URL], 2)
    assert (await corpus.urls_in_scope(None))[1] == 3
    assert await corpus.page_counts(["docs.test", "none.test"]) == {"docs.test": 2}


async def test_markdown_of_an_unknown_page_is_none(corpus: Corpus) -> None:
    assert await corpus.markdown("https://docs.test/none") is None
    assert await corpus.page_text(uuid4()) is None


async def test_page_of_another_age_is_not_confused_by_time_zones(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    fetched = datetime(2026, 1, 1, 23, 30, tzinfo=UTC) + timedelta(microseconds=7)
    await indexer.index(make_document(fetched_at=fetched))

    assert (await corpus.page(URL)).fetched_at == fetched
