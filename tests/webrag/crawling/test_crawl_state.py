import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from psycopg import sql

from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.crawling.queue import Crawl, QueuedPage, begin_crawl
from webrag.ingestion.models import NormalizedDocument, OutgoingLink
from webrag.postgres.database import Database, table


@pytest.fixture
async def crawl(corpus: Corpus, database: Database) -> Crawl:
    assert corpus is not None  # it makes the tables
    return await begin_crawl(database, "key")


def pages(*names: str, depth: int = 1) -> list[QueuedPage]:
    return [QueuedPage(f"https://a.test/{name}", depth) for name in names]


async def names(crawl: Crawl) -> list[str]:
    found = await crawl.next_pages(limit=100)
    return [page.url.removeprefix("https://a.test/") for page in found]


async def test_new_crawl_has_nothing(crawl: Crawl) -> None:
    assert (crawl.visited, crawl.is_resumed) == (0, False)
    assert await crawl.next_pages(limit=5) == []


async def test_crawl_with_the_same_key_goes_on(crawl: Crawl, database: Database) -> None:
    await crawl.set_roots(["https://a.test/"])
    await crawl.add(pages("a", "b"))
    await crawl.note_visited("https://a.test/a", links=[])

    again = await begin_crawl(database, "key")

    assert (again.id, again.visited, again.is_resumed) == (crawl.id, 1, True)
    assert again.started_at == crawl.started_at
    assert await names(again) == ["b"]


async def test_crawls_with_other_keys_are_apart(crawl: Crawl, database: Database) -> None:
    await crawl.add(pages("a"))

    assert await names(await begin_crawl(database, "other")) == []


async def test_pages_come_in_folder_first_then_breadth_first_then_as_found(crawl: Crawl) -> None:
    await crawl.add([QueuedPage("https://a.test/out", 1, outside=True)])
    await crawl.add(pages("deep", depth=2))
    await crawl.add(pages("z", "a"))

    assert await names(crawl) == ["z", "a", "deep", "out"]


async def test_known_pages_are_not_added_twice(crawl: Crawl) -> None:
    first = await crawl.add(pages("a", "b"))
    second = await crawl.add(pages("b", "c"))

    assert first == {"https://a.test/a", "https://a.test/b"}
    assert second == {"https://a.test/c"}


async def test_pages_under_way_are_left_out(crawl: Crawl) -> None:
    await crawl.add(pages("a", "b"))

    found = await crawl.next_pages(limit=5, under_way=["https://a.test/a"])

    assert [page.url for page in found] == ["https://a.test/b"]


async def test_visited_page_puts_its_links_into_the_queue(crawl: Crawl) -> None:
    await crawl.add(pages("a"))

    seen, added = await crawl.note_visited(
        "https://a.test/a", stored_as="https://a.test/a", links=pages("b", "a")
    )

    assert (seen, added) == (False, {"https://a.test/b"})
    assert await names(crawl) == ["b"]


async def test_page_behind_two_addresses_is_recognised_the_second_time(
    crawl: Crawl, database: Database
) -> None:
    await crawl.add(pages("a", "b", "page"))

    outcomes = [
        await crawl.note_visited(
            f"https://a.test/{name}", stored_as="https://a.test/page", links=[]
        )
        for name in ("a", "b")
    ]

    assert [seen for seen, _ in outcomes] == [False, True]
    assert await names(crawl) == []
    assert (await begin_crawl(database, "key")).visited == 2


async def test_skipped_pages_do_not_count_as_visited(crawl: Crawl, database: Database) -> None:
    await crawl.add(pages("a", "b"))

    await crawl.skip(["https://a.test/a"])

    assert await names(crawl) == ["b"]
    assert (await begin_crawl(database, "key")).visited == 0


async def test_requeued_pages_take_their_old_place(crawl: Crawl) -> None:
    await crawl.add(pages("a", "b"))
    await crawl.note_visited("https://a.test/a", links=[])

    await crawl.requeue(["https://a.test/a"])

    assert await names(crawl) == ["a", "b"]


async def test_known_gives_every_page_in_order(crawl: Crawl) -> None:
    many = pages(*(f"p{number:05}" for number in range(5_003)))
    await crawl.add(many)

    assert [page async for page in crawl.known()] == many


async def test_ended_crawl_takes_nothing_more(crawl: Crawl) -> None:
    await crawl.add(pages("a"))
    await crawl.end()

    assert await crawl.add(pages("b")) == set()
    assert await crawl.note_visited(
        "https://a.test/a", stored_as="https://a.test/x", links=pages("c")
    ) == (False, set())


async def test_crawl_left_for_weeks_starts_anew(crawl: Crawl, database: Database) -> None:
    statement = sql.SQL("update {} set started_at = %s").format(
        table(database.config.collection, "crawls")
    )
    async with database.connection() as connection:
        await connection.execute(statement, (datetime.now(UTC) - timedelta(days=30),))

    assert (await begin_crawl(database, "key")).id != crawl.id


async def test_writers_do_not_wait_for_each_other_in_a_circle(crawl: Crawl) -> None:
    forward = pages(*(f"p{number}" for number in range(200)))

    async with asyncio.timeout(20):
        added = await asyncio.gather(
            *(crawl.add(forward[:: -1 if turn % 2 else 1]) for turn in range(8))
        )

    assert sorted(url for urls in added for url in urls) == sorted(page.url for page in forward)


async def test_view_gives_unknown_followable_links_and_the_beginning_of_the_text(
    crawl: Crawl,
    indexer: Indexer,
    make_document: Callable[..., NormalizedDocument],
) -> None:
    ugly = OutgoingLink(url="https://a.test/no", anchor_text="no", rel=("nofollow",))
    links = ["https://a.test/b", "https://a.test/known", ugly, "https://a.test/a"]
    page = await indexer.index(make_document(links=[*links, "https://a.test/b"]))
    await crawl.add(pages("known"))

    found, text = await crawl.view(page.page_id, text_chars=9)

    assert found == ("https://a.test/b", "https://a.test/a")
    assert text == "# Storage"
