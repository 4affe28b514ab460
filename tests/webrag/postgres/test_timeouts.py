import time
from typing import Any

import pytest

from webrag.concurrency import run_blocking
from webrag.errors import StorageError, WebRAGError


def assert_clear(error: WebRAGError, *words: str) -> None:
    said = f"{error} {error.hint}"
    assert all(word in said for word in words), said
    assert "\n" not in said
    assert error.hint


async def test_statement_that_takes_too_long_is_ended(server: Any) -> None:
    database = server.database(statement_timeout_s=0.1)
    began = time.monotonic()

    with pytest.raises(StorageError) as raised:
        await database.run(lambda each: each.execute("select pg_sleep(30)"))
    await database.close()

    assert time.monotonic() - began < 10
    assert_clear(raised.value, "took too long", "database_statement_timeout")


async def test_lock_that_others_keep_is_not_waited_for_without_end(server: Any) -> None:
    database = server.database(statement_timeout_s=0.4)
    async with server.database().connection() as other:
        await other.execute("select pg_advisory_xact_lock(7)")

        with pytest.raises(StorageError) as raised:
            await database.run(lambda each: each.execute("select pg_advisory_xact_lock(7)"))
    await database.close()

    assert_clear(raised.value, "kept the database from this", "try again")


async def test_limits_hold_for_synchronous_callers(server: Any) -> None:
    database = server.database(statement_timeout_s=0.1)

    with pytest.raises(StorageError, match="took too long"):
        run_blocking(database.run(lambda each: each.execute("select pg_sleep(30)")))
    await database.close()


async def test_limit_of_the_server_wins(server: Any) -> None:
    server.execute(f"alter database {server.name} set statement_timeout = '7s'")
    database = server.database()

    async with database.connection() as connection:
        cursor = await connection.execute("show statement_timeout")
        shown = await cursor.fetchone()
    await database.close()

    assert shown == ("7s",)


async def test_long_work_is_exempt_for_its_transaction_only(server: Any) -> None:
    database = server.database(statement_timeout_s=0.1)

    async with database.connection() as connection:
        await connection.lift_timeouts()
        await connection.execute("select pg_sleep(0.2)")
    with pytest.raises(StorageError, match="took too long"):
        await database.run(lambda each: each.execute("select pg_sleep(30)"))
    await database.close()
