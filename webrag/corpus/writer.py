"""Puts pages into a collection, in bulk loads, keeps their earlier texts, and takes pages out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb
from pydantic_core import to_json

from webrag.argument_checks import FORGOTTEN_UNASKED, moment_before
from webrag.corpus.models import LastOutcome, LinkCandidate
from webrag.corpus.queries import find_pages
from webrag.corpus.rows import ChildRow, PageRows, ParentRow
from webrag.corpus.schema import update_schema
from webrag.corpus.tables import CHILDREN, DOCUMENTS, LINKS, PARENTS, POSTINGS, Table
from webrag.errors import InputError
from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import canonical_url, is_file, page_address, site_of
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.versions import Edition
from webrag.postgres.database import Connection, Database

Embeddings = Sequence[Any] | NDArray[np.float32]

_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "jsonb": partial(Jsonb, dumps=to_json),
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
    connection: Connection, pages: Iterable[tuple[int, Sequence[ChildRow], Embeddings]]
) -> None:
    """Load searched chunks and their vectors, by the numbers of their pages."""
    rows = (
        (page_id, HalfVector(embedding), row)
        for page_id, children, embeddings in pages
        for row, embedding in zip(children, embeddings, strict=True)
    )
    await _copy(connection, CHILDREN, ("document", "embedding"), rows)


async def copy_links(
    connection: Connection, pages: Iterable[tuple[int, Sequence[LinkCandidate]]], *, first: int = 0
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
    rows = [
        (term, page_id, segment, packed)
        for page_id, postings in pages
        for term, segment, packed in postings
    ]
    rows.sort(key=itemgetter(0))  # of each page they come by term, and are only merged
    await connection.copy_rows(POSTINGS.name, POSTINGS.loaded, rows)


async def _copy(
    connection: Connection, target: Table, first: tuple[str, ...], rows: Iterable[tuple[Any, ...]]
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


# Its text and its rows, before they are deleted. A page that had gone was replaced then.
_KEEP = """
with kept as (
    insert into {past_pages}
        (url, title, version, stored_at, fetched_at, replaced_at, content_hash, markdown)
    select d.url, d.title, d.version, coalesce(d.stored_at, d.fetched_at), d.fetched_at,
           least(d.gone_at, n.at), d.content_hash, d.markdown
    from unnest(%(urls)s::text[], %(hashes)s::text[], %(times)s::timestamptz[]) n(url, hash, at)
    join {documents} d on d.url = n.url and d.content_hash <> n.hash
    returning id, url, stored_at, replaced_at
), pages as (
    insert into {past_documents} ({page_columns}, markdown, html, stored_at, gone_at, past)
    select {page_values}, '', '', k.stored_at, k.replaced_at, k.id
    from kept k join {documents} d on d.url = k.url
    returning id
), parents as (
    insert into {past_parents} ({parent_columns})
    select {parent_columns} from {parents} where document in (select id from pages)
), children as (
    insert into {past_children} ({child_columns})
    select {child_columns} from {data_children} where document in (select id from pages)
)
insert into {past_postings} ({posting_columns})
select {posting_columns} from {postings} where document in (select id from pages)
"""
_TRIM = """
delete from {past_pages} where id in (
    select id from (
        select id, row_number() over (partition by url order by id desc) as place
        from {past_pages} where url = any(%(urls)s)
    ) p where place > %(most)s
)
"""


# The text stands in past_pages; no search reads the HTML of a page.
_COPIED = [
    name for name in DOCUMENTS.loaded if name not in ("markdown", "html", "stored_at", "gone_at")
]


async def _keep_past(
    connection: Connection, pages: Mapping[str, tuple[str, datetime]], *, most: int
) -> None:
    """Keep the stored texts, so many of each at most, of pages that are about to get others.

    Pages are told by the hash of their new text, and when it was delivered.
    """
    if not most:
        return
    columns = {
        "page_columns": _columns(_COPIED),
        "page_values": _columns(_COPIED, "d"),
        "parent_columns": _columns(PARENTS.loaded),
        "child_columns": _columns(["id", *CHILDREN.loaded]),
        "posting_columns": _columns(POSTINGS.loaded),
    }
    await connection.change(
        _KEEP,
        {
            "urls": list(pages),
            "hashes": [new_hash for new_hash, _ in pages.values()],
            "times": [at for _, at in pages.values()],
        },
        **columns,
    )
    await connection.change(_TRIM, {"urls": list(pages), "most": most})


def _columns(names: Iterable[str], alias: str = "") -> sql.Composed:
    parts = [sql.Identifier(*filter(None, (alias, name))) for name in names]
    return sql.SQL(", ").join(parts)


@dataclass(frozen=True, slots=True)
class EmbeddedPage:
    """A page that only has to be stored; its children's vectors are in their order."""

    rows: PageRows
    embeddings: Embeddings


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
    connection: Connection, pages: Sequence[EmbeddedPage], *, keep_versions: int = 0
) -> list[int]:
    """Put pages in place of their stored versions, if there are any, and give their row numbers.

    One stored under the requested URL is replaced too: the site has moved it. The smallest depth
    and all earlier aliases are kept, of other texts at most `keep_versions`. No two share a URL.
    """
    documents = [page.rows.document for page in pages]
    urls = [{document.url, document.requested_url} for document in documents]
    await lock_pages(connection, set().union(*urls))
    changing = {
        url: (document.content_hash, document.fetched_at)
        for document, own in zip(documents, urls, strict=True)
        for url in own
    }
    await _keep_past(connection, changing, most=keep_versions)
    previous = await _delete_previous(connection, urls)
    ids = await next_page_ids(connection, len(pages))
    numbered = list(zip(ids, pages, strict=True))
    await copy_documents(
        connection,
        (
            _document_row(number, page.rows, known)
            for (number, page), known in zip(numbered, previous, strict=True)
        ),
    )
    await copy_parents(connection, ((number, page.rows.parents) for number, page in numbered))
    await copy_children(
        connection, ((number, page.rows.children, page.embeddings) for number, page in numbered)
    )
    await copy_postings(connection, ((number, page.rows.postings) for number, page in numbered))
    await copy_links(connection, ((number, page.rows.links) for number, page in numbered))
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


