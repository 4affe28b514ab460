import asyncio
import os
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psycopg
import pytest
from pgvector import HalfVector
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from webrag.errors import ConfigurationError, DatabaseUnavailableError
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Connection, Database, configure
from webrag.postgres.embedded.server import EmbeddedPostgres


@pytest.fixture
async def own_database(tmp_path: Path) -> AsyncIterator[Database]:
    """A database on a server that no other test uses."""
    opened = Database(DatabaseConfig(data_dir=tmp_path))
    yield opened
    await opened.close()


@pytest.fixture
async def external(postgres_dir: Path) -> AsyncIterator[Callable[..., Awaitable[Database]]]:
    """Makes databases of a new, empty Postgres database that is reached by its DSN."""
    server = EmbeddedPostgres(postgres_dir)
    server.ensure()
    name = f"external_{uuid.uuid4().hex[:12]}"
    made: list[Database] = []

    async def make(*statements: str, user: str = "postgres", encoding: str = "UTF8") -> Database:
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute(
                f"create database {name} encoding '{encoding}' locale 'C' template template0"
            )
        with psycopg.connect(server.conninfo, dbname=name, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
        url = make_conninfo(server.conninfo, dbname=name, user=user)
        made.append(Database(DatabaseConfig(url=url, data_dir=postgres_dir)))
        return made[-1]

    yield make
    for database in made:
        await database.close()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute(f"drop database if exists {name}")
    server.release()


async def _one(connection: AsyncConnection[TupleRow], statement: str) -> object:
    row = await (await connection.execute(statement)).fetchone()
    assert row is not None
    return row[0]


async def _read_one(connection: AsyncConnection[TupleRow]) -> object:
    return await _one(connection, "select 1")


async def test_description_names_kind_and_version(database: Database) -> None:
    await database.open()

    assert database.description == "embedded PostgreSQL 18.4"


async def test_removed_data_folder_is_made_again(own_database: Database) -> None:
    assert await own_database.run(_read_one) == 1
    pid_file = own_database.config.data_dir / "postgres/cluster/postmaster.pid"
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
    subprocess.run(["rm", "-rf", own_database.config.data_dir / "postgres"], check=True)

    async with own_database.connection() as connection:
        assert await _one(connection, "select '[1]'::halfvec(1)") == HalfVector([1])


async def test_concurrent_first_uses_open_one_server(own_database: Database) -> None:
    assert await asyncio.gather(*(own_database.run(_read_one) for _ in range(5))) == [1] * 5


async def test_close_lets_the_server_stop(own_database: Database) -> None:
    await own_database.open()
    pid_file = own_database.config.data_dir / "postgres/cluster/postmaster.pid"

    await own_database.close()

    async with asyncio.timeout(20):
        while pid_file.exists():
            await asyncio.sleep(0.02)


async def test_external_server_gets_the_extension(
    external: Callable[..., Awaitable[Database]],
) -> None:
    database = await external()

    async with database.connection() as connection:
        assert await _one(connection, "select '[1]'::halfvec(1)") == HalfVector([1])
    assert database.description == "external PostgreSQL 18.4"


async def test_extension_in_a_schema_of_its_own_is_found(
    external: Callable[..., Awaitable[Database]],
) -> None:
    database = await external("create schema other", "create extension vector schema other")

    async with database.connection() as connection:
        assert await _one(connection, "select '[1]'::halfvec(1) <=> '[1]'") == 0


async def test_too_old_pgvector_is_refused(external: Callable[..., Awaitable[Database]]) -> None:
    database = await external(
        "create extension vector",
        "update pg_extension set extversion = '0.7.4' where extname = 'vector'",
    )

    with pytest.raises(ConfigurationError, match=r"pgvector 0.7.4.*needs 0.8") as caught:
        await database.open()
    assert "ALTER EXTENSION vector UPDATE" in str(caught.value.hint)


async def test_missing_right_to_create_the_extension_is_explained(
    external: Callable[..., Awaitable[Database]],
) -> None:
    role = f"guest_{uuid.uuid4().hex[:12]}"
    database = await external(f"create role {role} login", user=role)

    with pytest.raises(ConfigurationError, match="may not create it") as caught:
        await database.open()
    assert "CREATE EXTENSION vector" in str(caught.value.hint)


async def test_database_of_another_encoding_is_refused(
    external: Callable[..., Awaitable[Database]],
) -> None:
    database = await external(encoding="SQL_ASCII")

    with pytest.raises(ConfigurationError, match="encoded as SQL_ASCII"):
        await database.open()


async def test_unreachable_server_is_named_without_the_password(tmp_path: Path) -> None:
    url = "postgresql://me:s3cret@127.0.0.1:1/corpus"
    database = Database(DatabaseConfig(url=url, data_dir=tmp_path))

    with pytest.raises(DatabaseUnavailableError, match=r"127\.0\.0\.1 cannot be reached") as caught:
        await database.open()
    assert "s3cret" not in f"{caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("me:s3cret@host/corpus", id="no-scheme"),
        pytest.param("postgresql://me:s3c@s3cret@host/corpus", id="at-sign"),
        pytest.param("postgresql://me:s3c/s3cret@host/corpus", id="slash"),
        pytest.param("postgresql://me:s3cret@host:port/corpus", id="port"),
    ],
)
def test_unreadable_dsn_is_refused_without_the_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read") as caught:
        Database(DatabaseConfig(url=url, data_dir=tmp_path))
    assert "s3c" not in f"{caught.value!r} {caught.value.hint} {caught.value.__cause__!r}"


async def test_connection_without_the_extension_is_refused_by_the_drivers_error(
    external: Callable[..., Awaitable[Database]],
) -> None:
    config = (await external()).config

    async with await Connection.connect(config.url or "") as connection:
        with pytest.raises(psycopg.ProgrammingError, match="halfvec not found"):
            await configure(connection, config)
