"""Writes pages, in bulk loads, within a transaction that others open and commit."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb
from pydantic_core import to_jsonable_python

from webrag.corpus.models import LastOutcome, LinkCandidate
from webrag.corpus.past_pages import keep_past
from webrag.corpus.rows import ChildRow, PageRows, ParentRow
from webrag.corpus.tables import CHILDREN, DOCUMENTS, LINKS, PARENTS, POSTINGS, Table
from webrag.ingestion.addresses import site_of
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.versions import Edition
from webrag.postgres.database import Connection

Embeddings = Sequence[Any] | NDArray[np.float32]

_dumps = partial(json.dumps, default=to_jsonable_python)
_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "jsonb": partial(Jsonb, dumps=_dumps),
    "text[]": list,
}


async def copy_documents(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Load pages; a column that a row does not name stays empty."""
    columns = DOCUMENTS.loaded
    written = _writer(columns)
    values = (written(map(row.get, columns)) for row in rows)
    await connection.copy_rows(DOCUMENTS.name, columns, values)


async def copy_parents(
    connection: Connection, pages: Iterable[tuple[int, Sequence[ParentRow]]]
) -> None:
    """Load parents, by the numbers of their pages."""
    rows = ((page_id, row) for page_id, own in pages for row in own)
    await _copy(connection, PARENTS, ("document",), rows)


async def copy_children(
    connection: Connection,
    pages: Iterable[tuple[int, Sequence[ChildRow], Embeddings]],
) -> None:
    """Load searched chunks and their vectors, by the numbers of their pages."""
    rows = (
        (page_id, HalfVector(embedding), row)
        for page_id, children, embeddings in pages
        for row, embedding in zip(children, embeddings, strict=True)
    )
    await _copy(connection, CHILDREN, ("document", "embedding"), rows)


async def copy_links(
    connection: Connection,
    pages: Iterable[tuple[int, Sequence[LinkCandidate]]],
    *,
    first: int = 0,
) -> None:
    """Load links, by the numbers of the pages they are on, counted from `first` on each."""
    rows = (
        (page_id, ordinal, link)
        for page_id, own in pages
        for ordinal, link in enumerate(own, first)
    )
    await _copy(connection, LINKS, ("source_document", "ordinal"), rows)


async def copy_postings(
    connection: Connection, pages: Iterable[tuple[int, Sequence[tuple[str, int, bytes]]]]
) -> None:
    """Load packed postings by ascending page numbers; the rows of all go in ordered by term."""
    by_term: dict[str, list[tuple[str, int, int, bytes]]] = {}
    for page_id, postings in pages:
        for term, segment, packed in postings:
            # A page's rows come by term: a fifth cheaper than sorting the rows of all.
            by_term.setdefault(term, []).append((term, page_id, segment, packed))
    rows = (row for term in sorted(by_term) for row in by_term[term])
    await connection.copy_rows(POSTINGS.name, POSTINGS.loaded, rows)


