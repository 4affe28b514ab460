"""The stored pages: read in one transaction each, and changed in one each. Does not search."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from webrag.argument_checks import shown_moment
from webrag.corpus import queries
from webrag.corpus.batches import Batches
from webrag.corpus.indexes import finish_interrupted_load, index_deferred
from webrag.corpus.models import (
    CorpusStatus,
    FailedPage,
    Holdings,
    LinkCandidate,
    PageImage,
    PageListing,
    PageName,
    PageStatus,
    PageText,
    PassageText,
    PastPage,
    SiteSize,
    StoredPage,
)
from webrag.corpus.queries import KnownChunks, KnownVersions, read_chunks, read_versions
from webrag.corpus.schema import corpus_embedding
from webrag.corpus.site_index import enriched
from webrag.corpus.writer import (
    Attempt,
    EmbeddedPage,
    clear_attempts,
    edition_row,
    lock_pages,
    note_attempts,
    write_pages,
)
from webrag.errors import ConfigurationError, InputError
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.versions import Edition
from webrag.postgres.database import Connection, Database

_DEAD_FOR: Final = timedelta(days=1)
_AWAY_FOR: Final = timedelta(minutes=15)
# Answers that say nothing of the page itself.
_PASSING_STATUSES: Final = (408, 425, 429)

_MOST_ASKED: Final = 100  # pages of one statement
_CHUNKS_PER_PAGE = 10  # fewer than most documentation has

_COUNTS = """
select count(*) filter (where gone_at is null) as documents,
       count(*) filter (where gone_at is not null) as gone,
       coalesce(sum(child_count) filter (where gone_at is null), 0)::bigint as chunks,
       coalesce(sum(token_count) filter (where gone_at is null), 0)::bigint as tokens,
       (select count(*) from {link_candidates}
        where %(id)s::int is null or source_document = %(id)s) as links
from {documents} where %(id)s::int is null or id = %(id)s
"""

_WORK = """
select (select count(*) from {jobs} where ended_at is null) as jobs,
  count(*) as schedules,
  count(*) filter (where next_at <= now()) as schedules_due,
  count(*) filter (where next_at <= now() - interval '1 h') as schedules_overdue,
  count(*) filter (where failures > 0) as schedules_failing
from {schedules}
"""

_OUTCOMES = """
select outcome, count(*) from (
    select coalesce(o.outcome, case when d.gone_at is null then 'indexed' else 'gone' end)
           as outcome
    from {documents} d full join {page_outcomes} o on o.url = d.url
    where %(url)s::text is null or coalesce(d.url, o.url) = %(url)s
) pages group by outcome order by outcome
"""

_FAILURES = """
select o.url, coalesce(o.reason, '') as reason, o.at as checked_at, o.status
from {page_outcomes} o
where (%(url)s::text is null or o.url = %(url)s)
  and not exists (select from {documents} d where d.url = o.url)
order by o.at desc, o.url
"""

_FROM_LISTED = """
from {documents} d left join {page_outcomes} o on o.url = d.url
where (%(id)s::int is null or d.id = %(id)s)
  and (%(site)s::text is null or d.site = %(site)s)
  and (position(%(contains)s in lower(d.url)) > 0
       or position(%(contains)s in lower(coalesce(d.title, ''))) > 0)
