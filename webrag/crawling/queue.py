"""The pages of each crawl still to visit, in the database, so that an interrupted one goes on."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from webrag.errors import WebRAGError
from webrag.postgres.database import Connection, Database

# OBTAINED came in under another address, which was counted.
_QUEUED, _VISITED, _SKIPPED, _OBTAINED = range(4)
# What was seen of a site a week ago says little about it now.
_KEPT = timedelta(days=7)
_BATCH = 5_000
_NEXT_FIELDS = "url, depth, outside, newest, attempts"
_SET_STATE = "update {crawl_urls} set state = %s where crawl = %s and url = any(%s)"


@dataclass(frozen=True, slots=True)
class QueuedPage:
    """A page to visit, so many links from the start page; `newest` is its site's own date of it.

    One that is `outside`, not below the start page's folder or put off, is visited after all
    others. Attempts are of workers in a row that have begun with it and said no more.
    """

    url: str
    depth: int
    outside: bool = False
    newest: datetime | None = None
    attempts: int = 0


class TurnLostError(WebRAGError):
    """Catch it to stop a crawl that another worker has taken over; nothing was written."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """One unfinished crawl with its queue, of which `visited` pages count towards its limit so far.

    Only who has the `turn` at it may change it: another's change raises TurnLostError.
    """

    id: int
    roots: tuple[str, ...]
    started_at: datetime
    visited: int
    _database: Database
    _turn: int | None

    @property
    def is_resumed(self) -> bool:
        """An earlier run obtained the start page, whose addresses are the roots."""
        return bool(self.roots)

    async def set_roots(self, roots: Sequence[str]) -> None:
        """Remember under which addresses the start page is known."""
        await self._database.fetch(
            "update {crawls} set roots = %s where id = %s", (list(roots), self.id)
        )

    async def end(self) -> None:
        """Forget a crawl that is done; its pages stay."""
        await self._database.fetch("delete from {crawls} where id = %s", (self.id,))

    async def next_pages(self, *, limit: int, under_way: Sequence[str] = ()) -> list[QueuedPage]:
        """Give the pages to visit next but those under way: start folder first, breadth first."""
        statement = (
            f"select {_NEXT_FIELDS} from {{crawl_urls}}"
            " where crawl = %s and state = 0 and url <> all(%s::text[])"
            " order by outside, depth, id limit %s"
        )
        rows = await self._database.fetch(statement, (self.id, list(under_way), limit))
        return [QueuedPage(*row) for row in rows]

    async def begun(self) -> list[QueuedPage]:
        """Give the pages that a worker has begun with and not finished, the least tried first."""
        statement = (
            f"select {_NEXT_FIELDS} from {{crawl_urls}}"
            " where crawl = %s and state = 0 and attempts > 0"
            " order by attempts, outside, depth, id"
        )
        return [QueuedPage(*row) for row in await self._database.fetch(statement, (self.id,))]

    async def begin_page(self, url: str, attempt: int) -> None:
        """Remember that a worker begins with a page, the `attempt`-th in a row that does."""
        statement = "update {crawl_urls} set attempts = %s where crawl = %s and url = %s"
        await self._in_order(statement, (attempt, self.id, url))

    async def learned(self) -> bytes | None:
        """Read what a turn before has learned of the site; None after the first."""
        rows = await self._database.fetch("select learned from {crawls} where id = %s", (self.id,))
        return next((learned for (learned,) in rows), None)

    async def remember(self, learned: bytes) -> None:
        """Keep what this turn has learned of the site."""
        await self._database.fetch(
            "update {crawls} set learned = %s where id = %s", (learned, self.id)
        )

    async def known(self) -> AsyncIterator[QueuedPage]:
        """Give every page a crawl has met, in the order it met them."""
        statement = (
            "select id, url, depth, outside, newest from {crawl_urls}"
            " where crawl = %s and id > %s order by id limit %s"
        )
        last = 0
        while True:
            rows = await self._database.fetch(statement, (self.id, last, _BATCH))
            for row in rows:
                yield QueuedPage(*row[1:])
            if len(rows) < _BATCH:
                return
            last = rows[-1][0]

    async def view(self, page_id: int, *, text_chars: int) -> tuple[tuple[str, ...], str]:
        """Read the targets of a page that its crawl lacks, in order, and how its text begins."""
        links = """
            select l.url from (
                select url, min(ordinal) as place from {link_candidates}
                where source_document = %s and not 'nofollow' = any(rel) group by url
            ) l
            where not exists (select from {crawl_urls} u where u.crawl = %s and u.url = l.url)
            order by l.place
            """
        text = "select left(markdown, %s) from {documents} where id = %s"

        async def work(connection: Connection) -> tuple[tuple[str, ...], str]:
            found = await connection.fetch(links, (page_id, self.id))
            rows = await connection.fetch(text, (text_chars, page_id))
            return tuple(url for (url,) in found), rows[0][0] if rows else ""

        return await self._database.run(work, snapshot=True)

    async def sitemaps(self, page_id: int) -> list[str]:
        """Give the addresses of sitemaps that a stored page names, in its order."""
        statement = (
            "select named.address from {documents}"
            " cross join jsonb_array_elements(map_marks) as marks (mark),"
            " jsonb_array_elements_text(mark -> 'urls') as named (address)"
            " where id = %s and mark ->> 'kind' = 'sitemap'"
        )
        return [url for (url,) in await self._database.fetch(statement, (page_id,))]

    async def add(self, pages: Sequence[QueuedPage]) -> set[str]:
        """Put pages into the queue, and give those that are new; none when the crawl was ended."""
        if not pages:
            return set()
        return await self._database.run(lambda connection: self._add(connection, pages))

    async def note_visited(
        self, url: str, *, stored_as: str | None = None, links: Sequence[QueuedPage]
    ) -> tuple[bool, set[str]]:
        """Take a page out and put its links in; tell if it had been visited, and which are new."""
        alias = stored_as if stored_as != url else None

        async def work(connection: Connection) -> tuple[bool, set[str]]:
            added = await self._add(connection, links)
            known = alias is not None and await self._visit(connection, alias)
            await connection.change(_SET_STATE, (_VISITED, self.id, [url]))
            return known, added

        return await self._database.run(work)

    async def skip(self, urls: Sequence[str]) -> None:
        """Take pages out of the queue that do not count as visited."""
        await self._in_order(_SET_STATE, (_SKIPPED, self.id, list(urls)))

    async def put_off(self, url: str) -> None:
        """Let a page wait until all others are visited."""
        await self._database.fetch(
            "update {crawl_urls} set outside = true where crawl = %s and url = %s", (self.id, url)
        )

    async def requeue(self, urls: Sequence[str]) -> None:
        """Put visited pages back into the queue, at their place."""
        await self._in_order(_SET_STATE, (_QUEUED, self.id, list(urls)))

    async def queued(self) -> int:
        """Number of pages that wait."""
        statement = "select count(*) from {crawl_urls} where crawl = %s and state = 0"
        ((number,),) = await self._database.fetch(statement, (self.id,))
        return int(number)

    async def _in_order(self, statement: str, values: tuple[Any, ...]) -> None:
        """Run a statement that no other writer of the crawl comes between."""

        async def work(connection: Connection) -> None:
            await self._lock(connection)
            await connection.change(statement, values)

        await self._database.run(work)

    async def _lock(self, connection: Connection) -> bool:
        """Take turns in writing a crawl; a lost entry costs little, so none waits for the disk."""
        statement = (
            "select set_config('synchronous_commit', 'off', true), turn from {crawls}"
            " where id = %s for no key update"
        )
        rows = await connection.fetch(statement, (self.id,))
        if self._turn is not None and (not rows or rows[0][1] != self._turn):
            raise TurnLostError("Another worker has taken this crawl over.")
        return bool(rows)

    async def _add(self, connection: Connection, pages: Sequence[QueuedPage]) -> set[str]:
        if not await self._lock(connection) or not pages:
            return set()
        statement = """
            insert into {crawl_urls} (crawl, url, depth, outside, newest, state)
            select %s, new.url, new.depth, new.outside, new.newest, 0
            from unnest(%s::text[], %s::int[], %s::bool[], %s::timestamptz[])
                 with ordinality as new (url, depth, outside, newest, place)
            order by new.place
            on conflict (crawl, url) do nothing returning url
            """
        columns = [
            [page.url for page in pages],
            [page.depth for page in pages],
            [page.outside for page in pages],
            [page.newest for page in pages],
        ]
        return {url for (url,) in await connection.fetch(statement, (self.id, *columns))}

    async def _visit(self, connection: Connection, url: str) -> bool:
        """Mark a page that came in under another address, and tell whether it was here before."""
        select = "select state from {crawl_urls} where crawl = %s and url = %s"
        rows = await connection.fetch(select, (self.id, url))
        if rows and rows[0][0] in (_VISITED, _OBTAINED):
            return True
        upsert = (
            "insert into {crawl_urls} (crawl, url, depth, outside, state)"
            " select id, %s, 0, false, %s from {crawls} where id = %s"
            " on conflict (crawl, url) do update set state = excluded.state"
        )
        await connection.change(upsert, (url, _OBTAINED, self.id))
        return False


async def begin_crawl(database: Database, key: str, turn: int | None = None) -> Crawl:
    """Start a crawl, or give the one left unfinished with this key, equal for equal options.

    `turn` is None for crawls of one process, which take no turns.
    """
    now = datetime.now(UTC)
    forget = (
        "delete from {crawls} c where started_at < %s and not exists"
        " (select from {jobs} j where j.key = c.key and j.ended_at is null)"
    )
    take = "update {crawls} set turn = %s where key = %s and turn < %s"
    insert = (
        "insert into {crawls} (key, roots, started_at) values (%s, '{{}}', %s)"
        " on conflict (key) do nothing"
    )
    select = (
        "select c.id, c.roots, c.started_at,"
        " (select count(*) from {crawl_urls} u where u.crawl = c.id and u.state = %s)"
        " from {crawls} c where c.key = %s"
    )

    async def work(connection: Connection) -> Crawl:
        await connection.change(forget, (now - _KEPT,))
        await connection.change(insert, (key, now))
        if turn is not None:
            await connection.change(take, (turn, key, turn))
        ((number, roots, started_at, visited),) = await connection.fetch(select, (_VISITED, key))
        return Crawl(number, tuple(roots), started_at, visited, database, turn)

    return await database.run(work)
