from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from webrag.indexing.database import Database
from webrag.indexing.steps import Copy, Execute, Steps, run_steps, run_steps_sync

TABLE = sql.SQL("{}").format(sql.Identifier("pg_temp", "numbers"))


def work() -> Steps[Any]:
    yield Execute(sql.SQL("create temp table numbers (n int4, word text) on commit drop"))
    yield Copy(TABLE, {"n": "int4", "word": "text"}, ((n, f"w{n}") for n in range(5)))
    rows = yield Execute(sql.SQL("select sum(n), max(word) from {}").format(TABLE))
    none = yield Execute(sql.SQL("select 1 where false"))
    return rows, none


def failing() -> Steps[Any]:
    yield Execute(sql.SQL("select 1"))
    yield Execute(sql.SQL("select 1 / %s"), (0,))


EXPECTED = ([(10, "w4")], [])


async def test_steps_run_on_an_asynchronous_connection(database: Database) -> None:
    assert await database.run(lambda connection: run_steps(connection, work())) == EXPECTED


async def test_steps_run_on_a_synchronous_connection(database: Database) -> None:
    assert database.run_sync(lambda connection: run_steps_sync(connection, work())) == EXPECTED


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