"""
_LISTED = f"""
select d.url, d.title, d.child_count as chunk_count, d.token_count, d.fetched_at, d.depth,
       d.gone_at, d.source, d.with_login, o.at as checked_at, o.reason,
       coalesce(o.outcome, case when gone_at is null then 'indexed' else 'gone' end) as outcome
{_FROM_LISTED} order by d.fetched_at desc, d.id desc limit %(limit)s offset %(offset)s
"""
_EVERY_PAGE = {"id": None, "site": None, "contains": "", "limit": None, "offset": 0}

# What is named may be a folder, or a page by another of its addresses.
_WANTED: Final = """(
    %(urls)s::text[] is null or d.url = any(%(urls)s) or d.aliases && %(urls)s::text[]
    or exists (select from unnest(%(urls)s::text[]) n(url)
               where d.url !~ '^https?:' and starts_with(d.url, rtrim(n.url, '/') || '/'))
)"""
_TEXTS: Final = f"""
with times as (
    select url, coalesce(stored_at, fetched_at) as since, gone_at as until from {{documents}} d
    where {_WANTED}
    union all
    select url, stored_at, gone_at from {{past_documents}} d where {_WANTED}
), texts as (
    select url, since, since <= %(moment)s and (until is null or until > %(moment)s) as is_held,
           since > %(moment)s as is_later
    from times
)"""
_HOLDINGS: Final = f"""{_TEXTS}, pages as (
    select bool_or(is_held) as is_held, bool_or(is_later) as is_later from texts group by url
)
select count(*) filter (where is_held), count(*) filter (where is_later and not is_held),
       array(select distinct since from texts order by since limit 3)
