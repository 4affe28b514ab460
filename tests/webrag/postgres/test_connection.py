from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Connection, Database, Rows
from webrag.retrieval.statements import Statement, fetch_together

TABLE = sql.SQL("{}").format(sql.Identifier("pg_temp", "numbers"))
CREATE = "create temp table numbers (n int4, word text) on commit drop"
DIVIDE = Statement(sql.SQL("select 1 / %s"), (0,))


async def test_rows_that_were_loaded_are_read_back(database: Database) -> None:
    rows = ((n, f"w{n}") for n in range(5))
    async with database.connection() as connection:
        await connection.change("create schema {own}", own=sql.Identifier(connection.collection))
        await connection.change("create table {numbers} (n int4, word text)")
        await connection.copy_rows("numbers", {"n": "int4", "word": "text"}, rows)
        loaded = await connection.fetch("select sum(n), max(word) from {numbers}")
        await connection.rollback()  # no collection is left that nobody takes back

    assert loaded == [(10, "w4")]


async def test_a_statement_without_rows_gives_none(database: Database) -> None:
    async with database.connection() as connection:
        assert await connection.fetch(CREATE) == []
        assert await Statement(sql.SQL("select 1 where false")).fetch(connection) == []


async def test_statements_that_travel_together_each_give_their_rows(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute(CREATE)
        found = await fetch_together(
            connection,
            Statement(sql.SQL("insert into {} values (%s, 'a')").format(TABLE), (7,)),
            Statement(sql.SQL("select n from {}").format(TABLE), binary=True),
            Statement(b"select %(given)s::int + 1", {"given": 1, "unused": 2}),
            Statement(sql.SQL("select 1 where false")),
        )

    assert found == [[], [(7,)], [(2,)], []]


async def test_error_of_one_of_several_statements_is_the_callers(database: Database) -> None:
    one, two = Statement(sql.SQL("select 1")), Statement(sql.SQL("select 2"))
    with pytest.raises(psycopg.errors.DivisionByZero):
        async with database.connection() as connection:
            await fetch_together(connection, one, DIVIDE, two)


async def test_error_of_a_statement_is_the_callers(database: Database) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        async with database.connection() as connection:
            await DIVIDE.fetch(connection)


async def snapshot_with_settings(connection: Connection) -> Rows:
    await connection.begin_snapshot({"hnsw.ef_search": 77, "work_mem": "9MB"})
    return await connection.fetch(
        "select current_setting('hnsw.ef_search'), current_setting('work_mem'),"
        " current_setting('transaction_isolation'), current_setting('transaction_read_only')"
    )


async def test_snapshot_begins_with_its_settings(database: Database) -> None:
    # More often than it takes the driver to prepare a statement.
    for _ in range(8):
        found = await database.run(snapshot_with_settings, autocommit=True)

    assert found == [("77", "9MB", "repeatable read", "on")]


async def test_settings_of_a_snapshot_end_with_it(postgres_dir: Path) -> None:
    database = Database(DatabaseConfig(data_dir=postgres_dir, pool_max_size=1))
    after = Statement(sql.SQL("select current_setting('work_mem')"))

    try:
        await database.run(snapshot_with_settings, autocommit=True)
        assert await database.run(after.fetch) != [("9MB",)]
    finally:
        await database.close()