async def _copy(
    connection: Connection,
    target: Table,
    first: tuple[str, ...],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    """Load rows: the values of the first columns, and an object that has those of the others."""
    loaded = target.loaded
    own = {name: kind for name, kind in loaded.items() if name not in first}
    read = attrgetter(*(target.renamed.get(name, name) for name in own))
    written = _writer(own)
    columns = {name: loaded[name] for name in first} | own
    values = ((*given, *written(read(row))) for *given, row in rows)
    await connection.copy_rows(target.name, columns, values)


def _writer(columns: Mapping[str, str]) -> Callable[[Iterable[Any]], list[Any]]:
    places = [(at, _WRITTEN[kind]) for at, kind in enumerate(columns.values()) if kind in _WRITTEN]

    def written(values: Iterable[Any]) -> list[Any]:
        found = list(values)
        for at, write in places:
            if found[at] is not None:
                found[at] = write(found[at])
        return found

    return written


_MAX_REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one attempt at a page; a status is of HTTP, a reason of what went wrong."""

    outcome: LastOutcome
    at: datetime
    reason: str | None = None
    status: int | None = None


async def note_attempts(connection: Connection, attempts: Mapping[str, Attempt]) -> None:
    """Remember the attempts at several pages, by URL, each in place of the one before."""
    rows = [
        (url, each.outcome, each.at, each.reason and each.reason[:_MAX_REASON_CHARS], each.status)
        for url, each in sorted(attempts.items())  # in one order, so that nobody deadlocks
    ]
    await connection.change(
        """
            insert into {page_outcomes} (url, outcome, at, reason, status)
            select * from unnest(%s::text[], %s::text[], %s::timestamptz[], %s::text[], %s::int[])
            on conflict (url) do update
            set outcome = excluded.outcome, at = excluded.at, reason = excluded.reason,
                status = excluded.status
            """,
        [list(column) for column in zip(*rows, strict=True)],
    )


async def clear_attempts(connection: Connection, urls: Iterable[str]) -> bool:
    """Forget what came of these URLs, now of another page or of none; False if nothing had."""
    wanted = sorted(set(urls))
    statement = "delete from {page_outcomes} where url = any(%s)"
    return bool(wanted) and await connection.change(statement, (wanted,)) > 0


EmbeddedPage = tuple[PageRows, Embeddings]

_DEEPEST = 2**31 - 1
_LOCK_SEED = 42  # keeps page locks apart from other users' advisory locks on the same text

# Taken from the document as they are, but for those that `_document_row` makes.
_DOCUMENT_FIELDS = DOCUMENTS.loaded.keys() & NormalizedDocument.model_fields.keys()


class _Previous(NamedTuple):
    urls: set[str]
    depth: int
    aliases: set[str]
    stored: dict[str, datetime]


async def lock_pages(connection: Connection, urls: Iterable[str]) -> None:
    """Wait until no other transaction writes these pages; in one order, so nobody deadlocks."""
    keys = [f"{connection.collection}\n{url}" for url in sorted(set(urls))]
    await connection.execute(
        sql.SQL(
            "select pg_advisory_xact_lock(hashtextextended(key, %s)) from unnest(%s::text[]) key"
        ),
        (_LOCK_SEED, keys),
    )


async def write_pages(
    connection: Connection,
    pages: Sequence[EmbeddedPage],
    *,
    keep_versions: int = 0,
) -> list[int]:
    """Put pages in place of their stored versions, if there are any, and give their row numbers.

    One stored under the requested URL is replaced too: the site has moved it. The smallest depth
    and all earlier aliases are kept, of other texts at most `keep_versions`. No two share a URL.
    """
    urls = [{rows.document.url, rows.document.requested_url} for rows, _ in pages]
    await lock_pages(connection, set().union(*urls))
    changing = {
        url: (rows.document.content_hash, rows.document.fetched_at)
        for (rows, _), own in zip(pages, urls, strict=True)
        for url in own
    }
    await keep_past(connection, changing, most=keep_versions)
    previous = await _delete_previous(connection, urls)
    ids = await next_page_ids(connection, len(pages))
    numbered = [(page_id, *page) for page_id, page in zip(ids, pages, strict=True)]
    await copy_documents(
        connection,
        (
            _document_row(page_id, rows, known)
            for (page_id, rows, _), known in zip(numbered, previous, strict=True)
        ),
    )
    await copy_parents(connection, ((each, rows.parents) for each, rows, _ in numbered))
    await copy_children(
        connection, ((each, rows.children, vectors) for each, rows, vectors in numbered)
    )
    await copy_postings(connection, ((each, rows.postings) for each, rows, _ in numbered))
    await copy_links(connection, ((each, rows.links) for each, rows, _ in numbered))
    documents = [rows.document for rows, _ in pages]
    await clear_attempts(connection, set().union(*urls) - {document.url for document in documents})
    attempts = {
        document.url: Attempt(
            "updated" if document.url in known.urls else "indexed",
            document.fetched_at,
            status=document.status,
        )
        for document, known in zip(documents, previous, strict=True)
    }
    await note_attempts(connection, attempts)
    return ids


async def next_page_ids(connection: Connection, count: int) -> list[int]:
    """Give ascending row numbers for pages to load; the table is held, so that others can wait."""
    await connection.change("lock table {documents} in row exclusive mode")
    rows = await connection.fetch(
        "select nextval(pg_get_serial_sequence('{documents}', 'id')) from generate_series(1, %s)",
        (count,),
    )
    return [int(page_id) for (page_id,) in rows]


def _document_row(page_id: int, page: PageRows, known: _Previous) -> dict[str, Any]:
    document = page.document
    aliases = known.aliases | {document.url, document.requested_url}
    return {
        **{name: getattr(document, name) for name in _DOCUMENT_FIELDS},
        "id": page_id,
        "document_id": page.document_id,
        "aliases": sorted(aliases - {document.url}),
        "site": site_of(document.url),
        "publication_year": document.published_at and document.published_at.year,
        "depth": min(page.depth, known.depth),
        "token_count": page.token_count,
        "child_count": len(page.children),
        "term_count": page.term_count,
        "anchors": [anchor.model_dump() for anchor in document.anchors],
        "map_marks": [mark.model_dump(mode="json") for mark in document.map_marks],
        # When the site first delivered this text, which later confirmations do not change.
        "stored_at": known.stored.get(document.content_hash, document.fetched_at),
        **edition_row(document.edition),
    }


def edition_row(edition: Edition | None) -> dict[str, Any]:
    """The columns of `documents` that an edition fills."""
    return {
        "version": None if edition is None else edition.version,
        "library": None if edition is None else edition.library,
        "edition": None if edition is None else edition.root,
        "version_given": edition is not None and edition.is_given,
    }


async def _delete_previous(connection: Connection, urls: Sequence[set[str]]) -> list[_Previous]:
    old = await connection.fetch(
        "delete from {documents} where url = any(%s) returning url, depth, aliases,"
        " content_hash, coalesce(stored_at, fetched_at)",
        (sorted(set().union(*urls)),),
    )
    found = []
    for own in urls:
        rows = [row for row in old if row[0] in own]
        known = {alias for url, _, aliases, *_ in rows for alias in (url, *aliases)}
        depth = min((row[1] for row in rows), default=_DEEPEST)
        stored = {content_hash: stored_at for *_, content_hash, stored_at in rows}
        found.append(_Previous({row[0] for row in rows}, depth, known, stored))
    return found
