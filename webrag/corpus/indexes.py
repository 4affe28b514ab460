"""Keeps what makes searches fast beside the rows: the vector index, and blocks of postings.

Under a large load the vector index is put off and built afterwards, after a crash too: a row costs
0.9 ms more while it is there; built over a filled table it costs 0.15 ms a row, the old rows
included. Searches are exact meanwhile: they compare with every chunk.

A common word of a large corpus stands on ten thousands of pages: as many rows of postings. Blocks
hold one row per term for a range of pages that nobody can add to any more, beside those rows. A
corpus without blocks is searched all the same, only more slowly.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from webrag.concurrency import in_background
from webrag.corpus.schema import read_meta
from webrag.corpus.tables import LOADING_KEY, VECTOR_INDEX, vector_index_statement
from webrag.errors import StorageError
from webrag.lexical.postings import BLOCK_CHUNKS, PackedBlock, pack_block
from webrag.postgres.database import Connection, Database, Rows

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


BLOCK_PAGES = 1_024
"""Pages of a block, if their chunks are at most `BLOCK_CHUNKS`: a term is in 49 rows of 50,000
pages. Twice as many take twice as long to gather (3 s), and a smaller corpus, which is searched
quickly as it is, has no blocks."""

_ASKED_EVERY = 256  # pages; asking takes a millisecond

_MOST_LEFT = 0.25
"""Share of a block's pages that may be deleted or replaced before the block is made anew: they are
read with the others, and thrown away."""

_SORT_MEMORY = "256MB"  # the rows of a block; half of it is slower by a third


def may_be_due(page_ids: Sequence[int]) -> bool:
    """Tell whether to ask for pages to gather, now that these have been stored."""
    return any(page_id % _ASKED_EVERY == 0 for page_id in page_ids)


async def compact_postings(database: Database, block_pages: int = BLOCK_PAGES) -> int:
    """Make blocks of the pages that are in none, and those anew that lost many of their pages.

    Pages that fill no block, and tables that others hold or that may not be changed, are left for
    the next time. Writers wait for half a second at most. Gives how many blocks were made.
    """
    collection = database.config.collection
    made = 0

    async def make(connection: Connection) -> bool:
        return await _next_block(connection, settled, block_pages)

    try:
        limits = {"most_pages": block_pages, "most_chunks": BLOCK_CHUNKS, "most_left": _MOST_LEFT}
        ((is_due,),) = await database.fetch(
            f"select exists (select from ({_WAITING}) w where {_IS_FULL}) or exists ({_WORN})",
            limits,
        )
        if not is_due:
            return 0
        settled = await database.run(_settled)
        while await database.run(make):
            made += 1
    except StorageError as error:
        logger.info("Postings of %s are not gathered now: %s", collection, error)
    if made:
        logger.info("Gathered the postings of %s in %d blocks.", collection, made)
    return made


async def mark_dirty(connection: Connection, page_id: int) -> None:
    """Note that a page's postings have changed, after the page's own row has."""
    statement = "update {blocked_pages} set document = null, is_stale = true where page = %s"
    await connection.change(statement, (page_id,))


async def _settled(connection: Connection) -> int:
    """Wait for pages that get their number now, and give the last number."""
    await connection.set_locally(lock_timeout=_LOCK_TIMEOUT)
    await connection.change("lock table {documents} in share mode")
    ((last,),) = await connection.fetch("select coalesce(max(id), 0) from {documents}")
    return int(last)


async def _next_block(connection: Connection, settled: int, block_pages: int) -> bool:
    if not await connection.try_lock(f"blocks {connection.collection}", _LOCK_SEED):
        return False
    await connection.lift_timeouts()
    await connection.set_locally(work_mem=_SORT_MEMORY)
    pages = await _next_range(connection, settled, block_pages)
    if pages is None:
        return False
    values, rows = await _read_pages(connection, pages)
    # The transaction waits for it with all that it has locked.
    packed = await in_background(pack_block, rows)
    await _write_block(connection, values, packed)
    return True


async def _read_pages(
    connection: Connection, values: dict[str, Any]
) -> tuple[dict[str, Any], Rows]:
    """Read the pages and their versions, and their postings, a row for each term."""
    known = await connection.fetch(
        "select id, xmin::text from {documents} where id between %(first)s and %(last)s", values
    )
    values |= {"pages": [row[0] for row in known], "versions": [row[1] for row in known]}
    rows = await connection.fetch(
        """
        select p.term,
               string_agg(int4send(d.id) || int4send(d.term_count)
                          || int4send(length(p.packed)),
                          ''::bytea order by p.document, p.segment),
               string_agg(p.packed, ''::bytea order by p.document, p.segment)
        from {postings} p join {documents} d on d.id = p.document
        where p.document between %(first)s and %(last)s group by p.term
        """,
        values,
        binary=True,
    )
    return values, rows


async def _write_block(connection: Connection, values: dict[str, Any], packed: PackedBlock) -> None:
    ((number,),) = await connection.fetch(
        "insert into {blocks} (first, last, layout) values (%(first)s, %(last)s, %(layout)s)"
        " returning id",
        values | {"layout": packed.layout},
    )
    await connection.copy_rows(
        "posting_blocks",
        {"block": "int4", "term": "text", "packed": "bytea"},
        ((number, term, slots) for term, slots in packed.terms),
    )
    for statement in _SETTLE:
        await connection.change(statement, values | {"block": number})


async def _next_range(
    connection: Connection, settled: int, block_pages: int
) -> dict[str, Any] | None:
    """Find the first and the last page of a block to make, and the `old` block they are in."""
    worn = await connection.fetch_as(dict, f"{_WORN} limit 1", {"most_left": _MOST_LEFT})
    if worn:
        return worn[0]
    rows = await connection.fetch_as(
        dict,
        f"select first, id as last, null::int as old from ({_WAITING}) w"
        f" where id <= %(settled)s and {_IS_FULL} order by id limit 1",
        {"settled": settled, "most_pages": block_pages, "most_chunks": BLOCK_CHUNKS},
    )
    return rows[0] if rows else None


# The pages behind the last block: which one is first, how many they are up to each, and whether
# another one's chunks would be too many.
_WAITING = """
select id, first_value(id) over w as first, row_number() over w as pages,
       sum(child_count) over w + lead(child_count, 1, 0) over w as chunks_with_next
