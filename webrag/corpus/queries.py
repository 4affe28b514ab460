"""The reads of the corpus as SQL, each over a connection it is given; it opens none."""

from collections.abc import Collection, Sequence, Set
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection, sql
from psycopg.rows import class_row, dict_row

from webrag.corpus.models import FailedPage, LinkCandidate, PageListing, PageStatus, StoredPage
from webrag.corpus.schema import table
from webrag.ingestion.addresses import site_of
from webrag.ingestion.models import NormalizedDocument

_PAGE = """
    d.id as page_id, d.document_id::text, d.url, d.requested_url, d.title, d.fetched_at,
    d.content_hash, d.etag, d.last_modified, d.depth, d.child_count as chunk_count,
    d.token_count, d.gone_at, d.source, d.with_login,
    case when d.version is not null then jsonb_build_object('version', d.version,
        'library', d.library, 'root', d.edition, 'is_given', d.version_given) end as edition,
    coalesce(d.stored_at, d.fetched_at) as stored_at
"""


async def find_pages(
    connection: AsyncConnection[Any], collection: str, urls: Sequence[str]
) -> dict[str, StoredPage]:
    """Give the page each URL stands for; a canonical URL wins over an alias."""
    statement = sql.SQL(
        f"""
        select asked, page.* from unnest(%s::text[]) asked cross join lateral (
            select {_PAGE} from {{documents}} d
            where d.url = asked or d.aliases @> array[asked]
            order by d.url = asked desc, d.fetched_at desc limit 1
        ) page
        """
    ).format(documents=table(collection, "documents"))
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, (list(urls),))
        found = await cursor.fetchall()
    return {row.pop("asked"): StoredPage(**row) for row in found}


async def read_pages(
    connection: AsyncConnection[Any], collection: str, page_ids: Sequence[int]
) -> list[StoredPage]:
    """Give pages by their row numbers, in the order asked for."""
    statement = sql.SQL(
        f"select {_PAGE} from {{}} d where d.id = any(%(ids)s)"
        " order by array_position(%(ids)s, d.id)"
    ).format(table(collection, "documents"))
    async with connection.cursor(row_factory=class_row(StoredPage)) as cursor:
        await cursor.execute(statement, {"ids": list(page_ids)})
        return await cursor.fetchall()


async def read_embeddings(
    connection: AsyncConnection[Any], collection: str, text_hashes: Sequence[bytes]
) -> dict[bytes, NDArray[np.float32]]:
    """Give stored embeddings of texts with these hashes, whatever page they are on."""
    statement = sql.SQL(
        "select distinct on (text_hash) text_hash, embedding from {}"
        " where text_hash = any(%s) and embedding is not null"
    ).format(table(collection, "data_children"))
    cursor = await connection.execute(statement, (list(text_hashes),))
    return {
        bytes(text_hash): embedding.to_numpy().astype(np.float32)
        for text_hash, embedding in await cursor.fetchall()
    }


async def read_links(
    connection: AsyncConnection[Any], collection: str, page_ids: Sequence[int]
) -> list[LinkCandidate]:
    """Give the links of pages, pages in the order asked for, links in page order, mapped ones last.

    A mapped link whose target the page links to itself is among them.
    """
    statement = sql.SQL(
        """
        select d.url as source_url, d.id as source_page_id, l.url, l.title, l.description,
               l.heading, l.rel, l.char_start, l.char_end, d.depth as source_depth, l.origin
        from {links} l join {documents} d on d.id = l.source_document
        where l.source_document = any(%(ids)s)
        order by array_position(%(ids)s, l.source_document), l.ordinal
        """
    ).format(links=table(collection, "link_candidates"), documents=table(collection, "documents"))
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, {"ids": list(page_ids)})
        return [LinkCandidate(**row) for row in await cursor.fetchall()]


async def read_counts(
    connection: AsyncConnection[Any], collection: str, page_id: int | None
) -> dict[str, int]:
    """Give documents, gone, chunks, tokens and links, of everything or of one page."""
    statement = sql.SQL(
        """
        select count(*) filter (where gone_at is null) as documents,
               count(*) filter (where gone_at is not null) as gone,
               coalesce(sum(child_count) filter (where gone_at is null), 0)::bigint as chunks,
               coalesce(sum(token_count) filter (where gone_at is null), 0)::bigint as tokens,
               (select count(*) from {links}
                where %(id)s::int is null or source_document = %(id)s) as links
        from {documents} where %(id)s::int is null or id = %(id)s
        """
    ).format(links=table(collection, "link_candidates"), documents=table(collection, "documents"))
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, {"id": page_id})
        counts = await cursor.fetchone()
    assert counts is not None
    return counts


