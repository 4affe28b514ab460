import asyncio
from collections.abc import Callable

from psycopg import sql

from tests.webrag.packed_postings import unpack_postings
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.writer import copy_postings, lock_pages
from webrag.ingestion.models import NormalizedDocument
from webrag.lexical.postings import SEGMENT_POSTINGS, pack_postings
from webrag.postgres.database import Connection, Database, Rows, table

MakeDocument = Callable[..., NormalizedDocument]


async def test_longest_term_fits_into_the_index_beside_full_postings(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    page = await indexer.index(make_document())
    collection = database.config.collection
    postings = pack_postings([["\U0001e900" * 65]] * SEGMENT_POSTINGS)

    async def work(connection: Connection) -> Rows:
        await copy_postings(connection, [(page.page_id, postings)])
        statement = sql.SQL("select packed from {} where term = %s")
        return await connection.fetch(
            statement.format(table(collection, "postings")), ("\U0001e900" * 65,)
        )

    ((packed,),) = await database.run(work)

    assert len(unpack_postings(packed)) == SEGMENT_POSTINGS


async def test_second_writer_of_a_page_waits_for_the_first(
    database: Database, corpus: Corpus
) -> None:
    order = []

    async def first(connection: Connection) -> None:
        await lock_pages(connection, ["https://a.test/"])
        started.set()
        await asyncio.sleep(0.05)
        order.append("first")

    async def second(connection: Connection) -> None:
        await started.wait()
        await lock_pages(connection, ["https://a.test/"])
        order.append("second")

    started = asyncio.Event()
    await asyncio.gather(database.run(first), database.run(second))

    assert order == ["first", "second"]


async def test_writers_of_different_pages_do_not_wait(database: Database, corpus: Corpus) -> None:
    both = asyncio.Barrier(2)

    async def write(url: str) -> None:
        async def work(connection: Connection) -> None:
            await lock_pages(connection, [url])
            async with asyncio.timeout(5):
                await both.wait()

        await database.run(work)

    await asyncio.gather(write("https://a.test/"), write("https://b.test/"))
