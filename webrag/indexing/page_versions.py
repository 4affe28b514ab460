"""What the corpus already has of a page that has just arrived, over a connection it is given."""

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection, sql

from webrag.indexing.models import StoredPage
from webrag.indexing.page_queries import find_pages, read_embeddings
from webrag.indexing.schema import table
from webrag.ingestion.links import site_of
from webrag.ingestion.models import NormalizedDocument

__all__ = ["KnownChunks", "KnownVersions", "read_chunks", "read_versions"]

_MOST_TWINS = 5


class KnownVersions(NamedTuple):
    """Versions of a page that are stored.

    Attributes:
        previous: The page under the same canonical URL.
        same: The page that needs no new version: the previous one unchanged, or a page of the
            site that is the same page under another URL.
    """

    previous: StoredPage | None
    same: StoredPage | None


class KnownChunks(NamedTuple):
    """Chunks that need not be made again.

    Attributes:
        embeddings: By text hash, of whatever page.
        node_ids: Of the page itself.
    """

    embeddings: dict[bytes, NDArray[np.float32]]
    node_ids: set[str]


async def read_versions(
    connection: AsyncConnection[Any],
    collection: str,
    document: NormalizedDocument,
    links: Set[str],
) -> KnownVersions:
    """Find what is stored of a page.

    Two pages are the same when text, title and link targets are: versions of a manual can share
    text and still lead elsewhere.

    Args:
        connection: Whose statements see one state of the corpus.
        collection: Which corpus.
        document: The page.
        links: Its link targets.
    """
    previous = (await find_pages(connection, collection, [document.url])).get(document.url)
    if previous is None or previous.url != document.url:
        return KnownVersions(None, await _twin(connection, collection, document, links))
    known = (previous.content_hash, previous.title)
    if known != (document.content_hash, document.title):
        return KnownVersions(previous, None)
    is_same = links == await _link_targets(connection, collection, previous.page_id)
    is_same = is_same and await _has_anchors(connection, collection, previous.page_id, document)
    return KnownVersions(previous, previous if is_same else None)


async def read_chunks(
    connection: AsyncConnection[Any],
    collection: str,
    page_id: int | None,
    text_hashes: Sequence[bytes],
) -> KnownChunks:
    """Find chunks that a new version of a page has in common with the corpus.

    Args:
        connection: Any.
        collection: Which corpus.
        page_id: Its previous version; None when there is none.
        text_hashes: Of the new version's chunks.
    """
    embeddings = await read_embeddings(connection, collection, text_hashes)
    if page_id is None:
        return KnownChunks(embeddings, set())
    statement = sql.SQL("select node_id from {} where document = %s").format(
        table(collection, "data_children")
    )
    cursor = await connection.execute(statement, (page_id,))
    return KnownChunks(embeddings, {node_id for (node_id,) in await cursor.fetchall()})


async def _has_anchors(
    connection: AsyncConnection[Any], collection: str, page_id: int, document: NormalizedDocument
) -> bool:
    """Whether the stored version has the anchors; collections of earlier versions had none."""
    if not document.anchors:
        return True
    statement = sql.SQL("select anchors from {} where id = %s").format(
        table(collection, "documents")
    )
    row = await (await connection.execute(statement, (page_id,))).fetchone()
    return row is not None and row[0] == [anchor.model_dump() for anchor in document.anchors]


async def _twin(
    connection: AsyncConnection[Any],
    collection: str,
    document: NormalizedDocument,
    links: Set[str],
) -> StoredPage | None:
    statement = sql.SQL(
        "select id, url from {} where content_hash = %s and site = %s"
        " and title is not distinct from %s and url <> %s and gone_at is null"
        " order by id limit %s"
    ).format(table(collection, "documents"))
    site = site_of(document.url)
    values = (document.content_hash, site, document.title, document.url, _MOST_TWINS)
    cursor = await connection.execute(statement, values)
    for page_id, url in await cursor.fetchall():
        either = {url, document.url}
        stored = await _link_targets(connection, collection, page_id)
        if stored - either == links - either:
            return (await find_pages(connection, collection, [url])).get(url)
    return None


async def _link_targets(
    connection: AsyncConnection[Any], collection: str, page_id: int
) -> set[str]:
    statement = sql.SQL(
        "select distinct url from {} where source_document = %s and origin = 'page'"
    ).format(table(collection, "link_candidates"))
    cursor = await connection.execute(statement, (page_id,))
    return {url for (url,) in await cursor.fetchall()}
