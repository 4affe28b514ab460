import asyncio
from collections.abc import Callable
from typing import Any

from psycopg import AsyncConnection

from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import table
from webrag.corpus.writer import copy_postings, lock_pages
from webrag.ingestion.models import NormalizedDocument
from webrag.lexical.postings import SEGMENT_POSTINGS, pack_postings, unpack_postings
from webrag.postgres.database import Database
from webrag.postgres.steps import Execute, Steps, run_steps

MakeDocument = Callable[..., NormalizedDocument]


async def test_longest_term_fits_into_the_index_beside_full_postings(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    page = await indexer.index(make_document())
    collection = database.config.collection
    postings = pack_postings([["\U0001e900" * 65]] * SEGMENT_POSTINGS)

    def work() -> Steps[Any]:
        yield copy_postings(collection, [(page.page_id, postings)])
        return (
            yield Execute(
                "select packed from {} where term = %s".format(
                    table(collection, "postings").as_string()
                ),
                ("\U0001e900" * 65,),
            )
        )

    ((packed,),) = await database.run(lambda connection: run_steps(connection, work()))

    assert len(unpack_postings(packed)) == SEGMENT_POSTINGS


async def test_second_writer_of_a_page_waits_for_the_first(
    database: Database, corpus: Corpus
) -> None:
    collection = database.config.collection
    order = []

    async def first(connection: AsyncConnection[Any]) -> None:
        await run_steps(connection, lock_pages(collection, ["https://a.test/"]))
        started.set()
        await asyncio.sleep(0.05)
        order.append("first")

    async def second(connection: AsyncConnection[Any]) -> None:
        await started.wait()
        await run_steps(connection, lock_pages(collection, ["https://a.test/"]))
        order.append("second")

    started = asyncio.Event()
    await asyncio.gather(database.run(first), database.run(second))

    assert order == ["first", "second"]


async def test_writers_of_different_pages_do_not_wait(database: Database, corpus: Corpus) -> None:
    collection = database.config.collection
    both = asyncio.Barrier(2)

    async def write(url: str) -> None:
        async def work(connection: AsyncConnection[Any]) -> None:
            await run_steps(connection, lock_pages(collection, [url]))
            async with asyncio.timeout(5):
                await both.wait()

        await database.run(work)

    await asyncio.gather(write("https://a.test/"), write("https://b.test/"))
