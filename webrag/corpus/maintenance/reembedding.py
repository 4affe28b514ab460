"""Embeds a stored corpus again, with another model, while the old vectors serve."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import AsyncConnection, sql
from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from pydantic import BaseModel, ConfigDict

from webrag.corpus.rows import indexed_text
from webrag.corpus.schema import corpus_embedding, read_embedding, table
from webrag.corpus.tables import NEXT_CHILDREN, children_statements
from webrag.embedding.embedder import Embedder
from webrag.errors import DatabaseUnavailableError, InputError, StorageError, WebRAGError
from webrag.postgres.database import Database, lift_timeouts

_Connection = AsyncConnection[Any]

_META_KEY = "reindexing"

_BUILD_MEMORY = "256MB"

_CHUNKS = """
select c.id, c.node_id, c.text, c.metadata_ as metadata, c.ordinal,
       coalesce(c.text_hash, decode(md5(c.node_id), 'hex')) as text_hash,
       (select d.url from {documents} d where d.id = c.document) as url
from {children} c where not exists (select from {next} n where n.id = c.id)
"""

_PENDING = f"{_CHUNKS} and c.id > %s order by c.id limit %s"

_PENDING_FROM_THE_END = f"{_CHUNKS} and c.id between %s and %s order by c.id desc limit %s"

_KNOWN = """
select distinct on (text_hash) text_hash, embedding::halfvec from {next}
where text_hash = any(%s) and embedding is not null
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
    url: str | None


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
    # What an interrupted run had no vectors for is tried, and told, again.
    await connection.execute(_compose(collection, "delete from {next} where embedding is null"))
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
    return await _select_chunks(connection, collection, _PENDING, (after, limit))


async def _select_chunks(
    connection: _Connection, collection: str, statement: str, values: tuple[int, ...]
) -> list[PendingChunk]:
    async with connection.cursor(row_factory=class_row(PendingChunk)) as cursor:
        await cursor.execute(_compose(collection, statement), values)
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
    wanted: tuple[str, int],
    rows: Sequence[tuple[PendingChunk, NDArray[np.float32] | None]],
) -> bool:
    """Copy chunks with their new vectors, or none; those deleted meanwhile are left out.

    Returns:
        False when the second table is not for this model any more; nothing was written.
    """
    # In the order in which `switch` takes them; from here on nobody switches or begins anew.
    await connection.execute(_compose(collection, "lock table {documents} in row share mode"))
    if await unfinished_model(connection, collection) is None:
        return False
    await connection.execute(_compose(collection, "lock table {next} in row exclusive mode"))
    if await unfinished_model(connection, collection) != wanted:
        return False
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
    vectors = [None if vector is None else HalfVector(vector).to_text() for _, vector in rows]
    await connection.execute(insert, (ids, vectors))
    return True


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
    if await read_embedding(connection, collection) != wanted:
        await _leave_past_to_words(connection, collection, wanted[1])
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


async def _leave_past_to_words(connection: _Connection, collection: str, dimensions: int) -> None:
    """Vectors of another model say nothing: from now on past texts are found by their words."""
    await connection.execute(
        _compose(
            collection,
            "alter table {past} alter column embedding type halfvec({size}) using null",
            past=table(collection, "past_children"),
            size=sql.Literal(dimensions),
        )
    )


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


logger = logging.getLogger(__name__)

_BATCH = 256

# Chunks; the bundled model embeds them in 0.9 s, so that fewer are worth no job.
_LEAST_RANGE = 4_096

_LOCK_SEED = 43

_COUNT_PAUSE = 20  # times as long as counting took is not counted again

_MOST_ROUNDS = 100

_SWITCH_PAUSE_S = 0.5

_SWITCH_ATTEMPTS = 240  # two minutes of readers that never let go


class ReindexReport(BaseModel):
    """What a reindexing did.

    Attributes:
        model: Model the corpus is made with now.
        dimensions: Its vector size.
        previous_model: Model it was made with before.
        chunks: Chunks of the new index.
        embedded: Chunks embedded by this call; others were done by an interrupted one, or have
            the same text.
        failed: Pages with chunks that the model does not take, which only their words find now:
            URL to reason.
        was_current: Nothing had to be done.
        is_paused: The call ended early, as it was asked to; the old vectors serve.
    """

    model_config = ConfigDict(frozen=True)

    model: str
    dimensions: int
    previous_model: str
    chunks: int = 0
    embedded: int = 0
    failed: dict[str, str] = {}
    was_current: bool = False
    is_paused: bool = False


