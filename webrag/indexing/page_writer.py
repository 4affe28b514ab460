"""Writes the rows of one page as steps of a transaction; it opens and commits none."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from webrag.indexing.node_metadata import FLAGS
from webrag.indexing.outcomes import Attempt, clear_attempts, note_attempt
from webrag.indexing.page_rows import ChildRow, LinkRow, PageRows, ParentRow
from webrag.indexing.postings import PostingRow
from webrag.indexing.schema import table
from webrag.indexing.steps import Copy, Execute, Steps
from webrag.ingestion.links import site_of

if TYPE_CHECKING:
    from webrag.indexing.models import LastOutcome

__all__ = [
    "copy_children",
    "copy_parents",
    "copy_postings",
    "insert_document",
    "lock_pages",
    "write_page",
]

_DEEPEST = 2**31 - 1
_LOCK_SEED = 42  # keeps page locks apart from other users' advisory locks on the same text

_DOCUMENT_COLUMNS = (
    "url",
    "requested_url",
    "title",
    "description",
    "language",
    "published_at",
    "modified_at",
    "fetched_at",
    "markdown",
    "html",
    "content_hash",
    "etag",
    "last_modified",
    "status",
    "source",
)
_PARENT_COLUMNS = {
    "id": "uuid",
    "document": "int4",
    "chunk_index": "int4",
    "heading": "text",
    "heading_path": "text[]",
    "text": "text",
    "html": "text",
    "char_start": "int4",
    "char_end": "int4",
    "token_start": "int4",
    "token_end": "int4",
    **dict.fromkeys(FLAGS, "bool"),
    "images": "jsonb",
}
_CHILD_COLUMNS = {
    "text": "varchar",
    "metadata_": "jsonb",
    "node_id": "varchar",
    "embedding": "halfvec",
    "document": "int4",
    "parent_id": "uuid",
    "ordinal": "int4",
    "char_start": "int4",
    "char_end": "int4",
    "text_hash": "bytea",
}
_POSTING_COLUMNS = {"term": "text", "document": "int4", "segment": "int2", "packed": "bytea"}
_LINK_COLUMNS = {
    "source_document": "int4",
    "ordinal": "int4",
    "url": "text",
    "title": "text",
    "description": "text",
    "heading": "text",
    "rel": "text[]",
    "char_start": "int4",
    "char_end": "int4",
}


class _Previous(NamedTuple):
    urls: set[str]
    depth: int
    aliases: set[str]


def lock_pages(collection: str, urls: Iterable[str]) -> Steps[None]:
    """Wait until no other transaction writes these pages; in one order, so nobody deadlocks."""
    keys = [f"{collection}\n{url}" for url in sorted(set(urls))]
    yield Execute(
        sql.SQL(
            "select pg_advisory_xact_lock(hashtextextended(key, %s)) from unnest(%s::text[]) key"
        ),
        (_LOCK_SEED, keys),
    )


def write_page(
    collection: str, rows: PageRows, embeddings: Sequence[Any] | NDArray[np.float32]
) -> Steps[int]:
    """Put a page in place of its stored version, if there is one, and give its row number.

    A page stored under the requested URL is replaced too: the site has moved it. The smallest
    depth and all earlier aliases are kept.
    """
    document = rows.document
    urls = {document.url, document.requested_url}
    yield from lock_pages(collection, urls)
    previous = yield from _delete_previous(collection, urls)
    page_id = yield from insert_document(
        collection,
        {
            **document.model_dump(include=set(_DOCUMENT_COLUMNS)),
            "document_id": rows.document_id,
            "anchors": Jsonb([anchor.model_dump() for anchor in document.anchors]),
            "aliases": sorted((previous.aliases | urls) - {document.url}),
            "site": site_of(document.url),
            "publication_year": _year(document.published_at),
            "depth": min(rows.depth, previous.depth),
            "token_count": rows.token_count,
            "child_count": len(rows.children),
            "term_count": rows.term_count,
        },
    )
    yield copy_parents(collection, page_id, rows.parents)
    yield copy_children(collection, page_id, rows.children, embeddings)
    yield copy_postings(collection, page_id, rows.postings)
    yield _copy_links(collection, page_id, rows.links)
    outcome: LastOutcome = "updated" if document.url in previous.urls else "indexed"
    yield from clear_attempts(collection, urls - {document.url})
    yield from note_attempt(
        collection, document.url, Attempt(outcome, document.fetched_at, status=document.status)
    )
    return page_id


def insert_document(collection: str, values: dict[str, Any]) -> Steps[int]:
    """Insert a row into `documents` and give its number."""
    rows = yield Execute(
        sql.SQL("insert into {} ({}) values ({}) returning id").format(
            table(collection, "documents"),
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join(map(sql.Placeholder, values)),
        ),
        values,
    )
    return int(rows[0][0])


def copy_parents(collection: str, page_id: int, parents: Sequence[ParentRow]) -> Copy:
    """Load parents of a page."""
    rows = (
        (
            row.id,
            page_id,
            row.chunk_index,
            row.heading,
            row.heading_path,
            row.text,
            row.html,
            row.char_start,
            row.char_end,
            row.token_start,
            row.token_end,
            *(row.flags[flag] for flag in FLAGS),
            Jsonb(row.images),
        )
        for row in parents
    )
    return Copy(table(collection, "parents"), _PARENT_COLUMNS, rows)


def copy_children(
    collection: str,
    page_id: int,
    children: Sequence[ChildRow],
    embeddings: Sequence[Any] | NDArray[np.float32],
) -> Copy:
    """Load searched chunks of a page; `embeddings` has one row per chunk."""
    rows = (
        (
            row.text,
            Jsonb(row.metadata),
            row.node_id,
            HalfVector(embedding),
            page_id,
            row.parent_id,
            row.ordinal,
            row.char_start,
            row.char_end,
            row.text_hash,
        )
        for row, embedding in zip(children, embeddings, strict=True)
    )
    return Copy(table(collection, "data_children"), _CHILD_COLUMNS, rows)


def copy_postings(collection: str, page_id: int, postings: Sequence[PostingRow]) -> Copy:
    """Load the packed postings of a page; they come ordered by term, which the index likes."""
    rows = ((row.term, page_id, row.segment, row.packed) for row in postings)
    return Copy(table(collection, "postings"), _POSTING_COLUMNS, rows)


def _copy_links(collection: str, page_id: int, links: Sequence[LinkRow]) -> Copy:
    rows = (
        (
            page_id,
            row.ordinal,
            row.url,
            row.title,
            row.description,
            row.heading,
            row.rel,
            row.char_start,
            row.char_end,
        )
        for row in links
    )
    return Copy(table(collection, "link_candidates"), _LINK_COLUMNS, rows)


def _delete_previous(collection: str, urls: set[str]) -> Steps[_Previous]:
    old = yield Execute(
        sql.SQL("delete from {} where url = any(%s) returning url, depth, aliases").format(
            table(collection, "documents")
        ),
        (sorted(urls),),
    )
    known = {alias for url, _, aliases in old for alias in (url, *aliases)}
    depth = min((depth for _, depth, _ in old), default=_DEEPEST)
    return _Previous({url for url, _, _ in old}, depth, known)


def _year(published_at: datetime | None) -> int | None:
    return published_at.year if published_at is not None else None