from pages
"""


class Corpus:
    """The pages of one collection; safe to share between tasks.

    A page is known by its canonical URL and by every URL that led to it. Readers see its old
    version or its new one, never a mixture; of texts that change `keep_versions` are kept. Writing
    fails with ConfigurationError once another model than `embedding` has been used.
    """

    def __init__(
        self,
        database: Database,
        *,
        embedding: tuple[str, int] | None = None,
        keep_versions: int = 0,
    ) -> None:
        self._database = database
        self._collection = database.config.collection
        self._keep_versions = keep_versions
        self._embedding = embedding
        self._is_loading = False
        self._asked = Batches(self._stored, most=_MOST_ASKED)

    async def page(self, url: str) -> StoredPage | None:
        """Give the page a canonical or requested URL stands for, None when it is not stored."""
        return await self._asked.result(url)

    async def _stored(self, urls: Sequence[str]) -> list[StoredPage | None]:
        found = await self.pages(urls)
        return [found.get(url) for url in urls]

    async def pages(self, urls: Sequence[str]) -> dict[str, StoredPage]:
        """Give stored pages by the URL they were asked for; unknown URLs are absent."""
        return await self._database.run(lambda connection: queries.find_pages(connection, urls))

    async def markdown(self, url: str) -> str | None:
        """Give the text all offsets of a page refer to, None when the page is not stored."""
        page = await self.page(url)
        text = None if page is None else await self.page_text(UUID(page.document_id))
        return None if text is None else text.markdown

    async def page_text(self, document_id: UUID) -> PageText | None:
        """Give a page by its stable id, None when it is not stored."""
        statement = """
            select document_id, url, title, markdown, fetched_at, gone_at, with_login
            from {documents} where document_id = %s
            """
        found = await self._database.fetch_as(PageText, statement, (document_id,))
        return found[0] if found else None

    async def passage_text(self, passage_id: UUID) -> PassageText | None:
        """Give a passage by its stable id, None when it is not stored."""
        statement = """
            select p.id, d.document_id, d.url, d.title, p.heading, p.text, p.char_start, p.char_end,
                   d.fetched_at, d.gone_at, d.with_login
            from {parents} p join {documents} d on d.id = p.document where p.id = %s
            """
        found = await self._database.fetch_as(PassageText, statement, (passage_id,))
        return found[0] if found else None

    async def page_images(self, document_id: UUID) -> list[PageImage]:
        """Give the images of a page in their order, none where the page is not stored."""
        statement = """
            select distinct (image ->> 'position')::int as position,
                   coalesce(image ->> 'alt', '') as alt,
                   coalesce(image ->> 'caption', '') as caption
            from {parents} p join {documents} d on d.id = p.document,
                 jsonb_array_elements(p.images) image
            where d.document_id = %s order by 1, 2, 3
            """
        return await self._database.fetch_as(PageImage, statement, (document_id,))

    async def page_names(self, contains: str, limit: int) -> list[PageName]:
        """Give the retrievable pages last fetched whose URL or title holds some words."""
        statement = """
            select document_id, url, title from {documents}
            where gone_at is null and (
                position(lower(%(words)s) in lower(url)) > 0
                or position(lower(%(words)s) in lower(coalesce(title, ''))) > 0
            )
            order by fetched_at desc, id desc limit %(limit)s
            """
        values = {"words": contains, "limit": limit}
        return await self._database.fetch_as(PageName, statement, values)

    async def sites(self) -> list[SiteSize]:
        """Give what is stored of each host, those with most pages first."""
        return await self._database.run(queries.site_sizes)

    async def years(self) -> dict[int, int]:
        """Give the number of retrievable pages by year of publication, the latest first."""
        statement = """
            select publication_year, count(*) from {documents}
            where gone_at is null and publication_year is not null
            group by publication_year order by publication_year desc
            """
        return dict(await self._database.fetch(statement))

    async def known_versions(self, documents: Sequence[NormalizedDocument]) -> list[KnownVersions]:
        """Tell which stored pages those that have arrived replace, and which they equal."""
        return await self._database.run(
            lambda connection: read_versions(connection, documents), snapshot=True
        )

    async def markdown_as_of(self, url: str, moment: datetime) -> str | None:
        """Give the text of a page that was stored at a moment, None when the page is not stored."""
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        page = await self.page(url)
        if page is None:
            return None
        first = page.stored_at or page.fetched_at
        if first <= moment:
            return await self.markdown(page.url)
        for past in await self.past(page.url):
            if past.stored_at <= moment < past.replaced_at:
                return past.markdown
            first = min(first, past.stored_at)
        when = "before" if moment < first else shown_moment(moment) + ", but from"
        raise InputError(
            f"No text of {page.url} from {when} {shown_moment(first)} was kept.",
            hint="WEBRAG_KEEP_VERSIONS says how many earlier texts of a page are kept.",
        )

    async def holdings(self, moment: datetime, urls: Sequence[str] | None = None) -> Holdings:
        """Give what is held as of a moment, of everything or of some pages and what lies below."""
        values = {"moment": moment, "urls": None if urls is None else list(urls)}
        (found,) = await self._database.fetch(_HOLDINGS, values)
        return Holdings(*found)

    async def urls_as_of(self, moment: datetime, urls: Sequence[str]) -> list[str]:
        """Give the pages that some addresses stood for at a moment, as `holdings` counts them."""
        statement = f"{_TEXTS} select distinct url from texts where is_held order by url"
        rows = await self._database.fetch(statement, {"moment": moment, "urls": list(urls)})
        return [url for (url,) in rows]

    async def past(self, url: str) -> list[PastPage]:
        """Give the kept earlier texts of a page by its canonical URL, the latest first."""
        statement = (
            "select url, title, version, stored_at, fetched_at, replaced_at, markdown"
            " from {past_pages} where url = %s order by id desc"
        )
        return await self._database.fetch_as(PastPage, statement, (url,))

    async def links(self, urls: Sequence[str]) -> list[LinkCandidate]:
        """Give the links of stored pages, in the order asked for and on the page, `enriched`."""
        statement = """
            select d.url as source_url, l.url, l.title, l.description, l.heading, l.rel,
                   l.char_start, l.char_end, d.depth as source_depth, l.origin
            from {link_candidates} l join {documents} d on d.id = l.source_document
            where l.source_document = any(%(ids)s)
            order by array_position(%(ids)s, l.source_document), l.ordinal
            """

        async def work(connection: Connection) -> list[LinkCandidate]:
            pages = await queries.find_pages(connection, urls)
            ids = list(dict.fromkeys(pages[url].page_id for url in urls if url in pages))
            return enriched(await connection.fetch_as(LinkCandidate, statement, {"ids": ids}))

        return await self._database.run(work, snapshot=True)

    async def link_places(
        self, passages: Sequence[tuple[str, int, int]]
    ) -> list[list[tuple[int, int]]]:
        """Give, for each of some passages, start and end of the links of its page that reach in.

        A passage is told by its page's canonical URL, where it starts and where it ends there.
        """
        statement = """
            select k.place, l.char_start, l.char_end
            from unnest(%s::text[], %s::int[], %s::int[]) with ordinality
                k(url, char_start, char_end, place)
            join {documents} d on d.url = k.url
            join {link_candidates} l on l.source_document = d.id
            where l.char_start < k.char_end and l.char_end > k.char_start
            """
        if not passages:
            return []
        columns = [list(column) for column in zip(*passages, strict=True)]
        found: list[list[tuple[int, int]]] = [[] for _ in passages]
        for place, start, end in await self._database.fetch(statement, columns):
            found[place - 1].append((start, end))
        return found

    async def known_dead(self, urls: Collection[str], now: datetime) -> frozenset[str]:
        """Give those of some URLs that lately could not be obtained, and would not be now.

        What the site said of a page holds for a day, for every question and caller; what may pass,
        such as no answer or a server's failure, for a quarter of an hour.
        """
        values = {
            "urls": list(urls),
            "passing": list(_PASSING_STATUSES),
            "dead": now - _DEAD_FOR,
            "away": now - _AWAY_FOR,
        }
        statement = """
            select url from {page_outcomes}
            where url = any(%(urls)s) and outcome in ('failed', 'gone')
              and at > case when status < 500 and status <> all(%(passing)s)
                            then %(dead)s::timestamptz else %(away)s::timestamptz end
            """
        return frozenset(url for (url,) in await self._database.fetch(statement, values))

    async def urls_in_scope(
        self, sites: Sequence[str] | None, *, limit: int | None = None
    ) -> tuple[list[str], int]:
        """Give URLs of retrievable pages, the nearest to a named page first, and their number."""
        rows = await self._database.fetch(
            """
            select url, count(*) over () from {documents}
            where (%(sites)s::text[] is null or site = any(%(sites)s)) and gone_at is null
            order by depth, id limit %(limit)s
            """,
            {"sites": None if sites is None else list(sites), "limit": limit},
        )
        return [row[0] for row in rows], rows[0][1] if rows else 0

    async def page_counts(self, sites: Sequence[str]) -> dict[str, int]:
        """Give the number of retrievable pages of each of some sites that has any."""
        statement = """
            select site, count(*) from {documents}
            where site = any(%s) and gone_at is null group by site
            """
        return dict(await self._database.fetch(statement, (list(sites),)))

    async def urls_below(self, folder: str) -> list[str]:
        """Give URLs of retrievable pages whose canonical address begins with `folder`."""
        rows = await self._database.fetch(
            "select url from {documents} where starts_with(url, %s) and gone_at is null"
            " order by url",
            (folder,),
        )
        return [url for (url,) in rows]

    async def list_pages(
        self, contains: str = "", *, site: str | None = None, limit: int, offset: int = 0
    ) -> PageListing:
        """Give some of the pages, most recently fetched first, also those that are gone."""
        asked = {"contains": contains.lower(), "site": site, "limit": limit, "offset": offset}
        values = _EVERY_PAGE | asked

        async def work(connection: Connection) -> PageListing:
            ((total,),) = await connection.fetch(f"select count(*) {_FROM_LISTED}", values)
            pages = await connection.fetch_as(PageStatus, _LISTED, values)
            return PageListing(pages=tuple(pages), total=total)

        return await self._database.run(work, snapshot=True)

    async def status(self, url: str | None = None, *, include_urls: bool = True) -> CorpusStatus:
        """Tell what the collection holds, or counts of one page, which may be 0."""

        async def work(connection: Connection) -> dict[str, Any]:
            page_id, asked = None, url
            if url is not None:
                found = await queries.find_pages(connection, [url])
                page_id, asked = (found[url].page_id, found[url].url) if found else (0, url)
            (counts,) = await connection.fetch_as(dict, _COUNTS, {"id": page_id})
            if url is not None:
                every = "select count(*) from {documents} where gone_at is null"
                ((documents,),) = await connection.fetch(every)
                counts["other_documents"] = documents - counts["documents"]
            counts["outcomes"] = dict(await connection.fetch(_OUTCOMES, {"url": asked}))
            failures = await connection.fetch_as(FailedPage, _FAILURES, {"url": asked})
            counts |= {"failed": len(failures), "failures": failures}
            if url is None:
                counts |= (await connection.fetch_as(dict, _WORK))[0]
            if include_urls:
                values = _EVERY_PAGE | {"id": page_id}
                counts["pages"] = await connection.fetch_as(PageStatus, _LISTED, values)
            return counts

        counts = await self._database.run(work, snapshot=True)
        model, dimensions = await corpus_embedding(self._database) or (None, None)
        return CorpusStatus(
            collection=self._collection,
            embedding_model=model,
            embedding_dimensions=dimensions,
            database=self._database.description,
            only_url=url,
            **counts,
        )

    async def replace_pages(self, pages: Sequence[EmbeddedPage]) -> list[StoredPage]:
        """Store pages, of which no two share a URL, in place of previous versions: all or none."""

        async def work(connection: Connection) -> list[StoredPage]:
            ids = await write_pages(connection, pages, keep_versions=self._keep_versions)
            # Only now: the tables are locked, so that the model cannot change any more.
            await self._check_model(connection)
            return await queries.read_pages(connection, ids)

        return await self._database.run(work)

    @asynccontextmanager
    async def index_deferred(self, pages: int) -> AsyncIterator[None]:
        """Load many pages; the vector index, or one left unbuilt, is built at the end."""
        # It keeps a connection, of which there may be few, for as long as it lasts.
        if self._is_loading or self._database.config.pool_max_size == 1:
            yield
            return
        self._is_loading = True
        try:
            async with index_deferred(self._database, pages * _CHUNKS_PER_PAGE) as is_deferred:
                yield
        finally:
            self._is_loading = False
        if not is_deferred:
            await finish_interrupted_load(self._database)

    async def known_chunks(
        self, wanted: Sequence[tuple[int | None, Sequence[bytes]]]
    ) -> list[KnownChunks]:
        """Give what new pages, by their old one's number and text hashes, share with the corpus."""

        async def work(connection: Connection) -> list[KnownChunks]:
            found = await read_chunks(connection, wanted)
            await self._check_model(connection)
            return found

        return await self._database.run(work, autocommit=True)

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
        """Note that the site confirmed the stored version, also of a page marked gone."""
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
        """Take a page out of retrieval, keeping its text; the first time is remembered."""
        await self._update(
            url,
            "gone_at = coalesce(gone_at, %(at)s)",
            attempt=Attempt("gone", at, reason, status),
            at=at,
        )

    async def note_failure(
        self, url: str, at: datetime, *, reason: str, status: int | None = None
    ) -> None:
        """Remember that a page, stored or not, could not be obtained; success clears it."""
        attempt = Attempt("failed", at, reason, status)
        await self._database.run(lambda connection: note_attempts(connection, {url: attempt}))

    async def set_edition(self, url: str, edition: Edition) -> None:
        """Note which version of a library a stored page is about; its text stays as it is."""
        await self._update(
            url,
            "version = %(version)s, library = %(library)s, edition = %(edition)s,"
            " version_given = %(version_given)s",
            **edition_row(edition),
        )

    async def lower_depth(self, url: str, depth: int) -> None:
        """Note that a page is at most this many links away from a named page."""
        await self._update(url, "depth = least(depth, %(depth)s)", depth=depth)

    async def _check_model(self, connection: Connection) -> None:
        if self._embedding is None:
            return
        statement = (
            "select value from {corpus_meta}"
            " where key in ('embedding_model', 'embedding_dimensions') order by key desc"
        )
        if tuple(value for (value,) in await connection.fetch(statement)) != self._embedding:
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
        statement = f"update {{documents}} set {assignments} where url = %(url)s"

        async def work(connection: Connection) -> None:
            await lock_pages(connection, [url])
            updated = await connection.change(statement, {"url": url, **values})
            await clear_attempts(connection, cleared)
            if attempt is not None and updated:
                await note_attempts(connection, {url: attempt})

        await self._database.run(work)
