"""Embeds a stored corpus again, with another model, while the old vectors serve."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb
from pydantic import Field

from webrag.corpus.rows import indexed_text
from webrag.corpus.schema import corpus_embedding, read_embedding
from webrag.corpus.tables import NEXT_CHILDREN, children_statements
from webrag.embedding.embedder import Embedder
from webrag.errors import InputError, StorageError, WebRAGError
from webrag.frozen import FrozenModel
from webrag.postgres.database import Connection, Database, Rows, table

_META_KEY = "reindexing"
_COUNTS = """
select (select count(*) from {data_children}), (select count(*) from {reindex_children})
"""
_BUILD_MEMORY = "256MB"

_PENDING = """
select c.id, c.node_id, c.text, c.metadata_ as metadata,
       coalesce(c.text_hash, decode(md5(c.node_id), 'hex')) as text_hash,
       (select d.url from {documents} d where d.id = c.document) as url
from {data_children} c
where c.id >= %s and not exists (select from {reindex_children} n where n.id = c.id)
order by c.id limit %s
"""

_KNOWN = """
select distinct on (text_hash) text_hash, embedding::halfvec from {reindex_children}
where text_hash = any(%s) and embedding is not null
"""

# A chunk may have been deleted and stored anew while its vector was made. The lock on its page
# holds until this transaction ends, so that the page's later removal also removes the copy.
_MAKE_ROOM = (
    "delete from {reindex_children} n using {data_children} c where c.id = any(%s)"
    " and n.node_id = c.node_id",
    "delete from {reindex_children} n using {data_children} c where c.id = any(%s)"
    " and n.document = c.document and n.ordinal = c.ordinal",
)

_INSERT = """
insert into {reindex_children} ({columns}, embedding)
select {values}, made.embedding::halfvec
from unnest(%s::bigint[], %s::text[]) made(id, embedding)
join {data_children} c on c.id = made.id join {documents} d on d.id = c.document
order by c.id for key share of d
on conflict do nothing
"""

_RENAMED = """
select c.relname, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %s and c.relkind in ('i', 'S') and strpos(c.relname, %s) = 1
"""

_GRANTS = """
select format('grant %%s on %%s to %%s', a.privilege_type, c.oid::regclass,
              case when a.grantee = 0 then 'public' else a.grantee::regrole::text end)
from pg_class c, aclexplode(c.relacl) a
where c.oid = '{data_children}'::regclass and a.grantee <> c.relowner
"""


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that has no new vector yet."""

    id: int
    node_id: str
    text: str
    metadata: dict[str, Any] | None
    text_hash: bytes
    url: str | None


async def unfinished_model(connection: Connection) -> tuple[str, int] | None:
    """Model and dimensions of an interrupted reindexing, None when there is none."""
    statement = "select value from {corpus_meta} where key = %s"
    rows = await connection.fetch(statement, (_META_KEY,))
    return (str(rows[0][0]["model"]), int(rows[0][0]["dimensions"])) if rows else None


async def prepare_next(connection: Connection, wanted: tuple[str, int]) -> None:
    """Make the second table, or keep an interrupted one that is for the same model."""
    if await unfinished_model(connection) != wanted:
        await connection.change("drop table if exists {reindex_children}")
    for statement in children_statements(connection.collection, wanted[1])[0]:
        await connection.execute(statement)
    # What an interrupted run had no vectors for is tried, and told, again.
    await connection.change("delete from {reindex_children} where embedding is null")
    value = Jsonb({"model": wanted[0], "dimensions": wanted[1]})
    await connection.change(
        "insert into {corpus_meta} (key, value) values (%s, %s)"
        " on conflict (key) do update set value = excluded.value",
        (_META_KEY, value),
    )


_MISSING = """
select c.id from {data_children} c
where not exists (select from {reindex_children} n where n.id = c.id) limit 1
"""

_STALE = """
delete from {reindex_children} n
where not exists (select from {data_children} c where c.id = n.id)
"""


async def insert_vectors(
    connection: Connection,
    wanted: tuple[str, int],
    rows: Sequence[tuple[PendingChunk, NDArray[np.float32] | None]],
) -> bool:
    """Copy chunks still there with new vectors, or none; False for another model's table."""
    # In the order in which `switch` takes them; from here on nobody switches or begins anew.
    await connection.change("lock table {documents} in row share mode")
    # Others are at it only where this process lost its lock. There is a table to wait for only
    # while one is being made, and after the wait it may be another model's.
    if await unfinished_model(connection) is None:
        return False
    await connection.change("lock table {reindex_children} in row exclusive mode")
    if await unfinished_model(connection) != wanted:
        return False
    ids = [chunk.id for chunk, _ in rows]
    for statement in _MAKE_ROOM:
        await connection.change(statement, (ids,))
    # A later version may have more of them.
    columns = await connection.fetch(
        "select attname::text from pg_attribute where attrelid = '{data_children}'::regclass"
        " and attnum > 0 and not attisdropped and attname <> 'embedding' order by attnum"
    )
    vectors = [None if vector is None else HalfVector(vector).to_text() for _, vector in rows]
    await connection.change(
        _INSERT,
        (ids, vectors),
        columns=sql.SQL(", ").join(sql.Identifier(name) for (name,) in columns),
        values=sql.SQL(", ").join(sql.Identifier("c", name) for (name,) in columns),
    )
    return True


