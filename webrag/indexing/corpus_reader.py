"""What is stored of the pages, each read in one transaction. Searches and changes nothing."""

from collections.abc import Sequence, Set
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection, sql

from webrag.indexing import page_queries as queries
from webrag.indexing.database import Database
from webrag.indexing.mapped_links import enriched
from webrag.indexing.models import CorpusStatus, LinkCandidate, StoredPage
from webrag.indexing.page_queries import StoredParent
from webrag.indexing.page_versions import KnownVersions, read_versions
from webrag.indexing.schema import corpus_embedding, table
from webrag.ingestion.models import NormalizedDocument

__all__ = ["CorpusReader"]

_Connection = AsyncConnection[Any]


class CorpusReader:
    """Reads the pages of one collection; safe to share between tasks.

    A page is known by its canonical URL and by every URL that led to it.

    All methods raise StorageError when the database fails.

    Args:
        database: The collection.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._collection = database.config.collection

    async def page(self, url: str) -> StoredPage | None:
        """Give the page a canonical or requested URL stands for, None when it is not stored."""
        return (await self.pages([url])).get(url)

    async def pages(self, urls: Sequence[str]) -> dict[str, StoredPage]:
        """Give stored pages by the URL they were asked for; unknown URLs are absent."""
        return await self._database.run(
            lambda connection: queries.find_pages(connection, self._collection, urls)
        )

    async def markdown(self, url: str) -> str | None:
        """Give the text all offsets of a page refer to, None when the page is not stored."""
        page = await self.page(url)
        return None if page is None else await self.markdown_by_document_id(page.document_id)

    async def markdown_by_document_id(self, document_id: str | UUID) -> str | None:
        """Give the text of a page by its stable id, None when the page is not stored."""
        statement = sql.SQL("select markdown from {} where document_id = %s").format(
            table(self._collection, "documents")
        )

        async def work(connection: _Connection) -> str | None:
            row = await (await connection.execute(statement, (UUID(str(document_id)),))).fetchone()
            return None if row is None else str(row[0])

        return await self._database.run(work)

    async def known_versions(self, document: NormalizedDocument, links: Set[str]) -> KnownVersions:
        """Tell which stored page a page that has arrived replaces, and which one it equals.

        Args:
            document: The page.
            links: Its link targets.
        """
        return await self._database.run(
            lambda connection: read_versions(connection, self._collection, document, links),
            snapshot=True,
        )

    async def links(self, urls: Sequence[str]) -> list[LinkCandidate]:
        """Give the links of stored pages, pages in the order asked for, links in page order.

        What a mapping service said of a target fills in where the page says nothing of it; targets
        only the service knows follow the page's own links.
        """

        async def work(connection: _Connection) -> list[LinkCandidate]:
            pages = await queries.find_pages(connection, self._collection, urls)
            wanted = [pages[url].page_id for url in urls if url in pages]
            ids = list(dict.fromkeys(wanted))
            return enriched(await queries.read_links(connection, self._collection, ids))

        return await self._database.run(work, snapshot=True)

    async def in_degrees(self, targets: Sequence[str]) -> dict[str, int]:
        """Give the number of stored pages that link to each target; 0 for unknown ones."""
        return await self._database.run(
            lambda connection: queries.read_in_degrees(connection, self._collection, targets)
        )

    async def urls_in_scope(
        self, sites: Sequence[str] | None, *, limit: int | None = None
    ) -> tuple[list[str], int]:
        """Give URLs of retrievable pages, the nearest to a named page first, and their number.

        Args:
            sites: Pages of these (`host` or `host:port`); None for all.
            limit: URLs at most; all are counted.
        """
        return await self._database.run(
            lambda connection: queries.read_urls(connection, self._collection, sites, limit)
        )

    async def neighbours(
        self, document_id: str | UUID, chunk_indexes: Sequence[int]
    ) -> list[StoredParent]:
        """Give parents of a page by position, in page order; those that do not exist are absent."""
        identity = UUID(str(document_id))
        return await self._database.run(
            lambda connection: queries.read_parents(
                connection, self._collection, identity, chunk_indexes
            )
        )

    async def status(self, url: str | None = None, *, include_urls: bool = True) -> CorpusStatus:
        """Tell what the collection holds.

        Args:
            url: Count and list only this page; counts are 0 when it is not stored.
            include_urls: List the pages.
        """
        collection = self._collection

        async def work(connection: _Connection) -> dict[str, Any]:
            page_id, found = None, {}
            if url is not None:
                found = await queries.find_pages(connection, collection, [url])
                page_id = found[url].page_id if url in found else 0
            counts: dict[str, Any] = await queries.read_counts(connection, collection, page_id)
            asked = found[url].url if url in found else url
            if url is not None:
                every = await queries.read_counts(connection, collection, None)
                counts["other_documents"] = every["documents"] - counts["documents"]
            counts["outcomes"] = await queries.read_outcomes(connection, collection, asked)
            failures = await queries.read_failures(connection, collection, asked)
            counts["failed"] = len(failures)
            if include_urls:
                counts["pages"] = await queries.read_listing(connection, collection, page_id)
                counts["failures"] = failures
            return counts

        counts = await self._database.run(work, snapshot=True)
        model, dimensions = await corpus_embedding(self._database) or (None, None)
        return CorpusStatus(
            collection=collection,
            embedding_model=model,
            embedding_dimensions=dimensions,
            database=self._database.description,
            only_url=url,
            **counts,
        )
