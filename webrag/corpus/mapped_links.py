"""What a mapping service knows of a page's site: stored once per page, merged with its links."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection, sql

from webrag.corpus.models import LinkCandidate
from webrag.corpus.rows import LinkRow
from webrag.corpus.schema import table
from webrag.corpus.writer import copy_links, lock_pages
from webrag.ingestion.models import MappedLink, is_generic_anchor
from webrag.postgres.database import Database
from webrag.postgres.execution import fetch


class MappedLinks:
    """The mapped links of one collection; safe to share between tasks.

    They are kept beside the links of a page as long as its version is: a page that changed may
    have a site that changed.

    All methods raise StorageError when the database fails.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._collection = database.config.collection

    async def unmapped(self, urls: Sequence[str]) -> list[str]:
        """Give those of some canonical URLs whose stored page was not mapped yet, in order."""
        statement = sql.SQL(
            "select url from {} where url = any(%s) and mapped_at is null and gone_at is null"
        ).format(table(self._collection, "documents"))

        async def work(connection: AsyncConnection[Any]) -> set[str]:
            cursor = await connection.execute(statement, (list(urls),))
            return {url for (url,) in await cursor.fetchall()}

        found = await self._database.run(work)
        return [url for url in dict.fromkeys(urls) if url in found]

    async def store(self, url: str, links: Sequence[MappedLink], at: datetime) -> None:
        """Keep what was listed for a page in place of what was listed before.

        Args:
            url: Canonical URL; nothing happens when the page is not stored any more.
            links: As the service listed them.
            at: When it did.
        """
        await self._database.run(lambda connection: self._write(connection, url, links, at))

    async def _write(
        self, connection: AsyncConnection[Any], url: str, links: Sequence[MappedLink], at: datetime
    ) -> None:
        candidates = table(self._collection, "link_candidates")
        await lock_pages(connection, self._collection, [url])
        rows = await fetch(
            connection,
            sql.SQL("update {} set mapped_at = %s where url = %s returning id").format(
                table(self._collection, "documents")
            ),
            (at, url),
        )
        if not rows:
            return
        page_id = rows[0][0]
        await connection.execute(
            sql.SQL("delete from {} where source_document = %s and origin = 'map'").format(
                candidates
            ),
            (page_id,),
        )
        last = await fetch(
            connection,
            sql.SQL("select coalesce(max(ordinal), -1) from {} where source_document = %s").format(
                candidates
            ),
            (page_id,),
        )
        others = {link.url: link for link in links if link.url != url}
        listed = [
            LinkRow(ordinal, link.url, link.title, link.description, origin="map")
            for ordinal, link in enumerate(others.values(), start=last[0][0] + 1)
        ]
        await copy_links(connection, self._collection, [(page_id, listed)])


def enriched(links: Sequence[LinkCandidate]) -> list[LinkCandidate]:
    """Merge mapped links into the pages' own.

    A page's link gets the mapped title where its anchor says nothing, and the mapped description
    where nothing stands around it. A mapped link stays only where the page has none to its target.

    Args:
        links: Of any number of pages, in any order, which is kept.
    """
    mapped = {(link.source_url, link.url): link for link in links if link.origin == "map"}
    if not mapped:
        return list(links)
    own = {(link.source_url, link.url) for link in links if link.origin == "page"}
    merged: list[LinkCandidate] = []
    for link in links:
        key = (link.source_url, link.url)
        if link.origin == "page":
            merged.append(_filled(link, mapped.get(key)))
        elif key not in own:
            merged.append(link)
    return merged


def _filled(link: LinkCandidate, known: LinkCandidate | None) -> LinkCandidate:
    if known is None:
        return link
    title = known.title if known.title and is_generic_anchor(link.title) else link.title
    description = link.description or known.description
    return link.model_copy(update={"title": title, "description": description})
