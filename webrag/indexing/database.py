"""Connections and transactions on the corpus's Postgres; it knows no tables.

Nothing else opens connections. Passwords never reach messages or logs.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, IsolationLevel
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from webrag.errors import (
    DatabaseUnavailableError,
    InputError,
    StorageError,
    WebRAGError,
)
from webrag.indexing.connection_errors import (
    closed_error,
    is_lost,
    storage_error,
    unreachable_error,
)
from webrag.indexing.models import DatabaseConfig
from webrag.indexing.pools import AsyncPools, configure_async, make_sync_pool
from webrag.indexing.schema import check_collection_name
from webrag.indexing.server import Server

__all__ = ["Database"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Database:
    """Pooled connections to one Postgres, safe to use from several event loops and threads.

    It opens itself on first use. `close` ends every pool and lets the embedded server stop when
    no other process uses it; a closed database may be opened again, unless it was retired.

    Args:
        config: Which server, which collection, how many connections.

    Raises:
        ConfigurationError: The collection name or the DSN is not usable.
    """

    def __init__(self, config: DatabaseConfig) -> None:
        check_collection_name(config.collection)
        self.config = config
        self._mutex = threading.Lock()
        self._server = Server(config)
        self._pools = AsyncPools(self._server.conninfo_async, self._server.connect_kwargs, config)
        self._sync_pool: ConnectionPool[Connection[TupleRow]] | None = None
        self._is_retired = False

    @property
    def description(self) -> str:
        """For example `embedded PostgreSQL 18.4`; without the version before the first use."""
        return self._server.description

    async def open(self) -> None:
        """Start or reach the server and check that it can hold a corpus; repeating it is free.

        Raises:
            DatabaseUnavailableError: The server cannot be started or reached.
            ConfigurationError: The server is too old or lacks pgvector.
            InputError: The database was retired.
        """
        self._refuse_retired()
        if not self._server.is_open:
            await asyncio.to_thread(self._server.open)

    @asynccontextmanager
    async def connection(
        self, *, autocommit: bool = False
    ) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """A connection in a transaction that commits at the end and rolls back on an error.

        Args:
            autocommit: The transaction begins when the caller begins one; a statement before is
                one of its own, which saves it two round trips.

        Raises:
            DatabaseUnavailableError: None was free within the acquire timeout, or the server
                cannot be reached.
        """
        await self.open()
        if sys.platform == "win32":
            async with self._single_connection() as connection:
                await connection.set_autocommit(autocommit)
                yield connection
            return
        pool = await self._pools.current()
        try:
            connection = await pool.getconn()
        except PoolTimeout as error:
            raise await asyncio.to_thread(self._no_connection) from error
        except PoolClosed as error:
            raise closed_error() from error
        try:
            # Set anew for each use: a cancelled snapshot may leave its own behind.
            await connection.set_isolation_level(None)
            await connection.set_read_only(None)
            await connection.set_autocommit(autocommit)
            async with connection:
                yield connection
        finally:
            # A task can be cancelled once more while it gives the connection back, as steps of a
            # workflow are; the pool would count it as lent for ever.
            await asyncio.shield(pool.putconn(connection))

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """As `connection`, for work that cannot be repeated: failures are told as `run` does.

        Raises:
            StorageError: The database refused the operation or was lost.
        """
        try:
            async with self.connection() as connection:
                yield connection
        except psycopg.Error as error:
            if _is_cancelled():
                raise asyncio.CancelledError from error
            raise storage_error(error, self._server.embedded_folder) from error

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """A connection whose statements all see one state of the corpus, and cannot write."""
        async with self.connection() as connection:
            await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
            await connection.set_read_only(True)
            yield connection

    async def run(
        self,
        work: Callable[[AsyncConnection[TupleRow]], Awaitable[T]],
        *,
        snapshot: bool = False,
        autocommit: bool = False,
    ) -> T:
        """What `work` returns, done in one transaction.

        After a lost connection the server is started again if need be, and `work` is called
        a second time: it must do the same when repeated.

        Args:
            work: What to do.
            snapshot: All its statements see one state of the corpus, and cannot write.
            autocommit: `work` begins the transaction itself, if it needs one.

        Raises:
            StorageError: The database refused the operation or lost it twice.
        """
        for last_attempt in (False, True):
            opened = self.snapshot() if snapshot else self.connection(autocommit=autocommit)
            connection: AsyncConnection[TupleRow] | None = None
            try:
                async with opened as connection:
                    return await work(connection)
            except psycopg.Error as error:
                if _is_cancelled():
                    raise asyncio.CancelledError from error
                if last_attempt or not is_lost(error, connection):
                    raise storage_error(error, self._server.embedded_folder) from error
                logger.info("The database connection was lost; trying once more.")
        raise AssertionError

    @contextmanager
    def sync_connection(self, *, autocommit: bool = False) -> Iterator[Connection[TupleRow]]:
        """As `connection`, for synchronous callers."""
        pool = self._ensure_sync_pool()
        try:
            connection = pool.getconn()
        except PoolTimeout as error:
            raise self._no_connection() from error
        except PoolClosed as error:
            raise closed_error() from error
        try:
            connection.isolation_level = connection.read_only = None
            connection.autocommit = autocommit
            with connection:
                yield connection
        finally:
            pool.putconn(connection)

    def run_sync(
        self,
        work: Callable[[Connection[TupleRow]], T],
        *,
        snapshot: bool = False,
        autocommit: bool = False,
    ) -> T:
        """As `run`, for synchronous callers."""
        for last_attempt in (False, True):
            connection: Connection[TupleRow] | None = None
            try:
                with self.sync_connection(autocommit=autocommit) as connection:
                    if snapshot:
                        connection.isolation_level = IsolationLevel.REPEATABLE_READ
                        connection.read_only = True
                    return work(connection)
            except psycopg.Error as error:
                if last_attempt or not is_lost(error, connection):
                    raise storage_error(error, self._server.embedded_folder) from error
                logger.info("The database connection was lost; trying once more.")
        raise AssertionError

    async def close(self) -> None:
        """Close all pools and give the embedded server up; repeating it does nothing."""
        await self._pools.close()
        await asyncio.to_thread(self._close_blocking)

    async def retire(self) -> None:
        """Close for good: what still holds this database is told so instead of opening it again."""
        self._is_retired = True
        await self.close()

    def _refuse_retired(self) -> None:
        if self._is_retired:
            raise InputError("WebRAG was closed: use its parts while it is open.")

    def _close_blocking(self) -> None:
        with self._mutex:
            pool, self._sync_pool = self._sync_pool, None
        if pool is not None:
            pool.close()  # its threads may be waiting for the mutex
        self._server.release()

    def _ensure_sync_pool(self) -> ConnectionPool[Connection[TupleRow]]:
        self._refuse_retired()
        self._server.open()
        with self._mutex:
            if self._sync_pool is None:
                self._sync_pool = make_sync_pool(
                    self._server.conninfo, self._server.connect_kwargs, self.config
                )
            return self._sync_pool

    @asynccontextmanager
    async def _single_connection(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """Windows: psycopg wants the selector event loop, and its pools are not used there."""
        conninfo = await self._server.conninfo_async()
        try:
            connection = await AsyncConnection.connect(conninfo, **self._server.connect_kwargs)
        except psycopg.InterfaceError as error:
            raise DatabaseUnavailableError(
                "This event loop cannot serve the PostgreSQL driver on Windows.",
                hint="Run with asyncio.WindowsSelectorEventLoopPolicy.",
            ) from error
        except psycopg.OperationalError as error:
            raise unreachable_error(conninfo, error) from error
        async with connection:
            await configure_async(connection, self.config)
            yield connection

    def _no_connection(self) -> StorageError:
        """Why a pool had no connection to give: a dead server speaks for itself."""
        try:
            self._server.conninfo(check=True)
        except WebRAGError as error:
            if isinstance(error, StorageError):
                return error
            raise
        return DatabaseUnavailableError(
            f"All {self.config.pool_max_size} database connections were in use for"
            f" {self.config.acquire_timeout_s:g} seconds.",
            hint="Run fewer requests at once, or allow more connections.",
        )


def _is_cancelled() -> bool:
    """Whether an error only tells that the task was cancelled in the middle of a command.

    The driver then cannot end the command in good order, and what it raises hides the cancellation.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
