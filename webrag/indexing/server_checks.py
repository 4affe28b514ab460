"""Whether a Postgres server can hold a corpus (version, encoding, pgvector); no tables here."""

from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from webrag.errors import ConfigurationError, DatabaseUnavailableError

__all__ = ["ServerInfo", "prepare_server"]

_OLDEST_POSTGRES = 15
_OLDEST_PGVECTOR = (0, 8)
# Any constant will do; concurrent `create extension if not exists` collide without a lock.
_EXTENSION_LOCK = 0x77656272

_QUERY_EXTENSION = """
select (select extversion from pg_extension where extname = 'vector'),
       (select default_version from pg_available_extensions where name = 'vector')
"""


@dataclass(frozen=True)
class ServerInfo:
    """What was found out about the server.

    Attributes:
        version: For example `18.4`.
        pgvector: For example `0.8.5`.
        extension_schema: Schema that holds pgvector's types and operators.
    """

    version: str
    pgvector: str
    extension_schema: str


def prepare_server(connection: psycopg.Connection[TupleRow]) -> ServerInfo:
    """Check the server and create the extension `vector` where it is missing and allowed.

    Raises:
        ConfigurationError: The server is too old, not UTF-8, or lacks pgvector.
        DatabaseUnavailableError: The server cannot be written.
    """
    version = connection.info.parameter_status("server_version") or ""
    if connection.info.server_version < _OLDEST_POSTGRES * 10_000:
        raise ConfigurationError(
            f"The server runs PostgreSQL {version}; WebRAG needs {_OLDEST_POSTGRES} or newer.",
            hint="Set DATABASE_URL to a newer server, or unset it to use the embedded one.",
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"The database is encoded as {encoding}; WebRAG needs UTF8.",
            hint="Create one with `CREATE DATABASE webrag ENCODING 'UTF8' TEMPLATE template0`.",
        )
    pgvector = _require_pgvector(connection)
    row = connection.execute(
        "select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace"
        " where e.extname = 'vector'"
    ).fetchone()
    assert row is not None
    connection.commit()
    return ServerInfo(version.split()[0], pgvector, row[0])


def _require_pgvector(connection: psycopg.Connection[TupleRow]) -> str:
    installed, available = _extension_versions(connection)
    if installed is None and available is None:
        raise ConfigurationError(
            "The server has no pgvector.",
            hint="An administrator must install the package pgvector 0.8 or newer on it.",
        )
    if installed is None:
        _create_extension(connection)
        installed, available = _extension_versions(connection)
    if installed is None or _numbers(installed) < _OLDEST_PGVECTOR:
        updatable = available is not None and _numbers(available) >= _OLDEST_PGVECTOR
        raise ConfigurationError(
            f"The database has pgvector {installed}; WebRAG needs 0.8 or newer.",
            hint="An administrator must run `ALTER EXTENSION vector UPDATE` in this database."
            if updatable
            else "An administrator must install the package pgvector 0.8 or newer.",
        )
    return installed


def _create_extension(connection: psycopg.Connection[TupleRow]) -> None:
    try:
        connection.execute("select pg_advisory_xact_lock(%s)", (_EXTENSION_LOCK,))
        connection.execute(sql.SQL("create extension if not exists vector"))
        connection.commit()
    except psycopg.errors.InsufficientPrivilege as error:
        connection.rollback()
        raise ConfigurationError(
            "The database lacks the extension vector, and this user may not create it.",
            hint="An administrator must run `CREATE EXTENSION vector` in this database.",
        ) from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        connection.rollback()
        raise DatabaseUnavailableError(
            "The server accepts no writes.",
            hint="Set DATABASE_URL to the primary server.",
        ) from error


def _extension_versions(
    connection: psycopg.Connection[TupleRow],
) -> tuple[str | None, str | None]:
    row = connection.execute(_QUERY_EXTENSION).fetchone()
    assert row is not None
    return row[0], row[1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