async def switch(
    connection: Connection, wanted: tuple[str, int]
) -> Literal["switched", "incomplete", "busy"]:
    """Let the second table serve, if it is complete; `busy` where readers would wait."""
    await connection.lift_timeouts()
    try:
        async with connection.transaction():
            # Shorter than the deadlock check, so that it is never a reader who is sent away.
            await connection.set_locally(lock_timeout="500ms")
            # In the order in which pages are written.
            await connection.change(
                "lock table {documents}, {data_children} in access exclusive mode"
            )
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        return "busy"
    if await connection.fetch(_MISSING):
        return "incomplete"
    await connection.change(_STALE)
    await _replace(connection)
    if await read_embedding(connection) != wanted:
        # Vectors of another model say nothing: from now on past texts are found by their words.
        await connection.change(
            "alter table {past_children} alter column embedding type halfvec({size}) using null",
            size=sql.Literal(wanted[1]),
        )
    update = "update {corpus_meta} set value = %s where key = %s"
    await connection.change(update, (Jsonb(wanted[0]), "embedding_model"))
    await connection.change(update, (Jsonb(wanted[1]), "embedding_dimensions"))
    await connection.change("delete from {corpus_meta} where key = %s", (_META_KEY,))
    return "switched"


async def _replace(connection: Connection) -> None:
    grants = await connection.fetch(_GRANTS)
    await connection.change(
        "select setval(pg_get_serial_sequence('{reindex_children}', 'id'),"
        " nextval(pg_get_serial_sequence('{data_children}', 'id')), false)"
    )
    await connection.change("drop table {data_children}")
    await connection.change("alter table {reindex_children} rename to data_children")
    names = await connection.fetch(_RENAMED, (connection.collection, NEXT_CHILDREN))
    for old, kind in names:
        new = old.replace(NEXT_CHILDREN, "data_children", 1)
        what = sql.SQL("sequence" if kind == "S" else "index")
        await connection.execute(
            sql.SQL("alter {} {} rename to {}").format(
                what, table(connection.collection, old), sql.Identifier(new)
            )
        )
    for (grant,) in grants:
        await connection.execute(sql.SQL(grant))


logger = logging.getLogger(__name__)
_BATCH = 256
_LOCK_SEED = 43
_COUNT_PAUSE = 20  # times as long as counting took is not counted again
_MOST_ROUNDS = 100
_SWITCH_PAUSE_S = 0.5
_SWITCH_ATTEMPTS = 240  # two minutes of readers that never let go


class ReindexReport(FrozenModel):
    """The outcome of a reindexing.

    Of its chunks this call embedded some; others were done before or have the same text. Pages are
    named that have chunks the model does not take, which only their words find now.
    """

    model: str
    dimensions: int
    previous_model: str
    chunks: int = 0
    embedded: int = 0
    failed: dict[str, str] = Field(default_factory=dict)
    was_current: bool = False


