"""Connections to a collection, their statements and transactions, from pools and within limits."""

import asyncio
import logging
import selectors
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from string import Formatter
from typing import Any, Self, TypeVar, cast

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import AsyncConnection, sql
from psycopg.pq import PipelineStatus
from psycopg.rows import TupleRow, class_row
from psycopg.types import TypeInfo
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout
from pydantic_core import from_json

from webrag.errors import DatabaseUnavailableError, InputError, StorageError
from webrag.postgres.config import DatabaseConfig, check_collection_name
from webrag.postgres.server import Server, is_lost, storage_error, unreachable_error

logger = logging.getLogger(__name__)

_CLOSE_TIMEOUT_S = 5.0
_CLOSED = "The database was closed while it was in use."
_POOLS = "_webrag_pools"  # of an event loop

# pgvector may live in a schema of its own that is not on the search path; its operators and
# operator classes cannot be written with a schema in every place. What the user's own role,
# database or DSN limits is kept. A lock is waited for half as long as a statement may take.
_SET_UP = sql.SQL("""
select set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''),
                                           quote_ident(n.nspname)), false)
from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'vector' and n.nspname <> all (current_schemas(true))
union all
select set_config(name, given, false)
from (values ('statement_timeout', %(ms)s || 'ms'), ('lock_timeout', %(ms)s / 2 || 'ms'))
     as wanted (name, given)
where current_setting(name) = '0'
""")
_FIND_TYPE = sql.SQL("""
select t.oid, t.typarray
from pg_type t join pg_extension e on e.extnamespace = t.typnamespace
where e.extname = 'vector' and t.typname = 'halfvec'
""")


T = TypeVar("T")

Rows = list[tuple[Any, ...]]

Query = str | bytes | sql.SQL | sql.Composed

Values = Sequence[Any] | Mapping[str, Any]


def table(collection: str, name: str) -> sql.Composed:
    """The quoted `schema.table` of a collection's table."""
    return sql.SQL("{}").format(sql.Identifier(check_collection_name(collection), name))


def compose(collection: str, text: str, /, **parts: sql.Composable) -> sql.Composed:
    """Put parts, and the collection's tables for all other names, into a statement's braces."""
    named = {name for _, name, _, _ in Formatter().parse(text) if name}
    tables = {name: table(collection, name) for name in named - parts.keys()}
    return sql.SQL(text).format(**tables, **parts)


@lru_cache(maxsize=256)
def _named(collection: str, text: str) -> bytes:
    """A statement with the names of its tables; composing one anew takes a tenth of a ms."""
    return compose(collection, text).as_bytes(None)


