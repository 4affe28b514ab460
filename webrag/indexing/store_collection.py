"""Runs the vector store's work on its collection, which is made when it is first used."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from webrag.errors import ConfigurationError
from webrag.indexing.bulk_load import finish_interrupted_load
from webrag.indexing.database import Database
from webrag.indexing.schema import corpus_embedding, ensure_schema
from webrag.indexing.steps import Steps, run_steps, run_steps_sync

__all__ = ["StoreCollection"]

T = TypeVar("T")


class StoreCollection:
    """A collection for callers with and without an event loop.

    Args:
        database: Where it is.
        embedding: Model and dimensions; the model is recorded when the collection does not exist
            yet, the dimensions must be those of an existing one.
    """

    def __init__(self, database: Database, embedding: tuple[str, int]) -> None:
        self.database = database
        self.name = database.config.collection
        self._embedding = embedding
        self._is_ready = False

    def run(self, make: Callable[[], Steps[T]], *, autocommit: bool = False) -> T:
        """Do the work in a transaction; blocks.

        Args:
            make: Gives the work, anew for each attempt.
            autocommit: The work begins its transaction itself, if it needs one.
        """
        if not self._is_ready:
            _run_in_thread(self._prepare_apart)
            self._is_ready = True
        return self.database.run_sync(
            lambda connection: run_steps_sync(connection, make()), autocommit=autocommit
        )

    async def arun(self, make: Callable[[], Steps[T]], *, autocommit: bool = False) -> T:
        """As `run`, without blocking."""
        await self.prepare()
        return await self.database.run(
            lambda connection: run_steps(connection, make()), autocommit=autocommit
        )

    async def prepare(self) -> None:
        """Make the collection if it is missing; repeating it is free.

        Raises:
            ConfigurationError: It has vectors of another size.
        """
        if not self._is_ready:
            await self._prepare(self.database)
            self._is_ready = True

    async def _prepare(self, database: Database) -> None:
        model, dimensions = self._embedding
        existing = await corpus_embedding(database)
        if existing is None:
            await ensure_schema(database, embedding_model=model, embedding_dimensions=dimensions)
        elif existing[1] != dimensions:
            raise ConfigurationError(
                f"The collection {self.name!r} has vectors of {existing[1]} dimensions, "
                f"made with {existing[0]}; embed_dim is {dimensions}."
            )
        await finish_interrupted_load(database)

    async def _prepare_apart(self) -> None:
        database = Database(self.database.config)
        try:
            await self._prepare(database)
        finally:
            await database.close()


def _run_in_thread(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine to its end, also when the calling thread has a running event loop."""
    with ThreadPoolExecutor(max_workers=1) as executor:
        executor.submit(lambda: asyncio.run(work())).result()