async def reembed(
    database: Database,
    embedder: Embedder,
    model: str,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    is_over: Callable[[], bool] | None = None,
) -> ReindexReport:
    """Give every chunk of the collection a vector of this model, then search by those.

    Pages may be searched and added meanwhile. What was embedded is kept when the call ends early,
    and a later call for the same model goes on from there. A chunk that the model does not take
    has no vector and is named in the report.

    Args:
        database: The collection.
        embedder: The new model.
        model: Name the collection records for it.
        force: Do it although the collection is made with this model already; also renews the
            searched table and its indexes.
        on_progress: Told how many chunks are done, and how many there are.
        is_over: Asked between two batches; when it is true, the call ends early.

    Raises:
        InputError: The collection does not exist.
        ProviderError: Embedding failed; the collection is as it was.
        StorageError: Another process reindexes it, or the database failed.
    """
    found = await _embedding_of(database)
    wanted = (model, embedder.dimensions)
    report = ReindexReport(model=model, dimensions=embedder.dimensions, previous_model=found[0])
    if found == wanted and not force:
        return report.model_copy(update={"was_current": True})
    async with _only_one(database):
        work = _Reembedding(database, embedder, wanted, on_progress, is_over)
        is_paused = not await work.run()
    done = {"chunks": work.done, "embedded": work.embedded, "failed": work.failed()}
    return report.model_copy(update=done | {"is_paused": is_paused})


async def prepare_reembedding(database: Database, wanted: tuple[str, int]) -> None:
    """Let `reembed_range` fill a second table, which `reembed` then switches to.

    Raises:
        InputError: The collection does not exist.
        StorageError: Another process reindexes it, or the database failed.
    """
    await _embedding_of(database)
    async with _only_one(database):
        await database.run(lambda each: prepare_next(each, database.config.collection, wanted))


async def is_reembedding(database: Database, wanted: tuple[str, int]) -> bool:
    """Whether a second table is being filled with vectors of this model."""
    collection = database.config.collection
    return await database.run(lambda each: unfinished_model(each, collection)) == wanted


