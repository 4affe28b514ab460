"""Changes to the stored pages, each in one transaction. Does not search."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection, sql

from webrag.errors import ConfigurationError
from webrag.indexing import page_queries as queries
from webrag.indexing.bulk_load import index_put_off
from webrag.indexing.corpus_reader import CorpusReader
from webrag.indexing.database import Database
from webrag.indexing.models import StoredPage
from webrag.indexing.outcomes import Attempt, clear_attempts, note_attempt
from webrag.indexing.page_queries import StoredParent
from webrag.indexing.page_versions import KnownChunks, read_chunks
from webrag.indexing.page_writer import EmbeddedPage, lock_pages, write_pages
from webrag.indexing.schema import read_embedding, table
from webrag.indexing.steps import run_steps

__all__ = ["Corpus", "StoredParent"]

_Connection = AsyncConnection[Any]


class Corpus(CorpusReader):
    """The pages of one collection; safe to share between tasks.

    A page is known by its canonical URL and by every URL that led to it. Readers see a page's
    old version or its new one, never a mixture.

    All methods raise StorageError when the database fails.

    Args:
        database: The collection.
        embedding: Model and dimensions that vectors are made with; writing fails with
            ConfigurationError once the collection has been embedded with another one.
    """

    def __init__(self, database: Database, *, embedding: tuple[str, int] | None = None) -> None:
        super().__init__(database)
        self._embedding = embedding

    async def replace_pages(self, pages: Sequence[EmbeddedPage]) -> list[StoredPage]:
        """Store pages in place of their previous versions, in one transaction: all or none.

        Concurrent calls for one page take turns. The smallest depth seen is kept. Loading many
        pages this way costs a third of one transaction for each.

        Args:
            pages: Each with its embeddings, one row per child, shape (children, dimensions). No
                two may have a URL in common.
        """

        async def work(connection: _Connection) -> list[StoredPage]:
            ids = await run_steps(connection, write_pages(self._collection, pages))
            # Only now: the tables are locked, so that the model cannot change any more.
            await self._check_model(connection)
            return await queries.read_pages(connection, self._collection, ids)

        return await self._database.run(work)

    def index_put_off(self, coming: int) -> AbstractAsyncContextManager[bool]:
        """Within it, many rows are loaded; the vector index is built at the end if that is faster.

        Args:
            coming: About how many chunks.
        """
        return index_put_off(self._database, coming)

    async def known_chunks(self, page_id: int | None, text_hashes: Sequence[bytes]) -> KnownChunks:
        """Give what a new version of a page has in common with the corpus.

        Args:
            page_id: Its previous version; None when there is none.
            text_hashes: Of the new version's chunks.
        """

        async def work(connection: _Connection) -> KnownChunks:
            found = await read_chunks(connection, self._collection, page_id, text_hashes)
            await self._check_model(connection)
            return found

        return await self._database.run(work)

    async def add_aliases(self, url: str, aliases: Sequence[str]) -> None:
        """Make a stored page known by more URLs; what failed for them before is forgotten."""
        others = [alias for alias in aliases if alias != url]
        await self._update(
            url,
            "aliases = array(select distinct unnest(aliases || %(aliases)s::text[]) order by 1)",
            cleared=others,
            aliases=others,
        )

    async def touch(
        self,
        url: str,
        fetched_at: datetime,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
    ) -> None:
        """Note that the site confirmed the stored version; a page marked gone is back.

        Args:
            url: Canonical URL.
            fetched_at: When it did.
            etag: New validator; None keeps the old one.
            last_modified: New validator; None keeps the old one.
        """
        await self._update(
            url,
            "fetched_at = greatest(fetched_at, %(at)s), gone_at = null,"
            " etag = coalesce(%(etag)s, etag),"
            " last_modified = coalesce(%(last_modified)s, last_modified)",
            attempt=Attempt("unchanged", fetched_at),
            at=fetched_at,
            etag=etag,
            last_modified=last_modified,
        )

    async def mark_gone(
        self, url: str, at: datetime, *, reason: str | None = None, status: int | None = None
    ) -> None:
        """Take a page out of retrieval, keeping its text; the first time is remembered.

        Args:
            url: Canonical URL.
            at: When the site said so.
            reason: What it said, for the status listing.
            status: HTTP status.
        """
        await self._update(
            url,
            "gone_at = coalesce(gone_at, %(at)s)",
            attempt=Attempt("gone", at, reason, status),
            at=at,
        )

    async def note_failure(
        self, url: str, at: datetime, *, reason: str, status: int | None = None
    ) -> None:
        """Remember that a page, stored or not, could not be obtained; success clears it.

        Args:
            url: Canonical URL of a stored page, or the URL that was asked for.
            at: When it was asked for.
            reason: A sentence.
            status: HTTP status of the answer, if there was one.
        """
        attempt = Attempt("failed", at, reason, status)

        async def work(connection: _Connection) -> None:
            await run_steps(connection, note_attempt(self._collection, url, attempt))

        await self._database.run(work)

    async def lower_depth(self, url: str, depth: int) -> None:
        """Note that a page is at most this many links away from a named page."""
        await self._update(url, "depth = least(depth, %(depth)s)", depth=depth)

    def _table(self, name: str) -> sql.Composed:
        return table(self._collection, name)

    async def _check_model(self, connection: _Connection) -> None:
        if self._embedding is None:
            return
        found = await read_embedding(connection, self._collection)
        if found != self._embedding:
            raise ConfigurationError(
                f"The collection {self._collection!r} has been embedded again with another model"
                f" than {self._embedding[0]}, which this process uses.",
                hint="Start it again.",
            )

    async def _update(
        self,
        url: str,
        assignments: str,
        *,
        attempt: Attempt | None = None,
        cleared: Sequence[str] = (),
        **values: Any,
    ) -> None:
        statement = sql.SQL(f"update {{}} set {assignments} where url = %(url)s").format(
            self._table("documents")
        )

        async def work(connection: _Connection) -> None:
            await run_steps(connection, lock_pages(self._collection, [url]))
            updated = await connection.execute(statement, {"url": url, **values})
            await run_steps(connection, clear_attempts(self._collection, cleared))
            if attempt is not None and updated.rowcount:
                await run_steps(connection, note_attempt(self._collection, url, attempt))

        await self._database.run(work)
