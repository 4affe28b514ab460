"""Finds the pages published in given years; it searches no text."""

from collections.abc import Sequence

from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from webrag.indexing.database import Database
from webrag.indexing.schema import table

__all__ = ["urls_published_in"]


async def urls_published_in(
    database: Database, years: Sequence[int], *, within: Sequence[str] | None = None
) -> list[str]:
    """Addresses of the stored pages published in any of `years`, in alphabetical order.

    Args:
        database: Where the corpus is.
        years: Calendar years; pages whose date is not known belong to none.
        within: Only these pages, by any address they are known by; None for all.

    Raises:
        StorageError: The database failed.
    """
    statement = sql.SQL(
        "select url from {documents} where gone_at is null and publication_year = any(%(years)s)"
        " and (%(urls)s::text[] is null or url = any(%(urls)s) or aliases && %(urls)s::text[])"
        " order by url"
    ).format(documents=table(database.config.collection, "documents"))
    values = {"years": list(years), "urls": None if within is None else list(within)}

    async def work(connection: AsyncConnection[TupleRow]) -> list[str]:
        cursor = await connection.execute(statement, values)
        return [row[0] for row in await cursor.fetchall()]

    return await database.run(work, snapshot=True)
