"""Puts the vector index off under a large load, and builds it afterwards, after a crash too.

A row costs 0.9 ms more while the index is there; built over a filled table it costs 0.15 ms a row,
the old rows included. Searches are exact meanwhile: they compare with every chunk.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
from psycopg.types.json import Jsonb

from webrag.corpus.schema import read_meta
from webrag.corpus.tables import LOADING_KEY, VECTOR_INDEX, vector_index_statement
from webrag.errors import StorageError
from webrag.postgres.database import Connection, Database

logger = logging.getLogger(__name__)

LEAST_ROWS = 1_000
"""Smaller loads go through the index: they take a second at most."""

_LOCK_SEED = 45
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


async def _defer_index(connection: Connection, coming: int) -> bool:
    """Drop the vector index and note it, if no more rows are stored than are to come."""
    await connection.set_locally(lock_timeout=_LOCK_TIMEOUT)
    stored = await connection.fetch(
        "select count(*) from (select from {data_children} limit %s) stored", (coming + 1,)
    )
    if stored[0][0] > coming:
        return False
    await connection.change(
        "insert into {corpus_meta} values (%s, %s) on conflict (key) do nothing",
        (LOADING_KEY, Jsonb(True)),
    )
    await connection.change(f"drop index if exists {{{VECTOR_INDEX}}}")
    return True


async def _build_index(connection: Connection) -> bool:
    """Build a deferred index, unless a load is under way; readers go on, writers wait."""
    if not await connection.try_lock(f"load {connection.collection}", _LOCK_SEED):
        return False
    await connection.lift_timeouts()
    removed = await connection.fetch(
        "delete from {corpus_meta} where key = %s returning key", (LOADING_KEY,)
    )
    if not removed:
        return False
    size = await connection.fetch(
        "select (select value::int from {corpus_meta} where key = 'embedding_dimensions'),"
        " (select count(*) from {data_children})"
    )
    dimensions, rows = size[0]
    # What the graph needs: a parallel build asks for all of it as shared memory at once.
    needed = rows * (2 * dimensions + _GRAPH_BYTES) * 5 // 4
    memory = min(max(needed, _LEAST_MEMORY), _MOST_MEMORY) >> 10
    await connection.set_locally(maintenance_work_mem=f"{memory}kB")
    await connection.execute(vector_index_statement(connection.collection, dimensions))
    # The planner learns of the rows now, not when the autovacuum comes by.
    await connection.change("analyze {data_children}, {postings}, {documents}, {parents}")
    return True


@asynccontextmanager
async def index_deferred(database: Database, coming: int) -> AsyncIterator[bool]:
    """Load many rows in many transactions, with the vector index built at the end.

    It is built after a failure as well; after a crash or cancellation by whoever opens the
    collection next. Few rows, or fewer than there are, leave it as it is; yields whether deferred.
    """
    async with AsyncExitStack() as stack:
        is_deferred = coming >= LEAST_ROWS and await _start(database, stack, coming)
        try:
            yield is_deferred
        except Exception:
            if is_deferred:
                await stack.aclose()
                await _build(database)
            raise
        if is_deferred:
            await stack.aclose()
            await _build(database)


async def finish_interrupted_load(database: Database) -> bool:
    """Build the index that a load left unbuilt, where this user may; costs one read otherwise."""
    meta = await database.run(read_meta)
    return meta is not None and meta.is_loading and await _build(database)


async def _start(database: Database, stack: AsyncExitStack, coming: int) -> bool:
    holder = await stack.enter_async_context(database.holder())
    # Others build no index until this transaction ends.
    await holder.execute(
        "select pg_advisory_xact_lock_shared(hashtextextended(%s, %s))",
        (f"load {holder.collection}", _LOCK_SEED),
    )
    try:
        return await database.run(lambda connection: _defer_index(connection, coming))
    except StorageError as error:
        # Others use the table, or the user does not own it: slower and otherwise the same.
        if not isinstance(error.__cause__, _KEEPING):
            raise
        logger.info("Loading through the vector index: %s", error)
        return False


async def _build(database: Database) -> bool:
    async def work(connection: Connection) -> bool:
        try:
            async with connection.transaction():
                return await _build_index(connection)
        except psycopg.errors.DiskFull:
            # Containers give little shared memory, which workers need; one process needs none.
            await connection.execute("set local max_parallel_maintenance_workers = 0")
            return await _build_index(connection)

    try:
        is_built = await database.run(work)
    except StorageError as error:
        logger.warning(
            "The index of %s could not be built; searches are exact and slower until the"
            " collection is opened by somebody who can: %s",
            *(database.config.collection, error),
        )
        return False
    if is_built:
        logger.info("Built the vector index of %s.", database.config.collection)
    return is_built
