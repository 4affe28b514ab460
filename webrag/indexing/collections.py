"""What collections a database holds, and how many pages are in each; it changes nothing."""

from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from webrag.indexing.database import Database
from webrag.indexing.models import CollectionSize
from webrag.indexing.schema import list_collections, table

__all__ = ["collection_sizes"]


async def collection_sizes(database: Database) -> list[CollectionSize]:
    """Every collection with its number of pages, in alphabetical order."""
    names = await list_collections(database)

    async def work(connection: AsyncConnection[Any]) -> list[CollectionSize]:
        sizes = [await _size_unless_gone(connection, name) for name in names]
        return [size for size in sizes if size is not None]

    return await database.run(work)


async def _size_unless_gone(connection: AsyncConnection[Any], name: str) -> CollectionSize | None:
    """None for a collection that another process has dropped since it was listed."""
    try:
        async with connection.transaction():
            return await _size(connection, name)
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return None


async def _size(connection: AsyncConnection[Any], name: str) -> CollectionSize:
    documents = table(name, "documents")
    cursor = await connection.execute(
        "select has_schema_privilege(%s, 'usage')"
        " and has_table_privilege(to_regclass(%s), 'select')",
        (name, documents.as_string(connection)),
    )
    allowed = await cursor.fetchone()
    if not (allowed and allowed[0]):
        return CollectionSize(name=name, documents=None)
    cursor = await connection.execute(sql.SQL("select count(*) from {}").format(documents))
    row = await cursor.fetchone()
    return CollectionSize(name=name, documents=row[0] if row else None)
