"""What the driver's failures mean to a user, without passwords; it opens no connections."""

import errno
import os
import re
import shutil
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from webrag.errors import ConfigurationError, DatabaseUnavailableError, StorageError

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
    """Whether the transaction is gone for a reason that another attempt may not meet."""
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
