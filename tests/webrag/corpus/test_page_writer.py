import asyncio
from collections.abc import Callable
from typing import Any

from psycopg import AsyncConnection, sql

from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import table
from webrag.corpus.writer import copy_postings, lock_pages
from webrag.ingestion.models import NormalizedDocument
from webrag.lexical.postings import SEGMENT_POSTINGS, pack_postings, unpack_postings
from webrag.postgres.database import Database
from webrag.postgres.execution import Rows, fetch

MakeDocument = Callable[..., NormalizedDocument]


async def test_longest_term_fits_into_the_index_beside_full_postings(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    page = await indexer.index(make_document())
    collection = database.config.collection
    postings = pack_postings([["\U0001e900" * 65]] * SEGMENT_POSTINGS)

    async def work(connection: AsyncConnection[Any]) -> Rows:
        await copy_postings(connection, collection, [(page.page_id, postings)])
        statement = sql.SQL("select packed from {} where term = %s")
        return await fetch(
            connection, statement.format(table(collection, "postings")), ("\U0001e900" * 65,)
        )

    ((packed,),) = await database.run(work)

    assert len(unpack_postings(packed)) == SEGMENT_POSTINGS


async def test_second_writer_of_a_page_waits_for_the_first(
    database: Database, corpus: Corpus
) -> None:
    collection = database.config.collection
    order = []

    async def first(connection: AsyncConnection[Any]) -> None:
        await lock_pages(connection, collection, ["https://a.test/"])
        started.set()
        await asyncio.sleep(0.05)
        order.append("first")

    async def second(connection: AsyncConnection[Any]) -> None:
        await started.wait()
        await lock_pages(connection, collection, ["https://a.test/"])
        order.append("second")

    started = asyncio.Event()
    await asyncio.gather(database.run(first), database.run(second))

    assert order == ["first", "second"]


async def test_writers_of_different_pages_do_not_wait(database: Database, corpus: Corpus) -> None:
    collection = database.config.collection
    both = asyncio.Barrier(2)

    async def write(url: str) -> None:
        async def work(connection: AsyncConnection[Any]) -> None:
            await lock_pages(connection, collection, [url])
            async with asyncio.timeout(5):
                await both.wait()

        await database.run(work)

    await asyncio.gather(write("https://a.test/"), write("https://b.test/"))
