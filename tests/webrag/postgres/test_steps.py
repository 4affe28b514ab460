import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.postgres.steps import (
    Copy,
    Execute,
    Steps,
    begin_snapshot,
    computed,
    run_steps,
    run_steps_sync,
    together,
)

TABLE = sql.SQL("{}").format(sql.Identifier("pg_temp", "numbers"))


def work() -> Steps[Any]:
    yield Execute(sql.SQL("create temp table numbers (n int4, word text) on commit drop"))
    yield Copy(TABLE, {"n": "int4", "word": "text"}, ((n, f"w{n}") for n in range(5)))
    rows = yield Execute(sql.SQL("select sum(n), max(word) from {}").format(TABLE))
    none = yield Execute(sql.SQL("select 1 where false"))
    return rows, none


def several() -> Steps[Any]:
    yield Execute(sql.SQL("create temp table numbers (n int4, word text) on commit drop"))
    return (
        yield from together(
            Execute(sql.SQL("insert into {} values (%s, 'a')").format(TABLE), (7,)),
            Execute(sql.SQL("select n from {}").format(TABLE), binary=True),
            Execute(b"select %(given)s::int + 1", {"given": 1, "unused": 2}),
            Execute(sql.SQL("select 1 where false")),
        )
    )


def failing_together() -> Steps[Any]:
    yield from together(
        Execute(sql.SQL("select 1")),
        Execute(sql.SQL("select 1 / %s"), (0,)),
        Execute(sql.SQL("select 2")),
    )


SEVERAL = [[], [(7,)], [(2,)], []]


def failing() -> Steps[Any]:
    yield Execute(sql.SQL("select 1"))
    yield Execute(sql.SQL("select 1 / %s"), (0,))


EXPECTED = ([(10, "w4")], [])


async def test_steps_run_on_an_asynchronous_connection(database: Database) -> None:
    assert await database.run(lambda connection: run_steps(connection, work())) == EXPECTED


async def test_steps_run_on_a_synchronous_connection(database: Database) -> None:
    assert database.run_sync(lambda connection: run_steps_sync(connection, work())) == EXPECTED


async def test_statements_that_travel_together_each_give_their_rows(database: Database) -> None:
    assert await database.run(lambda connection: run_steps(connection, several())) == SEVERAL
    assert database.run_sync(lambda connection: run_steps_sync(connection, several())) == SEVERAL


async def test_error_of_one_of_several_statements_is_the_callers(database: Database) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        async with database.connection() as connection:
            await run_steps(connection, failing_together())
    with (
        pytest.raises(psycopg.errors.DivisionByZero),
        database.sync_connection() as blocking,
    ):
        run_steps_sync(blocking, failing_together())


def threads() -> Steps[Any]:
    """Where work of the processor is done, and whether the transaction goes on behind it."""
    yield Execute(sql.SQL("create temp table numbers (n int4, word text) on commit drop"))
    thread = yield from computed(threading.current_thread)
    rows = yield Execute(sql.SQL("select count(*) from {}").format(TABLE))
    return thread is threading.current_thread(), rows


async def test_work_of_the_processor_is_done_beside_the_event_loop_within_the_transaction(
    database: Database,
) -> None:
    assert await database.run(lambda each: run_steps(each, threads())) == (False, [(0,)])
    assert database.run_sync(lambda each: run_steps_sync(each, threads())) == (True, [(0,)])


async def test_error_of_a_step_is_the_callers(database: Database) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        async with database.connection() as connection:
            await run_steps(connection, failing())


def test_work_without_steps_needs_no_connection_beyond_a_cursor(
    postgres_dir: Path, database: Database
) -> None:
    def nothing() -> Steps[Any]:
        yield from ()
        return "done"

    assert database.run_sync(lambda connection: run_steps_sync(connection, nothing())) == "done"


def snapshot_with_settings() -> Steps[Any]:
    yield begin_snapshot({"hnsw.ef_search": 77, "work_mem": "9MB"})
    return (
        yield Execute(
            sql.SQL(
                "select current_setting('hnsw.ef_search'), current_setting('work_mem'),"
                " current_setting('transaction_isolation'),"
                " current_setting('transaction_read_only')"
            )
        )
    )


async def test_snapshot_begins_with_its_settings(database: Database) -> None:
    # More often than it takes the driver to prepare a statement.
    for _ in range(8):
        found = await database.run(
            lambda connection: run_steps(connection, snapshot_with_settings()), autocommit=True
        )

    assert found == [("77", "9MB", "repeatable read", "on")]


async def test_settings_of_a_snapshot_end_with_it(postgres_dir: Path) -> None:
    database = Database(DatabaseConfig(data_dir=postgres_dir, pool_max_size=1))

    def after() -> Steps[Any]:
        return (yield Execute(sql.SQL("select current_setting('work_mem')")))

    try:
        database.run_sync(
            lambda connection: run_steps_sync(connection, snapshot_with_settings()),
            autocommit=True,
        )
        assert database.run_sync(lambda each: run_steps_sync(each, after())) != [("9MB",)]
    finally:
        await database.close()
