"""Connections: pooled per loop, consistent, back after a lost server, clear when they fail."""

import asyncio
import gc
import os
import signal
import uuid
import weakref
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pgvector import HalfVector
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from webrag.concurrency import run_blocking
from webrag.errors import DatabaseUnavailableError, StorageError
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database


@pytest.fixture
async def own_database(tmp_path: Path) -> AsyncIterator[Database]:
    """A database on a server that no other test uses."""
    opened = Database(DatabaseConfig(data_dir=tmp_path))
    yield opened
    await opened.close()


async def _one(connection: AsyncConnection[TupleRow], statement: str) -> object:
    row = await (await connection.execute(statement)).fetchone()
    assert row is not None
    return row[0]


async def _read_one(connection: AsyncConnection[TupleRow]) -> object:
    return await _one(connection, "select 1")


async def test_connection_knows_half_vectors(database: Database) -> None:
    async with database.connection() as connection:
        vector = await _one(connection, "select '[1,2]'::halfvec(2)")

    assert vector == HalfVector([1, 2])


async def test_connection_commits_at_the_end(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute(f"create schema {database.config.collection}")

    async with database.connection() as connection:
        await connection.execute(f"drop schema {database.config.collection}")


async def test_connection_rolls_back_on_an_error(database: Database) -> None:
    async def fail() -> None:
        async with database.connection() as connection:
            await connection.execute(f"create schema {database.config.collection}")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()

    async with database.connection() as connection:
        await connection.execute(f"create schema {database.config.collection}")
        await connection.rollback()


async def test_snapshot_does_not_see_what_others_commit_meanwhile(database: Database) -> None:
    schema = database.config.collection
    async with database.connection() as connection:
        await connection.execute(f"create schema {schema}")
        await connection.execute(f"create table {schema}.t as select 1 as n")

    async with database.snapshot() as reader:
        before = await _one(reader, f"select count(*) from {schema}.t")
        async with database.connection() as writer:
            await writer.execute(f"insert into {schema}.t values (2)")
        after = await _one(reader, f"select count(*) from {schema}.t")

    async with database.connection() as connection:
        await connection.execute(f"drop schema {schema} cascade")
    assert (before, after) == (1, 1)


async def test_snapshot_cannot_write(database: Database) -> None:
    async def write(connection: AsyncConnection[TupleRow]) -> None:
        await connection.execute(f"create schema {database.config.collection}")

    with pytest.raises(StorageError, match="read-only transaction"):
        await database.run(write, snapshot=True)


async def test_connection_after_a_snapshot_can_write(postgres_dir: Path) -> None:
    database = Database(DatabaseConfig(data_dir=postgres_dir, pool_max_size=1))
    async with database.snapshot() as connection:
        assert await _one(connection, "show transaction_read_only") == "on"

    async with database.connection() as connection:
        assert await _one(connection, "show transaction_read_only") == "off"
        assert await _one(connection, "show transaction_isolation") == "read committed"
    await database.close()


async def test_statements_stand_alone_where_the_caller_begins_transactions(
    database: Database,
) -> None:
    async def work(connection: AsyncConnection[TupleRow]) -> list[TransactionStatus]:
        await connection.execute("select 1")
        alone = connection.info.transaction_status
        await connection.execute("begin")
        return [alone, connection.info.transaction_status]

    seen = await database.run(work, autocommit=True)

    assert seen == [TransactionStatus.IDLE, TransactionStatus.INTRANS]


async def test_transaction_the_caller_began_is_committed(database: Database) -> None:
    name = f"begun_{uuid.uuid4().hex[:12]}"

    async def work(connection: AsyncConnection[TupleRow]) -> None:
        await connection.execute("begin")
        await connection.execute(f"create table {name} ()")

    await database.run(work, autocommit=True)

    async with database.connection() as connection:
        await connection.execute(f"drop table {name}")


async def test_work_is_in_a_transaction_again_after_work_that_was_not(
    postgres_dir: Path,
) -> None:
    database = Database(DatabaseConfig(data_dir=postgres_dir, pool_max_size=1))

    async def work(connection: AsyncConnection[TupleRow]) -> TransactionStatus:
        await connection.execute("select 1")
        return connection.info.transaction_status

    try:
        await database.run(work, autocommit=True)
        assert await database.run(work) == TransactionStatus.INTRANS
    finally:
        await database.close()


async def test_pooled_connection_that_the_server_ended_is_not_given_out(
    postgres_dir: Path, database: Database
) -> None:
    pooled = Database(DatabaseConfig(data_dir=postgres_dir, pool_max_size=1))
    try:
        async with pooled.connection() as connection:
            ended = connection.info.backend_pid
        async with database.connection() as connection:
            await connection.execute("select pg_terminate_backend(%s, 5000)", (ended,))

        async with pooled.connection() as connection:
            assert await _one(connection, "select 1") == 1
    finally:
        await pooled.close()


async def test_run_repeats_work_whose_backend_was_terminated(database: Database) -> None:
    attempts: list[int] = []

    async def work(connection: AsyncConnection[TupleRow]) -> object:
        attempts.append(connection.info.backend_pid)
        if len(attempts) == 1:
            await connection.execute("select pg_terminate_backend(pg_backend_pid())")
        return await _one(connection, "select 'done'")

    assert await database.run(work) == "done"
    assert len(set(attempts)) == 2


async def test_run_gives_up_after_the_second_loss(database: Database) -> None:
    async def work(connection: AsyncConnection[TupleRow]) -> None:
        await connection.execute("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(StorageError, match="terminating connection"):
        await database.run(work)


async def test_run_does_not_repeat_refused_work(database: Database) -> None:
    attempts: list[int] = []

    async def work(connection: AsyncConnection[TupleRow]) -> None:
        attempts.append(1)
        await connection.execute("select * from no_such_table")

    with pytest.raises(StorageError, match="no_such_table"):
        await database.run(work)
    assert attempts == [1]


async def _held_together(database: Database, count: int) -> set[int]:
    """Processes of the server behind so many connections at once."""
    everyone = asyncio.Barrier(count)

    async def hold(connection: AsyncConnection[TupleRow]) -> int:
        await everyone.wait()
        return connection.info.backend_pid

    return set(await asyncio.gather(*(database.run(hold) for _ in range(count))))


async def test_lost_work_is_repeated_on_no_connection_of_the_time_before(
    database: Database,
) -> None:
    before = await _held_together(database, 4)
    used: list[int] = []

    async def work(connection: AsyncConnection[TupleRow]) -> None:
        used.append(connection.info.backend_pid)
        if len(used) == 1:
            await connection.execute("select pg_terminate_backend(pg_backend_pid())")

    await database.run(work)

    assert len(before) == 4
    assert (used[0] in before, used[1] in before) == (True, False)


async def test_lost_work_of_synchronous_callers_is_repeated_on_a_new_connection(
    database: Database,
) -> None:
    before = run_blocking(_held_together(database, 4))
    used: list[int] = []

    async def work(connection: AsyncConnection[TupleRow]) -> None:
        used.append(connection.info.backend_pid)
        if len(used) == 1:
            await connection.execute("select pg_terminate_backend(pg_backend_pid())")

    run_blocking(database.run(work))

    assert (used[0] in before, used[1] in before) == (True, False)


async def test_killed_server_with_a_full_pool_is_back_at_the_next_operation(
    own_database: Database,
) -> None:
    assert len(await _held_together(own_database, 10)) == 10
    pid_file = own_database.config.data_dir / "postgres/cluster/postmaster.pid"
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)

    assert await asyncio.gather(*(own_database.run(_read_one) for _ in range(10))) == [1] * 10


async def test_exhausted_pool_says_so(postgres_dir: Path) -> None:
    config = DatabaseConfig(data_dir=postgres_dir, pool_max_size=1, acquire_timeout_s=1)
    database = Database(config)

    async with database.connection():
        with pytest.raises(DatabaseUnavailableError, match=r"All 1 .* in use for 1 seconds"):
            async with database.connection():
                pass
    await database.close()


async def test_cancelled_query_gives_its_connection_back(postgres_dir: Path) -> None:
    database = Database(DatabaseConfig(data_dir=postgres_dir, pool_max_size=1))
    await database.open()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await database.run(lambda connection: connection.execute("select pg_sleep(30)"))

    assert await database.run(_read_one) == 1
    await database.close()


async def test_connection_left_in_pipeline_mode_is_not_used_again(postgres_dir: Path) -> None:
    database = Database(DatabaseConfig(data_dir=postgres_dir, pool_max_size=1))

    pipelines = AsyncExitStack()

    async def cancelled_while_leaving(connection: AsyncConnection[TupleRow]) -> None:
        await pipelines.enter_async_context(connection.pipeline())
        await connection.execute("select 1")
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await database.run(cancelled_while_leaving)

    assert await database.run(lambda each: each.fetch("select 1")) == [(1,)]
    await database.close()


async def test_task_cancelled_while_it_gives_its_connection_back_gives_it_back(
    postgres_dir: Path,
) -> None:
    database = Database(DatabaseConfig(data_dir=postgres_dir, pool_max_size=1, acquire_timeout_s=5))
    done = asyncio.Event()
    task = asyncio.create_task(database.run(lambda _: done.wait()))
    await database.open()
    await asyncio.sleep(0.3)
    pool = await database._pool()

    async with pool._lock:
        done.set()
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.sleep(0)

    assert await database.run(_read_one) == 1
    await database.close()


async def test_cancelled_start_leaves_a_database_that_works(own_database: Database) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await own_database.open()

    assert await own_database.run(_read_one) == 1


async def test_each_event_loop_gets_its_own_pool(database: Database) -> None:
    here = await database.run(_read_one)

    elsewhere = await asyncio.to_thread(asyncio.run, database.run(_read_one))
    again = await asyncio.to_thread(asyncio.run, database.run(_read_one))

    assert (here, elsewhere, again) == (1, 1, 1)


async def test_loop_that_is_closed_leaves_no_task_of_its_pool(database: Database) -> None:
    loop = asyncio.new_event_loop()

    await asyncio.to_thread(loop.run_until_complete, database.run(_read_one))
    left = len(asyncio.all_tasks(loop))
    loop.close()

    assert left > 0
    assert not asyncio.all_tasks(loop)


async def test_loop_is_told_once_of_all_its_pools_and_keeps_no_closed_one(
    postgres_dir: Path,
) -> None:
    loop = asyncio.new_event_loop()
    seen = []

    async def use() -> None:
        for _ in range(3):
            opened = Database(DatabaseConfig(data_dir=postgres_dir))
            await opened.run(_read_one)
            pool = await opened._pool()
            seen.append((loop.close, weakref.ref(pool)))
            del pool
            await opened.close()

    await asyncio.to_thread(loop.run_until_complete, use())
    gc.collect()

    assert len({close for close, _ in seen}) == 1
    assert [pool() is None for _, pool in seen] == [True, True, False]
    loop.close()


async def test_closing_ends_the_pools_of_loops_that_rest(own_database: Database) -> None:
    loop = asyncio.new_event_loop()
    await asyncio.to_thread(loop.run_until_complete, own_database.run(_read_one))

    await own_database.close()

    assert not asyncio.all_tasks(loop)
    loop.close()


async def test_closed_database_opens_again(database: Database) -> None:
    await database.open()
    await database.close()

    assert await database.run(_read_one) == 1


async def test_sync_callers_get_the_same_service(database: Database) -> None:
    attempts: list[int] = []

    async def work(connection: AsyncConnection[TupleRow]) -> object:
        attempts.append(1)
        if len(attempts) == 1:
            await connection.execute("select pg_terminate_backend(pg_backend_pid())")
        return await (await connection.execute("select '[1]'::halfvec(1)")).fetchone()

    result = run_blocking(database.run(work, snapshot=True))

    assert result == (HalfVector([1]),)
    assert len(attempts) == 2
