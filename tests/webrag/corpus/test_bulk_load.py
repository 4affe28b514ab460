import asyncio
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from psycopg import sql

from webrag.corpus.indexes import LEAST_ROWS, finish_interrupted_load, index_deferred
from webrag.corpus.maintenance.checking import check_corpus
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.database import Database

DIMENSIONS = 8
VECTORS = np.random.default_rng(7).normal(size=(LEAST_ROWS + 500, DIMENSIONS)).round(3)

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from webrag.corpus.indexes import index_deferred
from webrag.postgres.database import Database
from webrag.postgres.config import DatabaseConfig

async def load():
    database = Database(DatabaseConfig(data_dir=Path(sys.argv[1]), collection=sys.argv[2]))
    async with index_deferred(database, 10**6):
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(load())
"""


def nodes(start: int, stop: int) -> list[TextNode]:
    return [
        TextNode(
            id_=f"n{number}",
            text=f"row {number}",
            embedding=VECTORS[number].tolist(),
            metadata={"source_url": f"https://docs.test/{number // 100}"},
        )
        for number in range(start, stop)
    ]


async def has_index(database: Database) -> bool:
    async def work(connection: Any) -> bool:
        cursor = await connection.execute(
            "select from pg_indexes where schemaname = %s and indexname = %s",
            (database.config.collection, "data_children_embedding"),
        )
        return await cursor.fetchone() is not None

    return await database.run(work)


@pytest.fixture
async def empty(database: Database) -> Database:
    await ensure_schema(database, embedding_model="counting", embedding_dimensions=DIMENSIONS)
    return database


async def test_index_is_absent_within_a_large_load_and_there_afterwards(empty: Database) -> None:
    async with index_deferred(empty, LEAST_ROWS) as is_deferred:
        within = await has_index(empty)

    assert (is_deferred, within, await has_index(empty)) == (True, False, True)


async def test_small_load_leaves_the_index_alone(empty: Database) -> None:
    async with index_deferred(empty, LEAST_ROWS - 1) as is_deferred:
        assert await has_index(empty)

    assert not is_deferred


async def test_many_nodes_are_stored_and_found_by_the_index(empty: Database) -> None:
    store = CorpusVectorStore(database=empty, embed_dim=DIMENSIONS)
    await store.async_add(nodes(0, LEAST_ROWS))
    query = VectorStoreQuery(query_embedding=VECTORS[567].tolist(), similarity_top_k=1)

    found = await store.aquery(query)

    assert (found.ids, await has_index(empty)) == (["n567"], True)


def test_synchronous_add_of_many_nodes_ends_with_the_index(database: Database) -> None:
    store = CorpusVectorStore(database=database, embed_dim=DIMENSIONS)
    store.add(nodes(0, LEAST_ROWS))

    assert asyncio.run(has_index(Database(database.config)))


async def test_load_into_a_larger_table_goes_through_the_index(empty: Database) -> None:
    store = CorpusVectorStore(database=empty, embed_dim=DIMENSIONS)
    await store.async_add(nodes(0, LEAST_ROWS + 1))

    async with index_deferred(empty, LEAST_ROWS) as is_deferred:
        assert await has_index(empty)

    assert not is_deferred


async def test_searches_are_exact_while_the_index_is_deferred(empty: Database) -> None:
    store = CorpusVectorStore(database=empty, embed_dim=DIMENSIONS)
    await store.async_add(nodes(0, 500))
    wanted = VECTORS[33] / np.linalg.norm(VECTORS[33])
    cosines = (VECTORS[:500] / np.linalg.norm(VECTORS[:500], axis=1, keepdims=True)) @ wanted

    async with index_deferred(empty, 10**6):
        query = VectorStoreQuery(query_embedding=VECTORS[33].tolist(), similarity_top_k=20)
        found = await store.aquery(query)

    assert found.ids == [f"n{number}" for number in np.argsort(-cosines)[:20]]


async def test_failed_load_builds_the_index(empty: Database) -> None:
    with pytest.raises(ValueError, match="broken"):
        async with index_deferred(empty, 10**6):
            raise ValueError("broken")

    assert await has_index(empty)


async def test_index_of_a_killed_load_is_built_by_the_next_opening(
    empty: Database, corpus_of_killed_load: None
) -> None:
    before = await has_index(empty)
    levels = {check.name: check.level for check in (await check_corpus(empty)).checks}

    built = await finish_interrupted_load(empty)

    assert (before, levels["indexes"], built) == (False, "warn", True)
    assert await has_index(empty)
    assert not await finish_interrupted_load(empty)


async def test_index_is_not_built_under_a_load_that_goes_on(
    empty: Database, postgres_dir: Any
) -> None:
    async with index_deferred(empty, 10**6):
        built = await finish_interrupted_load(empty)

    assert not built


async def test_last_of_two_loads_builds_the_index(empty: Database) -> None:
    async with index_deferred(empty, 10**6):
        async with index_deferred(empty, 10**6):
            pass
        after_first = await has_index(empty)

    assert (after_first, await has_index(empty)) == (False, True)


async def test_readers_that_hold_the_table_keep_the_index(empty: Database) -> None:
    async with empty.connection() as reader:
        await reader.execute(
            sql.SQL("select count(*) from {}").format(
                sql.Identifier(empty.config.collection, "data_children")
            )
        )
        async with index_deferred(empty, 10**6) as is_deferred:
            pass

    assert (is_deferred, await has_index(empty)) == (False, True)


async def test_pages_can_be_stored_while_the_index_is_deferred(
    corpus: Corpus, indexer: Any, make_document: Any
) -> None:
    async with corpus.index_deferred(10**6):
        page = await indexer.index(make_document())

    assert await corpus.page(page.url) is not None


@pytest.fixture
async def corpus_of_killed_load(empty: Database) -> None:
    place = [str(empty.config.data_dir), empty.config.collection]
    command = [sys.executable, "-c", KILLED, *place]
    await asyncio.to_thread(subprocess.run, command, check=False, timeout=30)


@pytest.mark.parametrize("connections", [1, 2])
async def test_loads_at_the_same_time_leave_connections_for_the_pages(
    empty: Database, connections: int
) -> None:
    few = {"pool_max_size": connections, "acquire_timeout_s": 3.0}
    database = Database(empty.config.model_copy(update=few))
    corpus = Corpus(database)

    async with corpus.index_deferred(LEAST_ROWS), corpus.index_deferred(LEAST_ROWS):
        assert await corpus.page("https://docs.test/none") is None

    await database.close()
    assert await has_index(empty)


async def test_index_that_a_cancelled_load_left_unbuilt_is_built_after_the_next_load(
    empty: Database,
) -> None:
    corpus = Corpus(empty)

    async def load() -> None:
        async with corpus.index_deferred(LEAST_ROWS):
            await asyncio.Event().wait()

    task = asyncio.create_task(load())
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.wait([task])
    was_there = await has_index(empty)

    async with corpus.index_deferred(1):
        pass

    assert (was_there, await has_index(empty)) == (False, True)
