"""Finds the pages that are to be forgotten, and deletes them. Asks nobody."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection, sql
from pydantic import BaseModel, ConfigDict

from webrag.corpus import queries
from webrag.corpus.schema import table
from webrag.corpus.writer import clear_attempts, lock_pages
from webrag.postgres.database import Database


class ForgetReport(BaseModel):
    """What was forgotten.

    Attributes:
        removed: Canonical URLs of the pages that were deleted.
        unknown: URLs that were named and are not stored.
    """

    model_config = ConfigDict(frozen=True)

    removed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


# The rows of a page that was loaded with others stand on some hundred disk pages. To pack these for
# the log, as the embedded server does, takes 100 ms; to write them as they are takes 3.
_IMAGES_AS_THEY_ARE = """
select set_config('wal_compression', 'off', true) where current_setting('is_superuser') = 'on'
"""


async def urls_to_forget(
    database: Database, *, site: str | None = None, fetched_before: datetime | None = None
) -> list[str]:
    """Canonical URLs of the pages for which everything given holds, in alphabetical order.

    Args:
        database: The collection.
        site: `host` or `host:port`, without `www.`.
        fetched_before: The site last delivered or confirmed the page before this time.
    """
    statement = sql.SQL(
        "select url from {} where (%(site)s::text is null or site = %(site)s)"
        " and (%(before)s::timestamptz is null or fetched_at < %(before)s) order by url"
    ).format(table(database.config.collection, "documents"))

    async def work(connection: AsyncConnection[Any]) -> list[str]:
        cursor = await connection.execute(statement, {"site": site, "before": fetched_before})
        return [url for (url,) in await cursor.fetchall()]

    return await database.run(work)


async def stored_urls(database: Database, urls: Sequence[str]) -> dict[str, str]:
    """The canonical URL of each page that is stored, by the URL asked for."""
    collection = database.config.collection
    found = await database.run(
        lambda connection: queries.find_pages(connection, collection, urls), snapshot=True
    )
    return {asked: page.url for asked, page in found.items()}


async def forget_page(
    database: Database, url: str, *, fetched_before: datetime | None = None
) -> bool:
    """Delete a page with everything made from it; False when it is not stored, or not that old."""
    collection = database.config.collection
    statement = sql.SQL(
        "delete from {} where url = %(url)s"
        " and (%(before)s::timestamptz is null or fetched_at < %(before)s)"
        " returning requested_url"
    ).format(table(collection, "documents"))

    async def work(connection: AsyncConnection[Any]) -> bool:
        await lock_pages(connection, collection, [url])
        await connection.execute(_IMAGES_AS_THEY_ARE)
        cursor = await connection.execute(statement, {"url": url, "before": fetched_before})
        removed = await cursor.fetchone()
        if removed is None:
            return False
        await clear_attempts(connection, collection, {url, *removed})
        past = sql.SQL("delete from {} where url = %s").format(table(collection, "past_pages"))
        await connection.execute(past, (url,))
        return True

    return await database.run(work)
