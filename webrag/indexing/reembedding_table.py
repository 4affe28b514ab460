"""The second searched table of a reindexing: filled, indexed and put in place; it embeds nothing.

Every function works within the transaction of the connection it is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import AsyncConnection, sql
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from webrag.indexing.schema import table
from webrag.indexing.tables import NEXT_CHILDREN, children_statements
from webrag.indexing.timeouts import lift_timeouts

__all__ = [
    "PendingChunk",
    "count_chunks",
    "index_next",
    "insert_vectors",
    "known_vectors",
    "pending_chunks",
    "prepare_next",
    "remove_stale",
    "switch",
    "unfinished_model",
]

_Connection = AsyncConnection[Any]
_META_KEY = "reindexing"
_BUILD_MEMORY = "256MB"

_PENDING = """
select c.id, c.node_id, c.text, c.metadata_ as metadata, c.ordinal,
       coalesce(c.text_hash, decode(md5(c.node_id), 'hex')) as text_hash
from {children} c where c.id > %s and not exists (select from {next} n where n.id = c.id)
order by c.id limit %s
"""
_KNOWN = """
select distinct on (text_hash) text_hash, embedding::halfvec from {next}
where text_hash = any(%s)
"""
# A chunk may have been deleted and stored anew while its vector was made. The lock on its page
# holds until this transaction ends, so that the page's later removal also removes the copy.
_MAKE_ROOM = (
    "delete from {next} n using {children} c where c.id = any(%s) and n.node_id = c.node_id",
    "delete from {next} n using {children} c where c.id = any(%s)"
    " and n.document = c.document and n.ordinal = c.ordinal",
)
_INSERT = """
insert into {next} ({columns}, embedding)
select {values}, made.embedding::halfvec
from unnest(%s::bigint[], %s::text[]) made(id, embedding)
join {children} c on c.id = made.id join {documents} d on d.id = c.document
for key share of d
"""
_RENAMED = """
select c.relname, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %s and c.relkind in ('i', 'S') and strpos(c.relname, %s) = 1
"""
_GRANTS = """
select format('grant %%s on %%s to %%s', a.privilege_type, c.oid::regclass,
              case when a.grantee = 0 then 'public' else a.grantee::regrole::text end)
from pg_class c, aclexplode(c.relacl) a
where c.oid = %s::regclass and a.grantee <> c.relowner
"""


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that has no new vector yet."""

    id: int
    node_id: str
    text: str
    metadata: dict[str, Any] | None
    ordinal: int
    text_hash: bytes


async def unfinished_model(connection: _Connection, collection: str) -> tuple[str, int] | None:
    """Model and dimensions of an interrupted reindexing, None when there is none."""
    statement = sql.SQL("select value from {} where key = %s").format(
        table(collection, "corpus_meta")
    )
    row = await (await connection.execute(statement, (_META_KEY,))).fetchone()
    return None if row is None else (str(row[0]["model"]), int(row[0]["dimensions"]))


async def prepare_next(connection: _Connection, collection: str, wanted: tuple[str, int]) -> None:
    """Make the second table, or keep an interrupted one that is for the same model."""
    if await unfinished_model(connection, collection) != wanted:
        await connection.execute(_compose(collection, "drop table if exists {next}"))
    create, _ = children_statements(collection, wanted[1])
    for statement in create:
        await connection.execute(statement)
    value = Jsonb({"model": wanted[0], "dimensions": wanted[1]})
    await connection.execute(
        _compose(
            collection,
            "insert into {meta} (key, value) values (%s, %s)"
            " on conflict (key) do update set value = excluded.value",
        ),
        (_META_KEY, value),
    )


async def remove_stale(connection: _Connection, collection: str) -> None:
    """Remove chunks that are no longer in the collection."""
    await lift_timeouts(connection)
    await connection.execute(_compose(collection, _STALE))


_STALE = """
delete from {next} n where not exists (select from {children} c where c.id = n.id)
"""


