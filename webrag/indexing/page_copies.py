"""Makes the rows of pages into bulk loads, one for each table however many pages; runs none."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from webrag.indexing.node_metadata import FLAGS
from webrag.indexing.page_rows import ChildRow, LinkRow, ParentRow
from webrag.indexing.postings import PostingRow
from webrag.indexing.schema import table
from webrag.indexing.steps import Copy

__all__ = [
    "Embeddings",
    "copy_children",
    "copy_documents",
    "copy_links",
    "copy_parents",
    "copy_postings",
]

Embeddings = Sequence[Any] | NDArray[np.float32]
"""One vector for each of a page's chunks."""

_DOCUMENT_COLUMNS = {
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


def copy_documents(collection: str, rows: Iterable[Mapping[str, Any]]) -> Copy:
    """Load pages; a column that a row does not name stays empty."""
    values = (tuple(map(row.get, _DOCUMENT_COLUMNS)) for row in rows)
    return Copy(table(collection, "documents"), _DOCUMENT_COLUMNS, values)


def copy_parents(collection: str, pages: Iterable[tuple[int, Sequence[ParentRow]]]) -> Copy:
    """Load parents, by the numbers of their pages."""
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
        for page_id, parents in pages
        for row in parents
    )
    return Copy(table(collection, "parents"), _PARENT_COLUMNS, rows)


def copy_children(
    collection: str, pages: Iterable[tuple[int, Sequence[ChildRow], Embeddings]]
) -> Copy:
    """Load searched chunks and their vectors, by the numbers of their pages."""
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
        for page_id, children, embeddings in pages
        for row, embedding in zip(children, embeddings, strict=True)
    )
    return Copy(table(collection, "data_children"), _CHILD_COLUMNS, rows)


def copy_postings(collection: str, pages: Iterable[tuple[int, Sequence[PostingRow]]]) -> Copy:
    """Load packed postings, by the numbers of their pages, which ascend.

    The rows of all pages come ordered by term, as their index wants them.
    """
    by_term: dict[str, list[tuple[str, int, int, bytes]]] = {}
    for page_id, postings in pages:
        for row in postings:
            loaded = (row.term, page_id, row.segment, row.packed)
            # A page's rows come by term: a fifth cheaper than sorting the rows of all.
            by_term.setdefault(row.term, []).append(loaded)
    rows = (row for term in sorted(by_term) for row in by_term[term])
    return Copy(table(collection, "postings"), _POSTING_COLUMNS, rows)


def copy_links(collection: str, pages: Iterable[tuple[int, Sequence[LinkRow]]]) -> Copy:
    """Load links, by the numbers of the pages they are on."""
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
        for page_id, links in pages
        for row in links
    )
    return Copy(table(collection, "link_candidates"), _LINK_COLUMNS, rows)