class Connection(AsyncConnection[TupleRow]):
    """A connection to a collection, whose tables the statements below have in braces."""

    collection: str

    async def fetch(
        self, text: Query, values: Values = (), /, *, binary: bool = False, **parts: sql.Composable
    ) -> Rows:
        """Run a statement in the current transaction and give its rows, none where it has none.

        In `binary` form numbers and bytes travel faster. The `parts` are as for `compose`.
        """
        cursor = await self.execute(self._composed(text, parts), values, binary=binary)
        return await cursor.fetchall() if cursor.description else []

    async def fetch_as(
        self, kind: type[T], text: Query, values: Values = (), /, **parts: sql.Composable
    ) -> list[T]:
        """As `fetch`, with rows as objects whose fields are the columns."""
        async with self.cursor(row_factory=class_row(kind)) as cursor:
            await cursor.execute(self._composed(text, parts), values)
            return await cursor.fetchall()

    async def change(self, text: Query, values: Values = (), /, **parts: sql.Composable) -> int:
        """Run a statement in the current transaction and give the number of rows it changed."""
        return (await self.execute(self._composed(text, parts), values)).rowcount

    async def copy_rows(
        self, name: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Load rows, read while they are sent, in the order of the columns and their types."""
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        statement = sql.SQL("copy {} ({}) from stdin (format binary)")
        target = table(self.collection, name)
        async with self.cursor() as cursor, cursor.copy(statement.format(target, names)) as copy:
            copy.set_types(list(columns.values()))
            for row in rows:
                # The driver gives what it has gathered whenever that is enough.
                if block := copy.formatter.write_row(row):
                    await copy.write(block)

    async def begin_snapshot(self, settings: Mapping[str, str | int] | None = None) -> None:
        """Begin a transaction on one state of the database that writes nothing."""
        begin = sql.SQL("begin isolation level repeatable read read only")
        local = [
            sql.SQL("set local {} = {}").format(
                sql.Identifier(*name.split(".")), sql.Literal(value)
            )
            for name, value in (settings or {}).items()
        ]
        await self.execute(sql.SQL("; ").join([begin, *local]), prepare=False)

    async def lift_timeouts(self) -> None:
        """Let the rest of this transaction take as long as the corpus is large."""
        await self.set_locally(statement_timeout="0", lock_timeout="0")

    async def take_lock(self, name: str, seed: int) -> None:
        """Wait for an advisory lock, which is held until the transaction ends."""
        await self.execute("select pg_advisory_xact_lock(hashtextextended(%s, %s))", (name, seed))

    async def try_lock(self, name: str, seed: int) -> bool:
        """As `take_lock`, unless somebody else has it; tell whether it is held."""
        statement = "select pg_try_advisory_xact_lock(hashtextextended(%s, %s))"
        return bool((await self.fetch(statement, (name, seed)))[0][0])

    async def set_locally(self, **settings: str) -> None:
        """Change settings of the server until the transaction ends."""
        await self.execute(
            "select set_config(name, value, true)"
            " from unnest(%s::text[], %s::text[]) as wanted (name, value)",
            (list(settings), list(settings.values())),
        )

    def _composed(self, text: Query, parts: Mapping[str, sql.Composable]) -> Any:
        if not isinstance(text, str):
            return text
        return compose(self.collection, text, **parts) if parts else _named(self.collection, text)


async def configure(connection: Connection, config: DatabaseConfig) -> None:
    """Make pgvector's type and operators known to a new connection, and limit its statements."""
    await connection.set_autocommit(True)
    await connection.execute(_SET_UP, {"ms": round(config.statement_timeout_s * 1000)})
    rows = await connection.fetch(_FIND_TYPE)
    if not rows:
        raise psycopg.ProgrammingError("type halfvec not found: the extension vector is missing")
    register_halfvec_info(connection, TypeInfo("halfvec", *rows[0]))
    # A search reads two hundred small values of JSON: Python's own decoder takes 2 ms for them.
    set_json_loads(from_json, connection)


def _connection_class(server: Server, of: str) -> type[Connection]:
    class Own(Connection):
        collection = of

        @classmethod
        async def connect(cls, conninfo: str = "", **options: Any) -> Self:
            """Connect; an embedded server that does not run any more is started first."""
            try:
                return await super().connect(conninfo, **options)
            except psycopg.OperationalError:
                if server.embedded_folder is None:
                    raise
                conninfo = await server.conninfo_async(ask=True)
                return await super().connect(conninfo, **options)

    return Own


def may_be_lost(connection: Connection) -> bool:
    """Look at the socket, in 20 us, for what a server says that ends a connection."""
    if connection.closed:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


class _Pool(AsyncConnectionPool[Connection]):
    """A pool that lets its event loop end without being closed first.

    The library's workers swallow a cancellation that meets them while they connect, and then
    `asyncio.run` waits for them for ever.
    """

    @classmethod
    async def worker(cls, q: Any) -> None:
        await super().worker(cast(Any, _EndingQueue(q)))

    async def renew(self, lost: Connection) -> None:
        """Replace the connections of the same age as one that was lost, unless that was done.

        A server ends all of its connections, though not at once.
        """
        if lost._created_at > self._drained_at:
            await self.drain()


class _EndingQueue:
    """Gives no more work to a task that was cancelled."""

    def __init__(self, queue: "asyncio.Queue[Any]") -> None:
        self._queue = queue

    async def get(self) -> Any:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return await self._queue.get()


def _close_idle(loop: asyncio.AbstractEventLoop, pool: _Pool) -> None:
    """Close the pool of a loop that does not run now, unless its tasks were cancelled already."""
    if loop.is_running() or loop.is_closed() or not asyncio.all_tasks(loop):
        return

    def closed() -> None:
        loop.run_until_complete(pool.close(_CLOSE_TIMEOUT_S))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        closed()
    else:  # two loops cannot run in one thread
        with ThreadPoolExecutor(1) as thread:
            thread.submit(closed).result()


def _close_before(loop: asyncio.AbstractEventLoop, pool: _Pool) -> None:
    """Have the pool closed when its loop is.

    LlamaIndex closes loops of its own with tasks pending in them, which Python complains of once
    they are collected; connections stay open until then. A loop tells nobody that it ends.
    """
    pools: list[_Pool] | None = vars(loop).get(_POOLS)
    if pools is not None:  # a long-lived loop may see thousands, one after the other
        pools[:] = [*(each for each in pools if not each.closed), pool]
        return
    kept = vars(loop)[_POOLS] = [pool]
    close = loop.close

    def close_all() -> None:
        try:
            for each in kept:
                _close_idle(loop, each)
        finally:
            close()

    vars(loop)["close"] = close_all


class Database:
    """Pooled connections to one Postgres, safe to use from several event loops and threads.

    It opens itself on first use. `close` ends every pool and lets the embedded server stop when no
    other process uses it; a closed database may be opened again, unless it was retired. A
    collection name or DSN that is not usable is refused when it is made.
    """

    def __init__(self, config: DatabaseConfig) -> None:
        check_collection_name(config.collection)
        self.config = config
        self._server = Server(config)
        self._connection_class = _connection_class(self._server, config.collection)
        self._mutex = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, _Pool] = {}
        self._is_retired = False

    @property
    def description(self) -> str:
        """For example `embedded PostgreSQL 18.4`; without the version before the first use."""
        return self._server.description

    async def open(self) -> None:
        """Start or reach the server and check that it can hold a corpus; repeating it is free."""
        if self._is_retired:
            raise InputError("WebRAG was closed: use its parts while it is open.")
        if not self._server.is_open:
            await asyncio.to_thread(self._server.open)

    @asynccontextmanager
    async def connection(self, *, autocommit: bool = False) -> AsyncIterator[Connection]:
        """A connection in a transaction that commits at the end and rolls back on an error.

        With `autocommit` the transaction begins when the caller begins one; a statement before is
        one of its own, which saves it two round trips. Where none is free in time,
        DatabaseUnavailableError.
        """
        await self.open()
        if sys.platform == "win32":
            async with self._single_connection() as connection:
                await connection.set_autocommit(autocommit)
                yield connection
            return
        pool = await self._pool()
        try:
            connection = await pool.getconn()
        except PoolTimeout as error:
            raise await asyncio.to_thread(self._no_connection) from error
        except PoolClosed as error:
            raise DatabaseUnavailableError(_CLOSED) from error
        try:
            await connection.set_autocommit(autocommit)
            async with connection:
                yield connection
        finally:
            # A cancellation that meets the end of a pipeline can leave its mode on, and then every
            # later statement seems to have no rows; the pool replaces what is closed.
            if connection.pgconn.pipeline_status != PipelineStatus.OFF:
                await connection.close()
            # A task can be cancelled once more while it gives the connection back, as steps of a
            # workflow are; the pool would count it as lent for ever.
            await asyncio.shield(pool.putconn(connection))

    @asynccontextmanager
    async def holder(self) -> AsyncIterator[Connection]:
        """A connection that only holds a lock: once the block is done, its loss means nothing."""
        is_over = False
        try:
            async with self.connection() as connection:
                yield connection
                is_over = True
        except psycopg.Error as error:
            if _is_cancelled():
                raise asyncio.CancelledError from error
            failure = storage_error(error, self._server.embedded_folder)
            if not is_over:
                raise failure from error
            logger.info("The connection that held a lock was lost: %s", failure)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A connection whose statements all see one state of the corpus, and cannot write."""
        async with self.connection(autocommit=True) as connection:
            await connection.begin_snapshot()
            yield connection

    async def run(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        snapshot: bool = False,
        autocommit: bool = False,
    ) -> T:
        """Do `work` in one transaction, and give its result; StorageError when it is refused.

        After a lost connection the server is started again if need be, and `work` is called a
        second time: it must do the same when repeated. All its statements see one state of the
        corpus, and cannot write, in a `snapshot`. With `autocommit` it begins the transaction
        itself, if it needs one.
        """
        for last_attempt in (False, True):
            opened = self.snapshot() if snapshot else self.connection(autocommit=autocommit)
            connection: Connection | None = None
            try:
                async with opened as connection:
                    return await work(connection)
            except psycopg.Error as error:
                if _is_cancelled():
                    raise asyncio.CancelledError from error
                if last_attempt or not is_lost(error, connection):
                    raise storage_error(error, self._server.embedded_folder) from error
                logger.info("The database connection was lost; trying once more.")
                if connection is not None and sys.platform != "win32":
                    await (await self._pool()).renew(connection)
        raise AssertionError

    async def fetch(self, text: str, values: Values = ()) -> Rows:
        """Run one statement, with tables in braces, as a transaction, and give its rows."""
        return await self.run(lambda connection: connection.fetch(text, values), autocommit=True)

    async def fetch_as(self, kind: type[T], text: str, values: Values = ()) -> list[T]:
        """As `fetch`, with rows as objects whose fields are the columns."""
        return await self.run(
            lambda connection: connection.fetch_as(kind, text, values), autocommit=True
        )

    def make_pool(
        self,
        configure: Callable[[Connection], Awaitable[None]],
        *,
        max_size: int,
        check: Callable[[Connection], Awaitable[None]] = AsyncConnectionPool.check_connection,
    ) -> _Pool:
        """A pool of its own, for a library that wants one; who opens it closes it.

        Each new connection is given to `configure`, and each that is lent to `check`, which raises
        the driver's error for a lost one.
        """
        return _Pool(
            self._server.conninfo_async,
            connection_class=self._connection_class,
            kwargs=self._server.connect_kwargs,
            # With one or more, the first use of a pool opens two.
            min_size=0,
            max_size=max_size,
            timeout=self.config.acquire_timeout_s,
            configure=configure,
            check=check,
            open=False,
        )

    async def close(self) -> None:
        """Close all pools, each in the loop it belongs to, and give the embedded server up."""
        with self._mutex:
            pools, self._by_loop = self._by_loop, {}
        here = asyncio.get_running_loop()
        for loop, pool in pools.items():
            if loop is here:
                await pool.close(_CLOSE_TIMEOUT_S)
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(pool.close(_CLOSE_TIMEOUT_S), loop)
                await asyncio.wrap_future(closing)
            else:
                await asyncio.to_thread(_close_idle, loop, pool)
        await asyncio.to_thread(self._server.release)

    async def retire(self) -> None:
        """Close for good: what still holds this database is told so instead of opening it again."""
        self._is_retired = True
        await self.close()

    async def _pool(self) -> _Pool:
        """The open pool of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._mutex:
            for closed in [known for known in self._by_loop if known.is_closed()]:
                del self._by_loop[closed]  # its workers ended with the loop
            pool = self._by_loop.get(loop)
            if pool is None:
                pool = self._by_loop[loop] = self._make_pool()
                _close_before(loop, pool)
        await pool.open()
        return pool

    def _make_pool(self) -> _Pool:
        async def check(connection: Connection) -> None:
            if not may_be_lost(connection):
                return
            try:
                await AsyncConnectionPool.check_connection(connection)
            except psycopg.Error:
                # Tried one by one, with the pool's growing pauses between, ten dead connections
                # outlast the acquire timeout.
                await pool.renew(connection)
                raise

        prepare = partial(configure, config=self.config)
        pool = self.make_pool(prepare, max_size=self.config.pool_max_size, check=check)
        return pool

    @asynccontextmanager
    async def _single_connection(self) -> AsyncIterator[Connection]:
        """Windows: psycopg wants the selector event loop, and its pools are not used there."""
        conninfo = await self._server.conninfo_async()
        try:
            connection = await self._connection_class.connect(
                conninfo, **self._server.connect_kwargs
            )
        except psycopg.InterfaceError as error:
            raise DatabaseUnavailableError(
                "This event loop cannot serve the PostgreSQL driver on Windows.",
                hint="Run with asyncio.WindowsSelectorEventLoopPolicy.",
            ) from error
        except psycopg.OperationalError as error:
            raise unreachable_error(conninfo, error) from error
        async with connection:
            await configure(connection, self.config)
            yield connection

    def _no_connection(self) -> StorageError:
        """Explain why a pool had no connection to give: a dead server speaks for itself."""
        try:
            self._server.conninfo(check=True)
        except StorageError as error:
            return error
        return DatabaseUnavailableError(
            f"All {self.config.pool_max_size} database connections were in use for"
            f" {self.config.acquire_timeout_s:g} seconds.",
            hint="Run fewer requests at once, or allow more connections.",
        )


def _is_cancelled() -> bool:
    """Tell a cancellation in the middle of a command, which the driver's error then hides."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