async def reembed(
    database: Database,
    embedder: Embedder,
    model: str,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> ReindexReport:
    """Give every chunk of the collection a vector of this model, then search by those.

    Pages may be searched and added meanwhile. What was embedded before the call ends early is kept
    for the next one. A chunk that the model does not take has no vector and is named in the report.
    """
    found = await corpus_embedding(database)
    if found is None:
        raise InputError(f"The collection {database.config.collection!r} does not exist yet.")
    wanted = (model, embedder.dimensions)
    report = ReindexReport(model=model, dimensions=wanted[1], previous_model=found[0])
    if found == wanted and not force:
        return report.model_copy(update={"was_current": True})
    async with _only_one(database):
        work = _Reembedding(database, embedder, wanted, on_progress)
        await work.run()
    done = {"chunks": work.done, "embedded": work.embedded, "failed": work.failed()}
    return report.model_copy(update=done)


@dataclass
class _Reembedding:
    database: Database
    embedder: Embedder
    wanted: tuple[str, int]
    on_progress: Callable[[int, int], None] | None
    done: int = 0
    embedded: int = 0
    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    counts_at: float = 0.0

    async def run(self) -> None:
        """Embed every chunk, then let the collection be searched by the new vectors."""
        database = self.database
        await database.run(lambda each: prepare_next(each, self.wanted))
        await self._fill()
        await database.run(self._index)
        # What others wrote meanwhile is little, and less with each round.
        for _ in range(_MOST_ROUNDS):
            await self._fill()
            if await self._switched():
                return
        raise StorageError(
            "Pages are being added faster than they can be embedded.",
            hint="Stop adding pages and run `webrag reindex` again; it goes on where it stopped.",
        )

    async def _index(self, connection: Connection) -> None:
        """Build the indexes that are missing, which is faster over a filled table."""
        await connection.lift_timeouts()
        await connection.set_locally(maintenance_work_mem=_BUILD_MEMORY)
        for statement in children_statements(connection.collection, self.wanted[1])[1]:
            await connection.execute(statement)
        await connection.change("analyze {reindex_children}")

    async def _fill(self) -> None:
        """Deal with every chunk that has no new vector."""

        async def remove_stale(connection: Connection) -> None:
            await connection.lift_timeouts()
            await connection.change(_STALE)

        await self.database.run(remove_stale)
        first = 0
        while chunks := await self.database.fetch_as(PendingChunk, _PENDING, (first, _BATCH)):
            await self._report(is_last=False)
            if not await self._fill_batch(chunks):
                raise StorageError("The second table is being made for another model.")
            first = chunks[-1].id + 1
        await self._report(is_last=True)

    async def _fill_batch(self, chunks: Sequence[PendingChunk]) -> bool:
        wanted = self.wanted
        hashes = list({chunk.text_hash for chunk in chunks})
        known = await self.database.fetch(_KNOWN, (hashes,))
        vectors = {bytes(key): each.to_numpy().astype(np.float32) for key, each in known}
        new = {
            chunk.text_hash: indexed_text(chunk.node_id, chunk.text, chunk.metadata)
            for chunk in chunks
            if chunk.text_hash not in vectors
        }
        made = await self.embedder.embed_what_it_takes(list(new.values()))
        refused: dict[bytes, WebRAGError] = {}
        for text_hash, each in zip(new, made, strict=True):
            if isinstance(each, WebRAGError):
                refused[text_hash] = each
            else:
                vectors[text_hash] = each
        self.embedded += len(new) - len(refused)
        for chunk in chunks:
            if chunk.text_hash in refused:
                page = chunk.url or chunk.node_id
                self.refused[page, chunk.node_id] = str(refused[chunk.text_hash])
                logger.warning("A chunk of %s has no vector: %s", page, refused[chunk.text_hash])
        rows = [(chunk, vectors.get(chunk.text_hash)) for chunk in chunks]
        return await self.database.run(lambda each: insert_vectors(each, wanted, rows))

    def failed(self) -> dict[str, str]:
        """Pages with chunks that were refused, and why the first one was."""
        found: dict[str, list[str]] = {}
        for (page, _), reason in self.refused.items():
            found.setdefault(page, []).append(reason)
        return {
            page: reasons[0] if len(reasons) == 1 else f"{len(reasons):,} chunks: {reasons[0]}"
            for page, reasons in found.items()
        }

    async def _switched(self) -> bool:
        """Tell whether the new table serves now; not when chunks are missing from it."""
        for _ in range(_SWITCH_ATTEMPTS):
            outcome = await self.database.run(lambda each: switch(each, self.wanted))
            if outcome != "busy":
                return outcome == "switched"
            await asyncio.sleep(_SWITCH_PAUSE_S)
        raise StorageError(
            "The new index is complete, but others keep the tables in use all the time.",
            hint="Run `webrag reindex` again when fewer processes use the collection.",
        )

    async def _report(self, *, is_last: bool) -> None:
        # It reads both tables, and there are four thousand batches in a million chunks.
        begun = time.monotonic()
        if begun < self.counts_at and not is_last:
            return

        async def count(connection: Connection) -> Rows:
            await connection.lift_timeouts()
            return await connection.fetch(_COUNTS)

        ((total, self.done),) = await self.database.run(count)
        self.counts_at = begun + (1 + _COUNT_PAUSE) * (time.monotonic() - begun)
        if self.on_progress is not None:
            self.on_progress(min(self.done, total), total)


@asynccontextmanager
async def _only_one(database: Database) -> AsyncIterator[None]:
    """Hold the collection's reindexing lock; it ends with the process, however that ends."""
    async with database.holder() as connection:
        if not await connection.try_lock(f"reindex {connection.collection}", _LOCK_SEED):
            raise StorageError(
                f"The collection {connection.collection!r} is being reindexed by another process.",
                hint="Wait until it has finished.",
            )
        yield
