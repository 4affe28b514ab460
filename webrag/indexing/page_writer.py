"""Writes the rows of pages as steps of a transaction; it opens and commits none."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import sql
from psycopg.types.json import Jsonb

from webrag.indexing.outcomes import Attempt, clear_attempts, note_attempts
from webrag.indexing.page_copies import (
    Embeddings,
    copy_children,
    copy_documents,
    copy_links,
    copy_parents,
    copy_postings,
)
from webrag.indexing.page_rows import PageRows
from webrag.indexing.schema import table
from webrag.indexing.steps import Execute, Rows, Steps
from webrag.ingestion.links import site_of
from webrag.ingestion.models import NormalizedDocument

if TYPE_CHECKING:
    from webrag.indexing.models import LastOutcome

__all__ = ["EmbeddedPage", "lock_pages", "next_page_ids", "write_pages"]

EmbeddedPage = tuple[PageRows, Embeddings]
"""A page, and one vector for each of its chunks."""

_DEEPEST = 2**31 - 1
_LOCK_SEED = 42  # keeps page locks apart from other users' advisory locks on the same text

# Taken from the document as they are.
_DOCUMENT_FIELDS = (
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


def write_pages(collection: str, pages: Sequence[EmbeddedPage]) -> Steps[list[int]]:
    """Put pages in place of their stored versions, if there are any, and give their row numbers.

    A page stored under the requested URL is replaced too: the site has moved it. The smallest
    depth and all earlier aliases are kept. No two of the pages have a URL in common.
    """
    urls = [{rows.document.url, rows.document.requested_url} for rows, _ in pages]
    yield from lock_pages(collection, set().union(*urls))
    previous = yield from _delete_previous(collection, urls)
    ids = yield from next_page_ids(collection, len(pages))
    numbered = [(page_id, *page) for page_id, page in zip(ids, pages, strict=True)]
    yield copy_documents(
        collection,
        (
            _document_row(page_id, rows, known)
            for (page_id, rows, _), known in zip(numbered, previous, strict=True)
        ),
    )
    yield copy_parents(collection, ((each, rows.parents) for each, rows, _ in numbered))
    yield copy_children(
        collection, ((each, rows.children, vectors) for each, rows, vectors in numbered)
    )
    yield copy_postings(collection, ((each, rows.postings) for each, rows, _ in numbered))
    yield copy_links(collection, ((each, rows.links) for each, rows, _ in numbered))
    documents = [rows.document for rows, _ in pages]
    yield from clear_attempts(
        collection, set().union(*urls) - {document.url for document in documents}
    )
    attempts = {
        document.url: _attempt(document, is_known=document.url in known.urls)
        for document, known in zip(documents, previous, strict=True)
    }
    yield from note_attempts(collection, attempts)
    return ids


def next_page_ids(collection: str, count: int) -> Steps[list[int]]:
    """Give row numbers for pages that are about to be loaded, in ascending order."""
    rows = yield Execute(
        sql.SQL("select nextval(pg_get_serial_sequence(%s, 'id')) from generate_series(1, %s)"),
        (table(collection, "documents").as_string(), count),
    )
    return [int(page_id) for (page_id,) in rows]


def _document_row(page_id: int, page: PageRows, known: _Previous) -> dict[str, Any]:
    document = page.document
    aliases = known.aliases | {document.url, document.requested_url}
    return {
        "id": page_id,
        "document_id": page.document_id,
        "aliases": sorted(aliases - {document.url}),
        "site": site_of(document.url),
        "publication_year": _year(document.published_at),
        "depth": min(page.depth, known.depth),
        "token_count": page.token_count,
        "child_count": len(page.children),
        "term_count": page.term_count,
        "anchors": Jsonb([anchor.model_dump() for anchor in document.anchors]),
        **{name: getattr(document, name) for name in _DOCUMENT_FIELDS},
    }


def _attempt(document: NormalizedDocument, *, is_known: bool) -> Attempt:
    outcome: LastOutcome = "updated" if is_known else "indexed"
    return Attempt(outcome, document.fetched_at, status=document.status)


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
