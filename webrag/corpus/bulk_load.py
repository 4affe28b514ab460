"""Puts the vector index off while much is loaded, and builds it afterwards, after a crash too.

A row costs 0.9 ms more while the index is there; built over a filled table the index costs 0.15 ms
a row, the old rows included. Searches are exact meanwhile: they compare with every chunk.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.types.json import Jsonb

from webrag.corpus.schema import compose, read_meta, table
from webrag.corpus.tables import LOADING_KEY, VECTOR_INDEX, vector_index_statement
from webrag.errors import StorageError
from webrag.postgres.database import Database, lift_timeouts
from webrag.postgres.execution import fetch

logger = logging.getLogger(__name__)

_Connection = AsyncConnection[Any]

LEAST_ROWS = 1_000
"""Smaller loads go through the index: they take a second at most."""

_LOCK_SEED = 44
_KEEPING = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.LockNotAvailable,
)
# Shorter than the deadlock check, and readers wait no longer behind the one who wants the lock.
_LOCK_TIMEOUT = "500ms"
_LEAST_MEMORY, _MOST_MEMORY = 64 << 20, 1 << 30
# pgvector's graph: the vector, up to 2 * m neighbours on the ground level, and its own headers.
_GRAPH_BYTES = 600


async def _defer_index(connection: _Connection, collection: str, coming: int) -> bool:
    """Drop the vector index and note it, if that many coming rows make it worth while.

    It is when there are not more in the table already. Fails when readers keep the table in use
    for half a second.
    """
    await connection.execute("select set_config('lock_timeout', %s, true)", (_LOCK_TIMEOUT,))
    stored = await fetch(
        connection,
        compose(collection, "select count(*) from (select from {data_children} limit %s) stored"),
        (coming + 1,),
    )
    if stored[0][0] > coming:
        return False
    await connection.execute(
        compose(
            collection, "insert into {corpus_meta} values (%s, %s) on conflict (key) do nothing"
        ),
        (LOADING_KEY, Jsonb(True)),
    )
    await connection.execute(
        compose(collection, "drop index if exists {index}", index=table(collection, VECTOR_INDEX))
    )
    return True


def _must_keep_index(error: StorageError) -> bool:
    """Whether `_defer_index` failed as others use the table, or the user does not own it.

    A load then goes through the index, slower and otherwise the same.
    """
    if not isinstance(error.__cause__, _KEEPING):
        return False
    logger.info("Loading through the vector index: %s", error)
    return True


async def _build_index(connection: _Connection, collection: str) -> bool:
    """Build an index that was deferred; not while a load is under way, which will build it.

    Readers go on meanwhile, writers wait. Repeating it does nothing.
    """
    locked = await fetch(
        connection,
        sql.SQL("select pg_try_advisory_xact_lock(hashtextextended(%s, %s))"),
        _lock_key(collection),
    )
    if not locked[0][0]:
        return False
    await lift_timeouts(connection)
    removed = await fetch(
        connection,
        compose(collection, "delete from {corpus_meta} where key = %s returning key"),
        (LOADING_KEY,),
    )
    if not removed:
        return False
    size = await fetch(
        connection,
        compose(
            collection,
            "select (select value::int from {corpus_meta} where key = 'embedding_dimensions'),"
            " (select count(*) from {data_children})",
        ),
    )
    dimensions, rows = size[0]
    await connection.execute(
        "select set_config('maintenance_work_mem', %s, true)",
        (_build_memory(rows, dimensions),),
    )
    await connection.execute(vector_index_statement(collection, dimensions))
    # The planner learns of the rows now, not when the autovacuum comes by.
    await connection.execute(
        compose(collection, "analyze {data_children}, {postings}, {documents}, {parents}")
    )
    return True


@asynccontextmanager
async def index_deferred(database: Database, coming: int) -> AsyncIterator[bool]:
    """Load many rows in many transactions, with the vector index built at the end.

    The index is built as well when the block fails. When the process dies, or the task is
    cancelled, the next one that opens the collection builds it.

    Args:
        database: The collection.
        coming: Rows expected; few ones, or fewer than there are, leave the index as it is.

    Yields:
        Whether it was deferred.
    """
    async with AsyncExitStack() as stack:
        is_deferred = coming >= LEAST_ROWS and await _start(database, stack, coming)
        try:
            yield is_deferred
        except Exception:
            if is_deferred:
                await _finish(database, stack)
            raise
        if is_deferred:
            await _finish(database, stack)


async def finish_interrupted_load(database: Database) -> bool:
    """Build the index that a load left unbuilt, unless the load is still under way.

    Who may not build it goes on without: searches are exact and slower. Costs one read when
    there is nothing to do.

    Returns:
        Whether an index was built.
    """
    collection = database.config.collection
    meta = await database.run(lambda connection: read_meta(connection, collection))
    return meta is not None and meta.is_loading and await _build(database)


async def _start(database: Database, stack: AsyncExitStack, coming: int) -> bool:
    collection = database.config.collection

    holder = await stack.enter_async_context(_tolerant(database))
    # Others build no index until this transaction ends.
    await holder.execute(
        "select pg_advisory_xact_lock_shared(hashtextextended(%s, %s))", _lock_key(collection)
    )
    try:
        return await database.run(lambda connection: _defer_index(connection, collection, coming))
    except StorageError as error:
        if not _must_keep_index(error):
            raise
        return False


@asynccontextmanager
async def _tolerant(database: Database) -> AsyncIterator[_Connection]:
    """A connection whose loss at the end means nothing: it only held a lock."""
    is_over = False
    try:
        async with database.session() as connection:
            yield connection
            is_over = True
    except StorageError as error:
        if not is_over:
            raise
        logger.info("The connection that marked a load was lost: %s", error)


async def _finish(database: Database, stack: AsyncExitStack) -> None:
    await stack.aclose()
    await _build(database)


async def _build(database: Database) -> bool:
    collection = database.config.collection

    async def work(connection: _Connection) -> bool:
        try:
            async with connection.transaction():
                return await _build_index(connection, collection)
        except psycopg.errors.DiskFull:
            # Containers give little shared memory, which workers need; one process needs none.
            await connection.execute("set local max_parallel_maintenance_workers = 0")
            return await _build_index(connection, collection)

    try:
        is_built = await database.run(work)
    except StorageError as error:
        logger.warning(
            "The index of %s could not be built; searches are exact and slower until the"
            " collection is opened by somebody who can: %s",
            *(collection, error),
        )
        return False
    if is_built:
        logger.info("Built the vector index of %s.", collection)
    return is_built


def _build_memory(rows: int, dimensions: int) -> str:
    """What the graph needs, in kB: a parallel build asks for all of it as shared memory at once."""
    needed = rows * (2 * dimensions + _GRAPH_BYTES) * 5 // 4
    return f"{min(max(needed, _LEAST_MEMORY), _MOST_MEMORY) >> 10}kB"


def _lock_key(collection: str) -> tuple[str, int]:
    return f"load {collection}", _LOCK_SEED