_LISTED: Final = """
    d.url, d.title, d.child_count as chunk_count, d.token_count, d.fetched_at, d.depth,
    d.gone_at, d.source, d.with_login, o.at as checked_at, o.reason,
    coalesce(o.outcome, case when gone_at is null then 'indexed' else 'gone' end) as outcome
"""
_PORTION: Final = """
    where (%(site)s::text is null or d.site = %(site)s) and (
        position(%(contains)s in lower(d.url)) > 0
        or position(%(contains)s in lower(coalesce(d.title, ''))) > 0
    )
"""


async def read_listing(
    connection: AsyncConnection[Any], collection: str, page_id: int | None
) -> tuple[PageStatus, ...]:
    """Give one line per page, most recently fetched first, of everything or of one page."""
    statement = sql.SQL(
        f"""
        select {_LISTED}
        from {{documents}} d left join {{outcomes}} o on o.url = d.url
        where %(id)s::int is null or d.id = %(id)s order by d.fetched_at desc, d.id desc
        """
    ).format(documents=table(collection, "documents"), outcomes=table(collection, "page_outcomes"))
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, {"id": page_id})
        return tuple(PageStatus(**row) for row in await cursor.fetchall())


async def read_portion(
    connection: AsyncConnection[Any],
    collection: str,
    *,
    contains: str,
    site: str | None,
    limit: int,
    offset: int,
) -> PageListing:
    """Give some pages whose URL or title holds a text, most recently fetched first."""
    names = {
        "documents": table(collection, "documents"),
        "outcomes": table(collection, "page_outcomes"),
    }
    values = {"contains": contains.lower(), "site": site, "limit": limit, "offset": offset}
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            sql.SQL(f"select count(*) as total from {{documents}} d {_PORTION}").format(**names),
            values,
        )
        total = (await cursor.fetchone() or {"total": 0})["total"]
        statement = (
            f"select {_LISTED} from {{documents}} d left join {{outcomes}} o on o.url = d.url"
            f" {_PORTION} order by d.fetched_at desc, d.id desc limit %(limit)s offset %(offset)s"
        )
        await cursor.execute(sql.SQL(statement).format(**names), values)
        pages = tuple(PageStatus(**row) for row in await cursor.fetchall())
    return PageListing(pages=pages, total=total)


async def read_work(connection: AsyncConnection[Any], collection: str) -> dict[str, int]:
    """Numbers of jobs to do, and of sites visited again and again: all, due, overdue, failing."""
    statement = sql.SQL(
        """
        select (select count(*) from {jobs} where ended_at is null) as jobs,
          count(*) as schedules,
          count(*) filter (where next_at <= now()) as schedules_due,
          count(*) filter (where next_at <= now() - interval '1 h') as schedules_overdue,
          count(*) filter (where failures > 0) as schedules_failing
        from {schedules}
        """
    ).format(jobs=table(collection, "jobs"), schedules=table(collection, "schedules"))
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement)
        return dict(await cursor.fetchone() or {})


async def read_outcomes(
    connection: AsyncConnection[Any], collection: str, url: str | None
) -> dict[str, int]:
    """Give the number of pages by what the last attempt came to, of everything or of one URL."""
    statement = sql.SQL(
        """
        select outcome, count(*) from (
            select coalesce(o.outcome, case when d.gone_at is null then 'indexed' else 'gone' end)
                   as outcome
            from {documents} d full join {outcomes} o on o.url = d.url
            where %(url)s::text is null or coalesce(d.url, o.url) = %(url)s
        ) pages group by outcome order by outcome
        """
    ).format(documents=table(collection, "documents"), outcomes=table(collection, "page_outcomes"))
    cursor = await connection.execute(statement, {"url": url})
    return dict(await cursor.fetchall())


async def read_failures(
    connection: AsyncConnection[Any], collection: str, url: str | None, limit: int | None = None
) -> tuple[FailedPage, ...]:
    """Give the URLs nothing is stored for, latest attempt first, of everything or of one URL."""
    statement = sql.SQL(
        """
        select o.url, coalesce(o.reason, '') as reason, o.at as checked_at, o.status
        from {outcomes} o
        where (%(url)s::text is null or o.url = %(url)s)
          and not exists (select from {documents} d where d.url = o.url)
        order by o.at desc, o.url limit %(limit)s
        """
    ).format(documents=table(collection, "documents"), outcomes=table(collection, "page_outcomes"))
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, {"url": url, "limit": limit})
        return tuple(FailedPage(**row) for row in await cursor.fetchall())


_DEAD_FOR: Final = timedelta(days=1)
_AWAY_FOR: Final = timedelta(minutes=15)
# Answers that say nothing of the page itself.
_PASSING_STATUSES: Final = (408, 425, 429)