class ForgetReport(FrozenModel):
    """Canonical URLs of the pages that were deleted, and named URLs that are not stored."""

    removed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


# The rows of a page that was loaded with others stand on some hundred disk pages. To pack these for
# the log, as the embedded server does, takes 100 ms; to write them as they are takes 3.
_IMAGES_AS_THEY_ARE = """
select set_config('wal_compression', 'off', true) where current_setting('is_superuser') = 'on'
"""


async def _urls_to_forget(
    database: Database,
    *,
    site: str | None = None,
    fetched_before: datetime | None = None,
    below: str = "",
) -> list[str]:
    rows = await database.fetch(
        "select url from {documents} where (%(site)s::text is null or site = %(site)s)"
        " and (%(before)s::timestamptz is null or fetched_at < %(before)s)"
        " and starts_with(url, %(below)s) order by url",
        {"site": site, "before": fetched_before, "below": below},
    )
    return [url for (url,) in rows]


async def forget_page(
    database: Database, url: str, *, fetched_before: datetime | None = None
) -> bool:
    """Delete a page with everything made from it, or what became of one that never came.

    False when neither is there, or the page is not that old.
    """
    statement = (
        "delete from {documents} where url = %(url)s"
        " and (%(before)s::timestamptz is null or fetched_at < %(before)s)"
        " returning requested_url"
    )

    async def work(connection: Connection) -> bool:
        await lock_pages(connection, [url])
        await connection.execute(_IMAGES_AS_THEY_ARE)
        removed = await connection.fetch(statement, {"url": url, "before": fetched_before})
        if not removed:
            return fetched_before is None and await clear_attempts(connection, [url])
        await clear_attempts(connection, {url, *removed[0]})
        await connection.change("delete from {past_pages} where url = %s", (url,))
        return True

    return await database.run(work)


async def forget(
    database: Database,
    urls: str | Sequence[str] | None = None,
    *,
    site: str | None = None,
    older_than: timedelta | None = None,
    confirm: Callable[[Sequence[str]], bool] | bool | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ForgetReport:
    """Delete pages, by URL or by conditions, once they are confirmed; as `WebRAG.forget`."""
    wanted = [urls] if isinstance(urls, str) else list(urls or ())
    wanted = list(dict.fromkeys(page_address(url) for url in wanted))
    if bool(wanted) == (site is not None or older_than is not None):
        raise InputError(
            "Name the pages to forget: URLs, or a site, an age, or both of the latter."
        )
    now = datetime.now(UTC)
    before = None if older_than is None else moment_before("older_than", older_than, now)
    if await update_schema(database) is None:
        return ForgetReport(unknown=tuple(wanted))
    found, unknown = await _pages_to_forget(database, wanted, site, before)
    if not found or not _is_confirmed(confirm, found):
        return ForgetReport(unknown=unknown)
    removed = []
    for done, url in enumerate(found, 1):
        if await forget_page(database, url, fetched_before=before):
            removed.append(url)
        if on_progress is not None:
            on_progress(done, len(found))
    return ForgetReport(removed=tuple(removed), unknown=unknown)


def _is_confirmed(
    confirm: Callable[[Sequence[str]], bool] | bool | None, found: Sequence[str]
) -> bool:
    if callable(confirm):
        return confirm(found)
    if confirm is None and len(found) > FORGOTTEN_UNASKED:
        raise InputError(
            f"This would forget {len(found):,} pages; more than {FORGOTTEN_UNASKED} are forgotten"
            " only when that is confirmed.",
            hint="Pass confirm=True, or a function that is told the URLs and decides.",
        )
    return confirm is not False


async def _pages_to_forget(
    database: Database, urls: Sequence[str], site: str | None, before: datetime | None
) -> tuple[list[str], tuple[str, ...]]:
    if urls:
        known = await database.run(lambda connection: find_pages(connection, urls))
        missing = [url for url in urls if url not in known]
        failed = "select url from {page_outcomes} where url = any(%s)"
        found = dict.fromkeys(page.url for page in known.values())
        found |= {url: None for (url,) in await database.fetch(failed, (missing,))}
        unknown = []
        for url in missing:
            if url not in found:
                files = await _urls_to_forget(database, below=f"{url}/") if is_file(url) else []
                found.update(dict.fromkeys(files))
                unknown += [] if files else [url]
        return list(found), tuple(unknown)
    if site is not None:
        site = site_of(canonical_url(site if "://" in site else f"https://{site}/"))
    return await _urls_to_forget(database, site=site, fetched_before=before), ()
