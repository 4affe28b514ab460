"""Finds the corpus's Postgres, starts it if it is the embedded one, and checks what it can hold."""

import asyncio
import importlib.util
import threading
from typing import TYPE_CHECKING, Any

import psycopg

from webrag.errors import DatabaseUnavailableError
from webrag.indexing.connection_errors import checked_dsn, unreachable_error
from webrag.indexing.models import DatabaseConfig
from webrag.indexing.server_checks import ServerInfo, prepare_server

if TYPE_CHECKING:
    from pathlib import Path

    from webrag.indexing.embedded_postgres import EmbeddedPostgres

__all__ = ["Server"]


class Server:
    """One Postgres, embedded or of somebody else; safe to use from several threads.

    Args:
        config: Which.

    Raises:
        ConfigurationError: The DSN is not usable.
    """

    def __init__(self, config: DatabaseConfig) -> None:
        self._data_dir = config.data_dir
        self._external = None if config.url is None else checked_dsn(config.url)
        self._embedded: EmbeddedPostgres | None = None
        self._info: ServerInfo | None = None
        self._mutex = threading.RLock()

    @property
    def description(self) -> str:
        """For example `embedded PostgreSQL 18.4`; without the version before the first use."""
        kind = "external" if self._external is not None else "embedded"
        return f"{kind} PostgreSQL {self._info.version}" if self._info else f"{kind} PostgreSQL"

    @property
    def is_open(self) -> bool:
        """Whether it has been checked, and not given up since."""
        return self._info is not None

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
        """Start or reach the server and check that it can hold a corpus; blocks.

        Raises:
            DatabaseUnavailableError: The server cannot be started or reached.
            ConfigurationError: The server is too old or lacks pgvector.
        """
        with self._mutex:
            if self._info is None:
                self.conninfo(check=True)

    def release(self) -> None:
        """Give an embedded server up; it stops when no other process uses it. Blocks."""
        with self._mutex:
            self._info = None
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
                self._info = self._prepare(conninfo)
            return conninfo

    async def conninfo_async(self) -> str:
        """As `conninfo`, without blocking."""
        if self._external is not None:
            return self._external
        return await asyncio.to_thread(self.conninfo)

    def _prepare(self, conninfo: str) -> ServerInfo:
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
            from webrag.indexing.embedded_postgres import EmbeddedPostgres

            self._embedded = EmbeddedPostgres(self._data_dir)
        return self._embedded
