"""Texts that pages had before they changed; no search sees them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection, sql
from psycopg.rows import class_row
from pydantic import BaseModel, ConfigDict

from webrag.corpus.schema import table
from webrag.postgres.steps import Execute, Steps

__all__ = ["PastPage", "keep_past", "read_past"]

_KEEP = """
insert into {past}
    (url, title, version, stored_at, fetched_at, replaced_at, content_hash, markdown)
select d.url, d.title, d.version, coalesce(d.stored_at, d.fetched_at), d.fetched_at, n.at,
       d.content_hash, d.markdown
from unnest(%(urls)s::text[], %(hashes)s::text[], %(times)s::timestamptz[]) n(url, hash, at)
join {documents} d on d.url = n.url and d.content_hash <> n.hash
"""
_TRIM = """
delete from {past} where id in (
    select id from (
        select id, row_number() over (partition by url order by id desc) as place
        from {past} where url = any(%(urls)s)
    ) p where place > %(most)s
)
"""


class PastPage(BaseModel):
    """A text that a page had.

    Attributes:
        stored_at: When the site first delivered it, as far as is known.
        fetched_at: When the site last confirmed it.
        replaced_at: When another text was stored in its place.
    """

    model_config = ConfigDict(frozen=True)

    url: str
    title: str | None
    version: str | None
    stored_at: datetime
    fetched_at: datetime
    replaced_at: datetime
    markdown: str


def keep_past(
    collection: str, pages: Mapping[str, tuple[str, datetime]], *, most: int
) -> Steps[None]:
    """Keep the stored texts of pages that are about to get other ones.

    Args:
        collection: Their collection.
        pages: URL to the hash of the new text, and when it was delivered.
        most: Texts kept of each page; with 0 none is, and those kept before stay.
    """
    if not most:
        return
    names = {
        "documents": table(collection, "documents"),
        "past": table(collection, "past_pages"),
    }
    yield Execute(
        sql.SQL(_KEEP).format(**names),
        {
            "urls": list(pages),
            "hashes": [new_hash for new_hash, _ in pages.values()],
            "times": [at for _, at in pages.values()],
        },
    )
    yield Execute(sql.SQL(_TRIM).format(**names), {"urls": list(pages), "most": most})


async def read_past(connection: AsyncConnection[Any], collection: str, url: str) -> list[PastPage]:
    """The kept texts of a page, the latest first."""
    statement = sql.SQL(
        "select url, title, version, stored_at, fetched_at, replaced_at, markdown from {}"
        " where url = %s order by id desc"
    ).format(table(collection, "past_pages"))
    async with connection.cursor(row_factory=class_row(PastPage)) as cursor:
        await cursor.execute(statement, (url,))
        return await cursor.fetchall()
