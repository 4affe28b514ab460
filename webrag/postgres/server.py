"""Finds the corpus's Postgres, starts it if it is the embedded one, and checks what it can hold."""

import asyncio
import importlib.util
import threading
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from webrag.errors import ConfigurationError, DatabaseUnavailableError
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.errors import checked_dsn, unreachable_error

if TYPE_CHECKING:
    from pathlib import Path

    from webrag.postgres.embedded.server import EmbeddedPostgres

_OLDEST_POSTGRES = 15

_OLDEST_PGVECTOR = (0, 8)

# Any constant will do; concurrent `create extension if not exists` collide without a lock.
_EXTENSION_LOCK = 0x77656272

_QUERY_EXTENSION = """
select (select extversion from pg_extension where extname = 'vector'),
       (select default_version from pg_available_extensions where name = 'vector')
"""


def prepare_server(connection: psycopg.Connection[TupleRow]) -> str:
    """Check the server, create the extension `vector` where it is missing, and give its version."""
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
    _require_pgvector(connection)
    connection.commit()
    return version.split()[0]


def _require_pgvector(connection: psycopg.Connection[TupleRow]) -> None:
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


class Server:
    """One Postgres, embedded or of somebody else; safe to use from several threads."""

    def __init__(self, config: DatabaseConfig) -> None:
        self._data_dir = config.data_dir
        self._external = None if config.url is None else checked_dsn(config.url)
        self._embedded: EmbeddedPostgres | None = None
        self._version: str | None = None
        self._mutex = threading.RLock()

    @property
    def description(self) -> str:
        """For example `embedded PostgreSQL 18.4`; without the version before the first use."""
        kind = "external" if self._external is not None else "embedded"
        return f"{kind} PostgreSQL {self._version}" if self._version else f"{kind} PostgreSQL"

    @property
    def is_open(self) -> bool:
        """Whether it has been checked, and not given up since."""
        return self._version is not None

    @property
    def embedded_folder(self) -> "Path | None":
        """Data folder of the embedded server; None for another one."""
        return self._data_dir if self._external is None else None

    @property
    def connect_kwargs(self) -> dict[str, Any]:
        """How to connect, apart from where."""
        if self._external is None:
            return {"client_encoding": "utf8", "application_name": "webrag"}
        return {
            "client_encoding": "utf8",
            # Poolers that share a server connection per transaction lose prepared statements.
            "prepare_threshold": None,
        }

    def open(self) -> None:
        """Start or reach the server and check that it can hold a corpus; blocks."""
        with self._mutex:
            if self._version is None:
                self.conninfo(check=True)

    def release(self) -> None:
        """Give an embedded server up; it stops when no other process uses it. Blocks."""
        with self._mutex:
            self._version = None
            if self._embedded is not None:
                self._embedded.release()

    def conninfo(self, *, check: bool = False) -> str:
        """Where to connect, after making sure of the embedded server; blocks.

        Args:
            check: Reach the server and check it again.
        """
        with self._mutex:
            if self._external is not None:
                conninfo, started = self._external, False
            else:
                server = self._embedded_server()
                started = server.ensure()
                conninfo = server.conninfo
            if check or started:
                self._version = self._prepare(conninfo)
            return conninfo

    async def conninfo_async(self) -> str:
        """As `conninfo`, without blocking."""
        if self._external is not None:
            return self._external
        return await asyncio.to_thread(self.conninfo)

    def _prepare(self, conninfo: str) -> str:
        try:
            with psycopg.connect(conninfo, **self.connect_kwargs) as connection:
                return prepare_server(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise unreachable_error(conninfo, error) from error

    def _embedded_server(self) -> "EmbeddedPostgres":
        if self._embedded is None:
            if importlib.util.find_spec("fcntl") is None:
                raise DatabaseUnavailableError(
                    "The embedded PostgreSQL needs file locks that this platform lacks.",
                    hint="Set DATABASE_URL to a PostgreSQL server with pgvector.",
                )
            from webrag.postgres.embedded.server import EmbeddedPostgres

            self._embedded = EmbeddedPostgres(self._data_dir)
        return self._embedded
