"""Embeds a stored corpus again, with another model, while the old vectors serve.

The new vectors are collected in a second searched table, kept when the work is interrupted. When
it holds every chunk and is indexed, it takes the place of the first one in a single transaction.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection, sql
from pydantic import BaseModel, ConfigDict

from webrag.errors import DatabaseUnavailableError, InputError, StorageError
from webrag.indexing.database import Database
from webrag.indexing.embedder import Embedder
from webrag.indexing.node_metadata import node_from_row
from webrag.indexing.page_rows import child_row
from webrag.indexing.reembedding_table import (
    PendingChunk,
    count_chunks,
    index_next,
    insert_vectors,
    known_vectors,
    pending_chunks,
    prepare_next,
    remove_stale,
    switch,
)
from webrag.indexing.schema import corpus_embedding

__all__ = ["ReindexReport", "reembed"]

logger = logging.getLogger(__name__)

_BATCH = 256
_LOCK_SEED = 43
_MOST_ROUNDS = 100
_SWITCH_PAUSE_S = 0.5
_SWITCH_ATTEMPTS = 240  # two minutes of readers that never let go


class ReindexReport(BaseModel):
    """What a reindexing did.

    Attributes:
        model: Model the corpus is made with now.
        dimensions: Its vector size.
        previous_model: Model it was made with before.
        chunks: Chunks with new vectors.
        embedded: Chunks embedded by this call; others were done by an interrupted one, or have
            the same text.
        was_current: Nothing had to be done.
    """

    model_config = ConfigDict(frozen=True)

    model: str
    dimensions: int
    previous_model: str
    chunks: int = 0
    embedded: int = 0
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

    Pages may be searched and added meanwhile. What was embedded is kept when the call ends early,
    and a later call for the same model goes on from there.

    Args:
        database: The collection.
        embedder: The new model.
        model: Name the collection records for it.
        force: Do it although the collection is made with this model already; also renews the
            searched table and its indexes.
        on_progress: Told how many chunks are done, and how many there are.

    Raises:
        InputError: The collection does not exist.
        ProviderError: Embedding failed; the collection is as it was.
        StorageError: Another process reindexes it, or the database failed.
    """
    found = await corpus_embedding(database)
    if found is None:
        raise InputError(f"The collection {database.config.collection!r} does not exist yet.")
    wanted = (model, embedder.dimensions)
    report = ReindexReport(model=model, dimensions=embedder.dimensions, previous_model=found[0])
    if found == wanted and not force:
        return report.model_copy(update={"was_current": True})
    async with _only_one(database):
        work = _Reembedding(database, embedder, wanted, on_progress)
        await work.run()
    return report.model_copy(update={"chunks": work.done, "embedded": work.embedded})


class _Reembedding:
    """One reindexing under way."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        wanted: tuple[str, int],
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        self.done = 0
        self.embedded = 0
        self._database = database
        self._collection = database.config.collection
        self._embedder = embedder
        self._wanted = wanted
        self._on_progress = on_progress

    async def run(self) -> None:
        collection, database = self._collection, self._database
        await database.run(lambda each: prepare_next(each, collection, self._wanted))
        await self._fill()
        await database.run(lambda each: index_next(each, collection, self._wanted[1]))
        # What others wrote meanwhile is little, and less with each round.
        for _ in range(_MOST_ROUNDS):
            await self._fill()
            if await self._switched():
                return
        raise StorageError(
            "Pages are being added faster than they can be embedded.",
            hint="Stop adding pages and run `webrag reindex` again; it goes on where it stopped.",
        )

    async def _fill(self) -> None:
        collection = self._collection
        await self._database.run(lambda each: remove_stale(each, collection))
        last = 0
        while True:
            start = last
            chunks = await self._database.run(
                lambda each: pending_chunks(each, collection, start, _BATCH)  # noqa: B023
            )
            await self._report()
            if not chunks:
                return
            await self._fill_batch(chunks)
            last = chunks[-1].id

    async def _fill_batch(self, chunks: Sequence[PendingChunk]) -> None:
        collection = self._collection
        hashes = list({chunk.text_hash for chunk in chunks})
        vectors = await self._database.run(lambda each: known_vectors(each, collection, hashes))
        new = {c.text_hash: _text(c) for c in chunks if c.text_hash not in vectors}
        made = await self._embedder.embed_documents(list(new.values()))
        vectors |= dict(zip(new, made, strict=True))
        self.embedded += len(new)
        rows = [(chunk, vectors[chunk.text_hash]) for chunk in chunks]
        await self._database.run(lambda each: insert_vectors(each, collection, rows))

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

    async def _report(self) -> None:
        total, self.done = await self._database.run(
            lambda each: count_chunks(each, self._collection)
        )
        if self._on_progress is not None:
            self._on_progress(min(self.done, total), total)


def _text(chunk: PendingChunk) -> str:
    """What is embedded, as it was when the page was indexed."""
    node = node_from_row(chunk.node_id, chunk.text, chunk.metadata)
    return child_row(node, chunk.ordinal).indexed_text


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
