import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from psycopg import AsyncConnection, sql

from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.writer import forget_page
from webrag.errors import StorageError
from webrag.ingestion.models import Anchor, NormalizedDocument
from webrag.postgres.database import Database, table

MakeDocument = Callable[..., NormalizedDocument]
URL = "https://docs.test/guide"


def at(day: int) -> datetime:
    return datetime(2026, 6, day, tzinfo=UTC)


async def count(database: Database, name: Any) -> Any:
    statement = sql.SQL("select count(*) from {}").format(table(database.config.collection, name))

    async def work(connection: AsyncConnection[Any]) -> Any:
        return (await (await connection.execute(statement)).fetchone())[0]

    return await database.run(work)


async def test_page_that_moved_replaces_the_one_at_the_old_address(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document("https://docs.test/old", markdown="# Old\n\ntext\n"))

    await indexer.index(make_document(requested_url="https://docs.test/old"))

    status = await corpus.status()
    assert [page.url for page in status.pages] == [URL]
    assert (await corpus.page("https://docs.test/old")).url == URL


async def test_page_keeps_the_smallest_depth_it_was_seen_at(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(), depth=1)
    await indexer.index(make_document(markdown="# Changed\n\ntext\n"), depth=3)

    assert (await corpus.page(URL)).depth == 1


async def test_lower_depth_never_raises_it(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(), depth=2)

    await corpus.lower_depth(URL, 5)
    assert (await corpus.page(URL)).depth == 2
    await corpus.lower_depth(URL, 0)
    assert (await corpus.page(URL)).depth == 0


async def test_replacing_a_page_leaves_no_rows_of_the_old_version(
    database: Database, corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(links=["https://docs.test/a", "https://docs.test/b"]))

    page = await indexer.index(make_document(markdown="# Short\n\nOne word.\n"))

    names = ("documents", "parents", "data_children", "link_candidates")
    assert [await count(database, name) for name in names] == [1, 1, 1, 0]
    assert page.chunk_count == 1


async def test_forget_removes_everything_made_from_a_page(
    database: Database, corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(links=["https://docs.test/a"]))

    assert await forget_page(database, URL) is True

    names = ("documents", "parents", "data_children", "postings", "link_candidates")
    assert [await count(database, name) for name in names] == [0, 0, 0, 0, 0]


async def test_forget_tells_that_a_page_is_not_stored(database: Database, corpus: Corpus) -> None:
    assert await forget_page(database, "https://docs.test/none") is False


async def test_failed_write_keeps_the_stored_version(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    changed = make_document(markdown="# Broken \x00\n\ntext\n")

    with pytest.raises(StorageError):
        await indexer.index(changed)

    assert await corpus.markdown(URL) == make_document().markdown


async def test_readers_see_the_old_or_the_new_version(
    database: Database, corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    def version(number: Any) -> Any:
        body = "\n\n".join(f"## Part {i}\n\nversion{number} text of part {i}." for i in range(8))
        return make_document(markdown=f"# Page\n\n{body}\n", title=f"v{number}")

    await indexer.index(version(0))
    collection = database.config.collection
    read_title = sql.SQL("select title from {}").format(table(collection, "documents"))
    read_texts = sql.SQL("select text from {} union all select text from {}").format(
        table(collection, "data_children"), table(collection, "parents")
    )
    done = asyncio.Event()
    mixed = []
    reads = 0

    async def read() -> None:
        nonlocal reads
        while not done.is_set():
            async with database.snapshot() as connection:
                title = (await (await connection.execute(read_title)).fetchone())[0]
                texts = await (await connection.execute(read_texts)).fetchall()
            said = {
                "v" + text.split("version")[1].split()[0] for (text,) in texts if "version" in text
            }
            reads += 1
            if said != {title}:
                mixed.append((title, said))

    readers = [asyncio.create_task(read()) for _ in range(2)]
    for number in range(1, 12):
        await indexer.index(version(number))
    done.set()
    await asyncio.gather(*readers)

    assert reads > 5
    assert mixed == []


async def test_concurrent_writers_of_one_page_end_with_one_version(
    database: Database, corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    versions = [
        make_document(markdown=f"# Page\n\nversion {n}\n\n## More\n\ntext {n}\n") for n in range(6)
    ]

    await asyncio.gather(*(indexer.index(version) for version in versions))

    markdown = await corpus.markdown(URL)
    assert await count(database, "documents") == 1
    assert markdown in {version.markdown for version in versions}
    assert (await corpus.page(URL)).chunk_count == await count(database, "data_children")


async def test_writers_that_swap_addresses_do_not_deadlock(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    one, two = "https://docs.test/one", "https://docs.test/two"

    await asyncio.gather(
        *(
            indexer.index(make_document(a, requested_url=b, markdown=f"# {n}\n\ntext {n}\n"))
            for n in range(4)
            for a, b in ((one, two), (two, one))
        )
    )

    assert len((await corpus.status()).pages) == 1


async def test_gone_page_keeps_its_text_and_the_first_time(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())

    await corpus.mark_gone(URL, at(1))
    await corpus.mark_gone(URL, at(2))

    assert (await corpus.page(URL)).gone_at == at(1)
    assert await corpus.markdown(URL) == make_document().markdown


async def test_touch_brings_a_gone_page_back(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    await corpus.mark_gone(URL, at(1))

    await corpus.touch(URL, at(2), etag='"new"')

    page = await corpus.page(URL)
    assert (page.gone_at, page.fetched_at, page.etag) == (None, at(2), '"new"')


async def test_touch_never_makes_a_page_older(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(fetched_at=at(5)))

    await corpus.touch(URL, at(1))

    assert (await corpus.page(URL)).fetched_at == at(5)


async def test_stored_embeddings_are_those_that_were_written(
    database: Database, corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    statement = sql.SQL("select text_hash, embedding from {}").format(
        table(database.config.collection, "data_children")
    )

    async def work(connection: AsyncConnection[Any]) -> Any:
        return await (await connection.execute(statement)).fetchall()

    rows = await database.run(work)
    [(found, _)] = await corpus.known_chunks([(None, [row[0] for row in rows] + [b"unknown"])])

    assert len(found) == len(rows)
    assert np.allclose(found[rows[0][0]], rows[0][1].to_numpy())


ANCHORS = tuple(Anchor(char_start=at, fragment=f"page={n}") for n, at in enumerate((0, 40, 200), 1))


async def test_pdf_of_an_earlier_version_gets_its_pages_without_embedding(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument, counting_embedding: Any
) -> None:
    await indexer.index(make_document())
    counting_embedding.texts.clear()

    first = await indexer.index(make_document(anchors=ANCHORS))
    second = await indexer.index(make_document(anchors=ANCHORS))

    assert (first.outcome, second.outcome) == ("updated", "unchanged")
    assert counting_embedding.texts == []
