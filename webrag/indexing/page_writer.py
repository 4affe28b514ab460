"""Writes the rows of one page as steps of a transaction; it opens and commits none."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from webrag.indexing.node_metadata import FLAGS
from webrag.indexing.outcomes import Attempt, clear_attempts, note_attempts
from webrag.indexing.page_rows import ChildRow, LinkRow, PageRows, ParentRow
from webrag.indexing.postings import PostingRow
from webrag.indexing.schema import table
from webrag.indexing.steps import Copy, Execute, Rows, Steps
from webrag.ingestion.links import site_of
from webrag.ingestion.models import NormalizedDocument

if TYPE_CHECKING:
    from webrag.indexing.models import LastOutcome

__all__ = [
    "EmbeddedPage",
    "copy_children",
    "copy_parents",
    "copy_postings",
    "insert_document",
    "lock_pages",
    "write_page",
    "write_pages",
]

EmbeddedPage = tuple[PageRows, Sequence[Any] | NDArray[np.float32]]
"""A page, and one vector for each of its chunks."""

_DEEPEST = 2**31 - 1
_LOCK_SEED = 42  # keeps page locks apart from other users' advisory locks on the same text

_COUNTED_COLUMNS = {
    "id": "int4",
    "document_id": "uuid",
    "aliases": "text[]",
    "site": "text",
    "publication_year": "int4",
    "depth": "int4",
    "token_count": "int4",
    "child_count": "int4",
    "term_count": "int4",
    "anchors": "jsonb",
}
# As the fields of a document are called.
_DOCUMENT_COLUMNS = {
    "url": "text",
    "requested_url": "text",
    "title": "text",
    "description": "text",
    "language": "text",
    "published_at": "timestamptz",
    "modified_at": "timestamptz",
    "fetched_at": "timestamptz",
    "markdown": "text",
    "html": "text",
    "content_hash": "text",
    "etag": "text",
    "last_modified": "text",
    "status": "int4",
    "source": "text",
}
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
    (page_id,) = yield from write_pages(collection, [(rows, embeddings)])
    return page_id


def write_pages(collection: str, pages: Sequence[EmbeddedPage]) -> Steps[list[int]]:
    """As `write_page` for several pages, which have no URL in common, and give their numbers."""
    urls = [{rows.document.url, rows.document.requested_url} for rows, _ in pages]
    yield from lock_pages(collection, set().union(*urls))
    previous = yield from _delete_previous(collection, urls)
    ids = yield from _next_ids(collection, len(pages))
    rows_of = [rows for rows, _ in pages]
    yield _copy_documents(collection, list(zip(ids, rows_of, previous, strict=True)))
    yield _joined(
        copy_parents(collection, page_id, rows.parents)
        for page_id, rows in zip(ids, rows_of, strict=True)
    )
    yield _joined(
        copy_children(collection, page_id, rows.children, embeddings)
        for page_id, (rows, embeddings) in zip(ids, pages, strict=True)
    )
    yield _copy_postings_of(collection, list(zip(ids, rows_of, strict=True)))
    yield _joined(
        _copy_links(collection, page_id, rows.links)
        for page_id, rows in zip(ids, rows_of, strict=True)
    )
    documents = [rows.document for rows in rows_of]
    yield from clear_attempts(
        collection, set().union(*urls) - {document.url for document in documents}
    )
    attempts = {
        document.url: _attempt(document, is_known=document.url in known.urls)
        for document, known in zip(documents, previous, strict=True)
    }
    yield from note_attempts(collection, attempts)
    return ids


def _attempt(document: NormalizedDocument, *, is_known: bool) -> Attempt:
    outcome: LastOutcome = "updated" if is_known else "indexed"
    return Attempt(outcome, document.fetched_at, status=document.status)


def _next_ids(collection: str, count: int) -> Steps[list[int]]:
    rows = yield Execute(
        sql.SQL("select nextval(pg_get_serial_sequence(%s, 'id')) from generate_series(1, %s)"),
        (table(collection, "documents").as_string(), count),
    )
    return [int(page_id) for (page_id,) in rows]


def _copy_documents(collection: str, pages: Sequence[tuple[int, PageRows, _Previous]]) -> Copy:
    rows = (
        (
            page_id,
            page.document_id,
            sorted((known.aliases | {document.url, document.requested_url}) - {document.url}),
            site_of(document.url),
            _year(document.published_at),
            min(page.depth, known.depth),
            page.token_count,
            len(page.children),
            page.term_count,
            Jsonb([anchor.model_dump() for anchor in document.anchors]),
            *(getattr(document, name) for name in _DOCUMENT_COLUMNS),
        )
        for page_id, page, known in pages
        for document in [page.document]
    )
    return Copy(table(collection, "documents"), _COUNTED_COLUMNS | _DOCUMENT_COLUMNS, rows)


def _copy_postings_of(collection: str, pages: Sequence[tuple[int, PageRows]]) -> Copy:
    """Postings of all pages by term, as their index wants them."""
    merged = sorted(
        (row.term, page_id, row.segment, row.packed)
        for page_id, rows in pages
        for row in rows.postings
    )
    return Copy(table(collection, "postings"), _POSTING_COLUMNS, merged)


def _joined(copies: Iterable[Copy]) -> Copy:
    """The rows of several loads of one table in a single one."""
    first, *rest = copies
    rows = chain.from_iterable(copy.rows for copy in (first, *rest))
    return Copy(first.table, first.columns, rows)


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


def _delete_previous(collection: str, urls: Sequence[set[str]]) -> Steps[list[_Previous]]:
    """What was stored under the URLs of each page, and is not any more."""
    old = yield Execute(
        sql.SQL("delete from {} where url = any(%s) returning url, depth, aliases").format(
            table(collection, "documents")
        ),
        (sorted(set().union(*urls)),),
    )
    return [_previous([row for row in old if row[0] in own]) for own in urls]


def _previous(old: Rows) -> _Previous:
    known = {alias for url, _, aliases in old for alias in (url, *aliases)}
    depth = min((depth for _, depth, _ in old), default=_DEEPEST)
    return _Previous({url for url, _, _ in old}, depth, known)


def _year(published_at: datetime | None) -> int | None:
    return published_at.year if published_at is not None else None