async def read_dead(
    connection: AsyncConnection[Any], collection: str, urls: Collection[str], now: datetime
) -> frozenset[str]:
    """Give those of some URLs whose last attempt failed, for as long as that is believed."""
    statement = sql.SQL(
        """
        select url from {} where url = any(%(urls)s) and outcome in ('failed', 'gone')
          and at > case when status < 500 and status <> all(%(passing)s)
                        then %(dead)s::timestamptz else %(away)s::timestamptz end
        """
    ).format(table(collection, "page_outcomes"))
    values = {
        "urls": list(urls),
        "passing": list(_PASSING_STATUSES),
        "dead": now - _DEAD_FOR,
        "away": now - _AWAY_FOR,
    }
    cursor = await connection.execute(statement, values)
    return frozenset([url for (url,) in await cursor.fetchall()])


async def read_urls(
    connection: AsyncConnection[Any],
    collection: str,
    sites: Sequence[str] | None,
    limit: int | None,
) -> tuple[list[str], int]:
    """Give URLs of retrievable pages, the smallest depth first, and how many there are."""
    statement = sql.SQL(
        """
        select url, count(*) over () from {}
        where (%(sites)s::text[] is null or site = any(%(sites)s)) and gone_at is null
        order by depth, id limit %(limit)s
        """
    ).format(table(collection, "documents"))
    values = {"sites": None if sites is None else list(sites), "limit": limit}
    cursor = await connection.execute(statement, values)
    rows = await cursor.fetchall()
    return [row[0] for row in rows], rows[0][1] if rows else 0


async def read_below(connection: AsyncConnection[Any], collection: str, folder: str) -> list[str]:
    """Give URLs of the pages whose address begins with a folder's, and that have not gone."""
    statement = sql.SQL(
        "select url from {} where starts_with(url, %s) and gone_at is null order by url"
    ).format(table(collection, "documents"))
    return [url for (url,) in await (await connection.execute(statement, (folder,))).fetchall()]


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
    connection: AsyncConnection[Any], collection: str, document: NormalizedDocument
) -> KnownVersions:
    """Find what is stored of a page, over a connection that sees one state of the corpus.

    Two pages are the same when text, title and link targets are: versions of a manual can share
    text and still lead elsewhere.
    """
    links = {link.url for link in document.links} - {document.url}
    previous = (await find_pages(connection, collection, [document.url])).get(document.url)
    if previous is None or previous.url != document.url:
        return KnownVersions(None, await _twin(connection, collection, document, links))
    known = (previous.content_hash, previous.title, previous.edition, previous.with_login)
    now = (document.content_hash, document.title, document.edition, document.with_login)
    if known != now:
        return KnownVersions(previous, None)
    is_same = links == await _link_targets(connection, collection, previous.page_id)
    is_same = is_same and await _has_places(connection, collection, previous.page_id, document)
    return KnownVersions(previous, previous if is_same else None)


async def read_chunks(
    connection: AsyncConnection[Any],
    collection: str,
    page_id: int | None,
    text_hashes: Sequence[bytes],
) -> KnownChunks:
    """Find chunks that a new version of a page has in common with the corpus and the page."""
    embeddings = await read_embeddings(connection, collection, text_hashes)
    if page_id is None:
        return KnownChunks(embeddings, set())
    statement = sql.SQL("select node_id from {} where document = %s").format(
        table(collection, "data_children")
    )
    cursor = await connection.execute(statement, (page_id,))
    return KnownChunks(embeddings, {node_id for (node_id,) in await cursor.fetchall()})


async def _has_places(
    connection: AsyncConnection[Any], collection: str, page_id: int, document: NormalizedDocument
) -> bool:
    """Whether the stored version has the anchors and marks; those of earlier versions had none."""
    if not (document.anchors or document.map_marks):
        return True
    statement = sql.SQL("select anchors, map_marks from {} where id = %s").format(
        table(collection, "documents")
    )
    row = await (await connection.execute(statement, (page_id,))).fetchone()
    return row == (
        [anchor.model_dump() for anchor in document.anchors],
        [mark.model_dump(mode="json") for mark in document.map_marks],
    )


async def _twin(
    connection: AsyncConnection[Any],
    collection: str,
    document: NormalizedDocument,
    links: Set[str],
) -> StoredPage | None:
    statement = sql.SQL(
        "select id, url from {} where content_hash = %s and site = %s"
        " and title is not distinct from %s and edition is not distinct from %s and url <> %s"
        " and gone_at is null"
        " order by id limit %s"
    ).format(table(collection, "documents"))
    site = site_of(document.url)
    edition = None if document.edition is None else document.edition.root
    values = (
        *(document.content_hash, site, document.title, edition, document.url),
        _MOST_TWINS,
    )
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