async def chunk_ranges(database: Database, most: int) -> list[tuple[int, int]]:
    """Numbers of the first and the last chunk of about equal parts of the collection.

    Args:
        database: The collection.
        most: Parts at most; one of less than 4,096 chunks is not divided.
    """
    collection = database.config.collection

    async def work(connection: _Connection) -> Sequence[Any]:
        cursor = await connection.execute(
            _compose(collection, "select min(id), max(id) from {children}")
        )
        return await cursor.fetchone() or (None, None)

    first, last = await database.run(work)
    if first is None:
        return []
    count = min(most, (last - first + 1) // _LEAST_RANGE) or 1
    edges = [first + (last + 1 - first) * part // count for part in range(count + 1)]
    return [(low, high - 1) for low, high in pairwise(edges)]


async def reembed_range(
    database: Database,
    embedder: Embedder,
    model: str,
    numbers: tuple[int, int],
    *,
    is_over: Callable[[], bool] | None = None,
) -> tuple[int, bool]:
    """Embed some chunks for a reindexing that `reembed` completes, from the last one down.

    As `reembed` goes upwards, the two meet. Chunks that the model does not take are left to it.

    Args:
        database: The collection.
        embedder: The new model.
        model: Its name; nothing is done when `prepare_reembedding` was not called for it, or when
            the collection has been switched over.
        numbers: Of the first and the last chunk.
        is_over: Asked between two batches; when it is true, the call ends early.

    Returns:
        How many chunks were embedded, and whether nothing is left to do.

    Raises:
        ProviderError: Embedding failed.
        StorageError: The database failed.
    """
    work = _Reembedding(database, embedder, (model, embedder.dimensions), None, is_over)
    is_done = await work.fill_downwards(*numbers)
    return work.embedded, is_done


async def _embedding_of(database: Database) -> tuple[str, int]:
    found = await corpus_embedding(database)
    if found is None:
        raise InputError(f"The collection {database.config.collection!r} does not exist yet.")
    return found


class _Reembedding:
    """One reindexing under way."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        wanted: tuple[str, int],
        on_progress: Callable[[int, int], None] | None,
        is_over: Callable[[], bool] | None = None,
    ) -> None:
        self.done = 0
        self.embedded = 0
        self._refused: dict[tuple[str, str], str] = {}
        self._database = database
        self._collection = database.config.collection
        self._embedder = embedder
        self._wanted = wanted
        self._on_progress = on_progress
        self._is_over = is_over or (lambda: False)
        self._counts_at = 0.0

    async def run(self) -> bool:
        """Whether the collection was switched over; not when the call was to end early."""
        collection, database = self._collection, self._database
        await database.run(lambda each: prepare_next(each, collection, self._wanted))
        if not await self._fill():
            return False
        await database.run(lambda each: index_next(each, collection, self._wanted[1]))
        # What others wrote meanwhile is little, and less with each round.
        for _ in range(_MOST_ROUNDS):
            if not await self._fill():
                return False
            if await self._switched():
                return True
        raise StorageError(
            "Pages are being added faster than they can be embedded.",
            hint="Stop adding pages and run `webrag reindex` again; it goes on where it stopped.",
        )

    async def fill_downwards(self, first: int, last: int) -> bool:
        """Whether all of a range that the model takes is embedded, or need not be any more."""

        async def pending(connection: _Connection) -> list[PendingChunk]:
            if await unfinished_model(connection, self._collection) != self._wanted:
                return []
            values = (first, last, _BATCH)
            return await _select_chunks(connection, self._collection, _PENDING_FROM_THE_END, values)

        while not self._is_over():
            chunks = await self._database.run(pending)
            if not chunks or not await self._fill_batch(chunks, with_refused=False):
                return True
            last = chunks[-1].id - 1
        return False

    async def _fill(self) -> bool:
        """Whether every chunk has been dealt with; not when the call was to end early."""
        collection = self._collection
        await self._database.run(lambda each: remove_stale(each, collection))
        last = 0
        while not self._is_over():
            start = last
            chunks = await self._database.run(
                lambda each: pending_chunks(each, collection, start, _BATCH)  # noqa: B023
            )
            await self._report(is_last=not chunks)
            if not chunks:
                return True
            if not await self._fill_batch(chunks, with_refused=True):
                raise StorageError("The second table is being made for another model.")
            last = chunks[-1].id
        return False

    async def _fill_batch(self, chunks: Sequence[PendingChunk], *, with_refused: bool) -> bool:
        collection, wanted = self._collection, self._wanted
        hashes = list({chunk.text_hash for chunk in chunks})
        vectors = await self._database.run(lambda each: known_vectors(each, collection, hashes))
        new = {
            chunk.text_hash: indexed_text(chunk.node_id, chunk.text, chunk.metadata)
            for chunk in chunks
            if chunk.text_hash not in vectors
        }
        made = await self._embedder.embed_what_it_takes(list(new.values()))
        refused: dict[bytes, WebRAGError] = {}
        for text_hash, each in zip(new, made, strict=True):
            if isinstance(each, WebRAGError):
                refused[text_hash] = each
            else:
                vectors[text_hash] = each
        self.embedded += len(new) - len(refused)
        self._note(chunks, refused)
        rows = [
            (chunk, vectors.get(chunk.text_hash))
            for chunk in chunks
            if with_refused or chunk.text_hash in vectors
        ]
        return await self._database.run(lambda each: insert_vectors(each, collection, wanted, rows))

    def _note(self, chunks: Sequence[PendingChunk], refused: Mapping[bytes, WebRAGError]) -> None:
        for chunk in chunks:
            if chunk.text_hash in refused:
                page = chunk.url or chunk.node_id
                self._refused[page, chunk.node_id] = str(refused[chunk.text_hash])
                logger.warning("A chunk of %s has no vector: %s", page, refused[chunk.text_hash])

    def failed(self) -> dict[str, str]:
        """Pages with chunks that were refused, and why the first one was."""
        found: dict[str, list[str]] = {}
        for (page, _), reason in self._refused.items():
            found.setdefault(page, []).append(reason)
        return {
            page: reasons[0] if len(reasons) == 1 else f"{len(reasons):,} chunks: {reasons[0]}"
            for page, reasons in found.items()
        }

    async def _switched(self) -> bool:
        """Whether the new table serves now; not when chunks are missing from it."""
        for _ in range(_SWITCH_ATTEMPTS):
            outcome = await self._database.run(
                lambda each: switch(each, self._collection, self._wanted)
            )
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
        if begun < self._counts_at and not is_last:
            return
        total, self.done = await self._database.run(
            lambda each: count_chunks(each, self._collection)
        )
        self._counts_at = begun + (1 + _COUNT_PAUSE) * (time.monotonic() - begun)
        if self._on_progress is not None:
            self._on_progress(min(self.done, total), total)


@asynccontextmanager
async def _only_one(database: Database) -> AsyncIterator[None]:
    """Hold the collection's reindexing lock; it ends with the process, however that ends."""
    is_done = False
    try:
        async with database.session() as connection:
            if not await _try_lock(connection, database.config.collection):
                raise StorageError(
                    f"The collection {database.config.collection!r} is being reindexed by another"
                    " process.",
                    hint="Wait until it has finished.",
                )
            yield
            is_done = True
    except DatabaseUnavailableError:
        if not is_done:
            raise
        logger.info("The connection that held the lock was lost; the work was done without it.")


async def _try_lock(connection: AsyncConnection[Any], collection: str) -> bool:
    cursor = await connection.execute(
        sql.SQL("select pg_try_advisory_xact_lock(hashtextextended(%s, %s))"),
        (f"reindex {collection}", _LOCK_SEED),
    )
    row = await cursor.fetchone()
    return bool(row and row[0])
