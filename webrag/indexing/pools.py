"""Connection pools: one per running event loop and one for threads; they start no server.

An asynchronous pool belongs to the loop that opened it: used from another one it works until a
connection breaks and then waits for ever.
"""

import asyncio
import logging
import selectors
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import psycopg
from pgvector.psycopg import register_vector, register_vector_async
from psycopg import AsyncConnection, Connection, sql
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from webrag.indexing.models import DatabaseConfig
from webrag.indexing.timeouts import LIMIT_SESSION, session_limits

__all__ = ["AsyncPools", "configure", "configure_async", "make_sync_pool", "may_be_lost"]

logger = logging.getLogger(__name__)

_CLOSE_TIMEOUT_S = 5.0

# pgvector may live in a schema of its own that is not on the search path; its operators and
# operator classes cannot be written with a schema in every place.
_EXTEND_PATH = sql.SQL("""
select set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''),
                                           quote_ident(n.nspname)), false)
from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'vector' and n.nspname <> all (current_schemas(true))
""")


async def configure_async(connection: AsyncConnection[TupleRow], config: DatabaseConfig) -> None:
    """Make pgvector's types and operators known to a new connection, and limit its statements."""
    await connection.execute(_EXTEND_PATH)
    await connection.execute(LIMIT_SESSION, session_limits(config.statement_timeout_s))
    await register_vector_async(connection)
    await connection.commit()


def configure(connection: Connection[TupleRow], config: DatabaseConfig) -> None:
    """Make pgvector's types and operators known to a new connection, and limit its statements."""
    connection.execute(_EXTEND_PATH)
    connection.execute(LIMIT_SESSION, session_limits(config.statement_timeout_s))
    register_vector(connection)
    connection.commit()


def may_be_lost(connection: AsyncConnection[TupleRow] | Connection[TupleRow]) -> bool:
    """Whether the server has said something unasked, as it does when it ends a connection.

    Asking it costs a round trip for each use, a third of a short search; a look at the socket
    costs 20 us.
    """
    if connection.closed:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


class _Pool(AsyncConnectionPool[AsyncConnection[TupleRow]]):
    """A pool that lets its event loop end without being closed first.

    The library's workers swallow a cancellation that meets them while they connect, and then
    `asyncio.run` waits for them for ever.
    """

    @classmethod
    async def worker(cls, q: Any) -> None:
        await super().worker(cast(Any, _EndingQueue(q)))


class _EndingQueue:
    """Gives no more work to a task that was cancelled."""

    def __init__(self, queue: "asyncio.Queue[Any]") -> None:
        self._queue = queue

    async def get(self) -> Any:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return await self._queue.get()


class AsyncPools:
    """The asynchronous pools of one database, made on first use in each event loop.

    Args:
        conninfo: Called for each new connection; it may start the server again.
        kwargs: Further arguments of each connection.
        config: Sizes and the acquire timeout.
    """

    def __init__(
        self,
        conninfo: Callable[[], Awaitable[str]],
        kwargs: dict[str, Any],
        config: DatabaseConfig,
    ) -> None:
        self._conninfo = conninfo
        self._kwargs = kwargs
        self._config = config
        self._mutex = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, _Pool] = {}

    async def current(self) -> _Pool:
        """The open pool of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._mutex:
            for closed in [known for known in self._by_loop if known.is_closed()]:
                del self._by_loop[closed]  # its workers ended with the loop
            pool = self._by_loop.get(loop)
            if pool is None:
                pool = self._by_loop[loop] = self._make()
        await pool.open()
        return pool

    async def close(self) -> None:
        """Close every pool, each in the loop it belongs to."""
        with self._mutex:
            pools, self._by_loop = self._by_loop, {}
        here = asyncio.get_running_loop()
        for loop, pool in pools.items():
            if loop is here:
                await pool.close(_CLOSE_TIMEOUT_S)
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(pool.close(_CLOSE_TIMEOUT_S), loop)
                await asyncio.wrap_future(closing)

    def _make(self) -> _Pool:
        async def check(connection: AsyncConnection[TupleRow]) -> None:
            if not may_be_lost(connection):
                return
            try:
                await AsyncConnectionPool.check_connection(connection)
            except psycopg.Error:
                # One dead connection means that all are; tried one by one, with the pool's
                # growing pauses between, ten of them outlast the acquire timeout.
                await pool.drain()
                raise

        pool = _Pool(
            self._conninfo,
            kwargs=self._kwargs,
            min_size=self._config.pool_min_size,
            max_size=max(self._config.pool_min_size, self._config.pool_max_size),
            timeout=self._config.acquire_timeout_s,
            configure=partial(configure_async, config=self._config),
            check=check,
            open=False,
        )
        return pool


def make_sync_pool(
    conninfo: Callable[[], str], kwargs: dict[str, Any], config: DatabaseConfig
) -> ConnectionPool[Connection[TupleRow]]:
    """An open pool for synchronous callers in any thread; it connects on first use."""

    def check(connection: Connection[TupleRow]) -> None:
        if not may_be_lost(connection):
            return
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.Error:
            pool.drain()
            raise

    pool: ConnectionPool[Connection[TupleRow]] = ConnectionPool(
        conninfo,
        kwargs=kwargs,
        min_size=0,
        max_size=max(config.pool_min_size, config.pool_max_size),
        timeout=config.acquire_timeout_s,
        configure=partial(configure, config=config),
        check=check,
        open=True,
    )
    return pool