from (
    select id, child_count from {documents}
    where id > (select coalesce(max(last), 0) from {blocks}) order by id limit %(most_pages)s
) d window w as (order by id)
"""
_IS_FULL = "(pages = %(most_pages)s or chunks_with_next > %(most_chunks)s)"

_WORN = """
select b.first, b.last, b.id as old from {blocks} b join (
    select block, count(*) as pages from {blocked_pages} where document is null group by block
) g on g.block = b.id where g.pages > %(most_left)s * b.documents
"""

_SETTLE = (
    # Rows of pages that are being deleted are held by others: no two wait for each other.
    "select from {blocked_pages} where block = %(old)s for update nowait",
    "delete from {blocks} where id = %(old)s",
    "delete from {posting_blocks} where block = %(old)s",
    # A page that was changed meanwhile, or is being changed, counts as stale.
    """
    with kept as (
        select d.id from {documents} d
        join unnest(%(pages)s::int[], %(versions)s::text[]) k(page, version)
        on d.id = k.page and d.xmin::text = k.version for share of d skip locked
    )
    insert into {blocked_pages}
        (page, block, document, is_stale, children, terms, tokens, parents)
    select k.page, %(block)s, kept.id, kept.id is null, coalesce(d.child_count, 0),
           coalesce(d.term_count, 0), coalesce(d.token_count, 0),
           (select count(*) from {parents} p where p.document = k.page)
    from unnest(%(pages)s::int[]) k(page)
    left join {documents} d on d.id = k.page left join kept on kept.id = k.page
    """,
    """
    update {blocks} b set documents = s.documents, children = s.children, terms = s.terms,
        tokens = s.tokens, parents = s.parents
    from (
        select count(*) as documents, coalesce(sum(children), 0) as children,
               coalesce(sum(terms), 0) as terms, coalesce(sum(tokens), 0) as tokens,
               coalesce(sum(parents), 0) as parents
        from {blocked_pages} where block = %(block)s
    ) s where b.id = %(block)s
    """,
)
