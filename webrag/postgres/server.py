"""Finds the corpus's Postgres, starts it if it is the embedded one, and checks what it can hold.

Also says what the driver's failures mean to a user, without passwords.
"""

import asyncio
import errno
import importlib.util
import os
import re
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from webrag.errors import ConfigurationError, DatabaseUnavailableError, StorageError
from webrag.postgres.config import DatabaseConfig

if TYPE_CHECKING:
    from webrag.postgres.embedded.server import EmbeddedPostgres


_OLDEST_POSTGRES = 15
_OLDEST_PGVECTOR = (0, 8)
# Any constant will do; concurrent `create extension if not exists` collide without a lock.
_EXTENSION_LOCK = 0x77656272
_CONNECT_TIMEOUT_S = 10
# libpq repeats these when it cannot use them.
_SHOWN_PARTS = (
    "host", "hostaddr", "port", "dbname", "sslmode", "connect_timeout", "channel_binding",
    "target_session_attrs", "gssencmode", "sslnegotiation", "client_encoding",
)  # fmt: skip
_NO_SPACE = os.strerror(errno.ENOSPC)
# Postgres stops when it cannot add a segment of 16 MB to its log.
_LEAST_FREE_BYTES = 32_000_000
_GONE = (
    psycopg.errors.AdminShutdown,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
)
_LOST = (
    *_GONE,
    # The server has undone the whole transaction: trying again is what it asks for.
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
)
_EXPLAINED: tuple[tuple[type[psycopg.Error], str, str], ...] = (
    (
        psycopg.errors.DiskFull,
        "The disk of the database is full",
        "Free space on it and try again; what was stored before is intact.",
    ),
    (
        psycopg.errors.InsufficientPrivilege,
        "The database user may not do this",
        "Use a user who may write, or have the owner of the collection grant it.",
    ),
    (
        psycopg.errors.ReadOnlySqlTransaction,
        "The database accepts no writes",
        "Set DATABASE_URL to the primary server, or to a user who may write.",
    ),
    (
        psycopg.errors.LockNotAvailable,
        "Another process kept the database from this for too long",
        "Wait until it is done, for example a `webrag reindex`, then try again.",
    ),
    (
        psycopg.errors.QueryCanceled,
        "The database took too long",
        "Try again when it has less to do, or allow more with"
        " load_settings(database_statement_timeout=...).",
    ),
    (
        psycopg.errors.DataException,
        "The database refused a value",
        "Vectors must have the number of dimensions that the collection was made with.",
    ),
)


def is_lost(error: psycopg.Error, connection: psycopg.AsyncConnection[Any] | None) -> bool:
    """Tell that the transaction is gone for a reason that another attempt may not meet."""
    return isinstance(error, _LOST) or (connection is not None and connection.closed)


def storage_error(error: psycopg.Error, embedded: Path | None = None) -> StorageError:
    """The error to raise in place of the driver's; `embedded` is the embedded server's folder."""
    reason = error.diag.message_primary or _first_line(error) or type(error).__name__
    reason = reason.rstrip(".")
    unsaid = error.sqlstate is None and isinstance(
        error, psycopg.OperationalError | psycopg.InterfaceError
    )
    if unsaid or isinstance(error, _GONE):
        if embedded is not None and shutil.disk_usage(embedded).free < _LEAST_FREE_BYTES:
            return _full_disk(f"the embedded PostgreSQL in {embedded}", reason)
        return DatabaseUnavailableError(
            f"The connection to the database was lost: {reason}.",
            hint="Check that the server runs, then try again.",
        )
    if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
        return StorageError(f"The collection is not there: {reason}.", hint="Ingest a page first.")
    for kind, what, hint in _EXPLAINED:
        if isinstance(error, kind):
            return StorageError(f"{what}: {reason}.", hint=hint)
    code = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
    return StorageError(f"The database refused the operation: {reason}{code}.")


