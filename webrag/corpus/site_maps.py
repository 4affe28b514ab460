"""The sites' own maps as rows: where pages say they are, and what came of reading them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection, sql
from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from webrag.corpus.schema import table
from webrag.ingestion.models import MapMark
from webrag.postgres.database import Database

_MARKS = TypeAdapter(tuple[MapMark, ...])


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """A stored page that names maps of its site.

    Attributes:
        page_id: Row number of the page.
        depth: Links from a page the user named.
        marks: At least one.
    """

    url: str
    page_id: int
    depth: int
    marks: tuple[MapMark, ...]


@dataclass(frozen=True, slots=True)
class StoredMap:
    """What came of reading one map.

    Attributes:
        url: The first of its mark's addresses.
        fetched_at: When it was asked for.
        packed: The map, as `MapIndex` reads it; empty when there is none.
        failure: Why there is none, a sentence.
        marks: Of a page that was asked for the maps that it names.
    """

    url: str
    fetched_at: datetime
    packed: bytes = b""
    failure: str = ""
    marks: tuple[MapMark, ...] = ()


class SiteMapStore:
    """The maps of one collection; safe to share between tasks.

    All methods raise StorageError when the database fails.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._collection = database.config.collection

    async def marked(self, urls: Sequence[str]) -> list[MarkedPage]:
        """Give those of some canonical URLs whose stored page names maps, in order."""
        statement = sql.SQL(
            "select url, id, depth, map_marks from {}"
            " where url = any(%(urls)s) and map_marks <> '[]'"
            " order by array_position(%(urls)s, url)"
        ).format(table(self._collection, "documents"))

        async def work(connection: AsyncConnection[Any]) -> list[MarkedPage]:
            cursor = await connection.execute(statement, {"urls": list(urls)})
            return [
                MarkedPage(url, page_id, depth, _MARKS.validate_python(marks))
                for url, page_id, depth, marks in await cursor.fetchall()
            ]

        return await self._database.run(work)

    async def read(self, url: str) -> StoredMap | None:
        """Give what came of reading a map, None when it was not asked for yet."""
        statement = sql.SQL(
            "select fetched_at, coalesce(packed, ''), coalesce(failure, ''), marks"
            " from {} where url = %s"
        ).format(table(self._collection, "site_maps"))

        async def work(connection: AsyncConnection[Any]) -> StoredMap | None:
            row = await (await connection.execute(statement, (url,))).fetchone()
            if row is None:
                return None
            at, packed, failure, marks = row
            return StoredMap(url, at, bytes(packed), failure, _MARKS.validate_python(marks))

        return await self._database.run(work)

    async def write(self, found: StoredMap) -> None:
        """Keep what came of reading a map in place of what was kept before."""
        statement = sql.SQL(
            "insert into {} (url, fetched_at, packed, failure, marks) values (%s, %s, %s, %s, %s)"
            " on conflict (url) do update set fetched_at = excluded.fetched_at,"
            " packed = excluded.packed, failure = excluded.failure, marks = excluded.marks"
        ).format(table(self._collection, "site_maps"))
        marks = Jsonb([mark.model_dump(mode="json") for mark in found.marks])
        values = (found.url, found.fetched_at, found.packed or None, found.failure or None, marks)

        async def work(connection: AsyncConnection[Any]) -> None:
            await connection.execute(statement, values)

        await self._database.run(work)