async def count_chunks(connection: _Connection, collection: str) -> tuple[int, int]:
    """Chunks of the collection, and chunks of the second table."""
    await lift_timeouts(connection)
    cursor = await connection.execute(
        _compose(
            collection, "select (select count(*) from {children}), (select count(*) from {next})"
        )
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


async def pending_chunks(
    connection: _Connection, collection: str, after: int, limit: int
) -> list[PendingChunk]:
    """Chunks without a new vector, by id, from behind `after` on."""
    async with connection.cursor(row_factory=class_row(PendingChunk)) as cursor:
        await cursor.execute(_compose(collection, _PENDING), (after, limit))
        return await cursor.fetchall()


async def known_vectors(
    connection: _Connection, collection: str, hashes: Sequence[bytes]
) -> dict[bytes, NDArray[np.float32]]:
    """New vectors of texts that have one already, by hash."""
    cursor = await connection.execute(_compose(collection, _KNOWN), (list(hashes),))
    return {
        bytes(text_hash): embedding.to_numpy().astype(np.float32)
        for text_hash, embedding in await cursor.fetchall()
    }


async def insert_vectors(
    connection: _Connection,
    collection: str,
    rows: Sequence[tuple[PendingChunk, NDArray[np.float32]]],
) -> None:
    """Copy chunks with their new vectors; chunks that were deleted meanwhile are left out."""
    ids = [chunk.id for chunk, _ in rows]
    for statement in _MAKE_ROOM:
        await connection.execute(_compose(collection, statement), (ids,))
    columns = await _columns(connection, collection)
    insert = _compose(
        collection,
        _INSERT,
        columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
        values=sql.SQL(", ").join(sql.Identifier("c", name) for name in columns),
    )
    await connection.execute(insert, (ids, [HalfVector(vector).to_text() for _, vector in rows]))


async def index_next(connection: _Connection, collection: str, dimensions: int) -> None:
    """Build the indexes that are missing, which is faster over a filled table."""
    await lift_timeouts(connection)
    await connection.execute(
        "select set_config('maintenance_work_mem', %s, true)", (_BUILD_MEMORY,)
    )
    for statement in children_statements(collection, dimensions)[1]:
        await connection.execute(statement)
    await connection.execute(_compose(collection, "analyze {next}"))


async def switch(
    connection: _Connection, collection: str, wanted: tuple[str, int]
) -> Literal["switched", "incomplete", "busy"]:
    """Put the second table in the first one's place and record the model, if it is complete.

    `busy` when others hold the tables for longer than readers should be kept waiting.
    """
    await lift_timeouts(connection)
    try:
        async with connection.transaction():
            # Shorter than the deadlock check, so that it is never a reader who is sent away.
            await connection.execute("select set_config('lock_timeout', '500ms', true)")
            # In the order in which pages are written.
            await connection.execute(
                _compose(collection, "lock table {documents}, {children} in access exclusive mode")
            )
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        return "busy"
    cursor = await connection.execute(
        _compose(
            collection,
            "select from {children} c"
            " where not exists (select from {next} n where n.id = c.id) limit 1",
        )
    )
    if await cursor.fetchone() is not None:
        return "incomplete"
    await connection.execute(_compose(collection, _STALE))
    await _replace(connection, collection)
    await _record(connection, collection, wanted)
    return "switched"


async def _replace(connection: _Connection, collection: str) -> None:
    name = table(collection, "data_children").as_string(connection)
    grants = await (await connection.execute(_GRANTS, (name,))).fetchall()
    await connection.execute(
        _compose(
            collection,
            "select setval(pg_get_serial_sequence(%s, 'id'),"
            " nextval(pg_get_serial_sequence(%s, 'id')), false)",
        ),
        (table(collection, NEXT_CHILDREN).as_string(connection), name),
    )
    await connection.execute(_compose(collection, "drop table {children}"))
    await connection.execute(_compose(collection, "alter table {next} rename to data_children"))
    names = await (await connection.execute(_RENAMED, (collection, NEXT_CHILDREN))).fetchall()
    for old, kind in names:
        new = old.replace(NEXT_CHILDREN, "data_children", 1)
        what = sql.SQL("sequence" if kind == "S" else "index")
        await connection.execute(
            sql.SQL("alter {} {} rename to {}").format(
                what, table(collection, old), sql.Identifier(new)
            )
        )
    for (grant,) in grants:
        await connection.execute(sql.SQL(grant))


async def _record(connection: _Connection, collection: str, wanted: tuple[str, int]) -> None:
    update = _compose(collection, "update {meta} set value = %s where key = %s")
    await connection.execute(update, (Jsonb(wanted[0]), "embedding_model"))
    await connection.execute(update, (Jsonb(wanted[1]), "embedding_dimensions"))
    await connection.execute(
        _compose(collection, "delete from {meta} where key = %s"), (_META_KEY,)
    )


async def _columns(connection: _Connection, collection: str) -> list[str]:
    """Columns of the searched table but the vector; a later version may have more."""
    cursor = await connection.execute(
        "select attname::text from pg_attribute where attrelid = %s::regclass and attnum > 0"
        " and not attisdropped and attname <> 'embedding' order by attnum",
        (table(collection, "data_children").as_string(connection),),
    )
    return [name for (name,) in await cursor.fetchall()]


def _compose(collection: str, statement: str, **parts: sql.Composable) -> sql.Composed:
    return sql.SQL(statement).format(
        children=table(collection, "data_children"),
        next=table(collection, NEXT_CHILDREN),
        documents=table(collection, "documents"),
        meta=table(collection, "corpus_meta"),
        **parts,
    )