def checked_dsn(url: str) -> str:
    """The DSN as a libpq connection string, with a connect timeout; errors repeat nothing of it."""
    unreadable = ConfigurationError(
        "DATABASE_URL cannot be read as a PostgreSQL DSN.",
        hint="It looks like postgresql://user:password@host:5432/database; special characters of"
        " the password are percent-encoded.",
    )
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # The parser's message quotes parts of the DSN, the password among them.
        raise unreadable from None
    # An unescaped password ends up in the other parts, and they are shown in messages.
    shown = [str(given.get(part) or "") for part in _SHOWN_PARTS]
    if any("@" in part for part in shown) or re.search(r"[^\d,]", str(given.get("port") or "")):
        raise unreadable
    given.setdefault("connect_timeout", _CONNECT_TIMEOUT_S)
    given.setdefault("application_name", "webrag")
    return make_conninfo("", **given)


def unreachable_error(conninfo: str, error: psycopg.Error) -> DatabaseUnavailableError:
    """The server did not let us in; says where and why."""
    given = conninfo_to_dict(conninfo)
    reason = _first_line(error).rstrip(".")
    for name in ("password", "sslpassword", "oauth_client_secret"):
        if given.get(name):
            reason = reason.replace(str(given[name]), "***")
    host = given.get("host") or "the default host"
    if _NO_SPACE in str(error):
        return _full_disk(f"PostgreSQL on {host}", reason)
    return DatabaseUnavailableError(
        f"PostgreSQL on {host} cannot be reached: {reason}.",
        hint="Check that the server runs and that DATABASE_URL is right.",
    )


def start_error(folder: Path, log: Path, reason: str) -> DatabaseUnavailableError:
    """The embedded server did not start, for the reason that its log gives."""
    if _NO_SPACE in reason:
        return _full_disk(f"the embedded PostgreSQL in {folder}", reason)
    return DatabaseUnavailableError(
        f"The embedded PostgreSQL in {folder} did not start: {reason}",
        hint=f"The log is {log}. If the data is damaged, move {folder} away;"
        " WebRAG makes a new one and fetches pages again.",
    )


def _full_disk(server: str, reason: str) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"The disk of {server} is full: {reason.rstrip('.')}.",
        hint="Free space on it and try again; what was stored before is intact.",
    )


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [""])[0]


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
            "The server accepts no writes.", hint="Set DATABASE_URL to the primary server."
        ) from error


def _extension_versions(connection: psycopg.Connection[TupleRow]) -> tuple[str | None, str | None]:
    ((installed, available),) = connection.execute(
        "select (select extversion from pg_extension where extname = 'vector'),"
        " (select default_version from pg_available_extensions where name = 'vector')"
    ).fetchall()
    return installed, available


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
        """Tell that it has been checked, and not given up since."""
        return self._version is not None

    @property
    def embedded_folder(self) -> "Path | None":
        """Data folder of the embedded server; None for another one."""
        return self._data_dir if self._external is None else None

    @property
    def connect_kwargs(self) -> dict[str, Any]:
        """Options of a connection, apart from its address."""
        if self._external is None:
            return {"client_encoding": "utf8", "application_name": "webrag"}
        # Poolers that share a server connection per transaction lose prepared statements.
        return {"client_encoding": "utf8", "prepare_threshold": None}

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

    def conninfo(self, *, check: bool = False, ask: bool = True) -> str:
        """Make sure of the embedded server, or with `check` of any, and say where it is; blocks.

        An embedded server that was there before is not asked whether it still is without `ask`.
        """
        with self._mutex:
            if self._external is not None:
                conninfo, started = self._external, False
            else:
                server = self._embedded_server()
                started = server.ensure(ask=ask)
                conninfo = server.conninfo
            if check or started:
                try:
                    with psycopg.connect(conninfo, **self.connect_kwargs) as connection:
                        self._version = prepare_server(connection)
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    raise unreachable_error(conninfo, error) from error
            return conninfo

    async def conninfo_async(self, *, ask: bool = False) -> str:
        """As `conninfo`, without blocking."""
        if self._external is not None:
            return self._external
        return await asyncio.to_thread(self.conninfo, ask=ask)

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
