"""A connection that tells a test of each statement that was run on it."""

from collections.abc import Awaitable, Callable
from typing import Any

from psycopg import AsyncCursor

from webrag.postgres.database import Connection


class Watched:
    """Passes everything on to a connection.

    Args:
        connection: Does the work.
        after: Called after each statement, before its rows are read.
    """

    def __init__(
        self, connection: Connection, after: Callable[[AsyncCursor[Any]], Awaitable[None]]
    ) -> None:
        self._connection = connection
        self._after = after

    async def execute(self, *args: Any, **options: Any) -> AsyncCursor[Any]:
        cursor = await self._connection.execute(*args, **options)
        await self._after(cursor)
        return cursor

    async def fetch(self, *args: Any, **options: Any) -> Any:
        return await Connection.fetch(self, *args, **options)  # type: ignore[arg-type]

    async def change(self, *args: Any, **options: Any) -> int:
        return await Connection.change(self, *args, **options)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
