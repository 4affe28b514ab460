"""The reads of the corpus as SQL, each over a connection it is given; it opens none."""

from collections.abc import Sequence, Set
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from webrag.corpus.models import SiteSize, StoredPage, StoredVersion
from webrag.ingestion.addresses import FILES, site_of
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.versions import version_order
from webrag.postgres.database import Connection

_PAGE = """
    d.id as page_id, d.document_id::text, d.url, d.requested_url, d.title, d.fetched_at,
    d.content_hash, d.etag, d.last_modified, d.depth, d.child_count as chunk_count,
    d.token_count, d.gone_at, d.source, d.with_login,
    case when d.version is not null then jsonb_build_object('version', d.version,
        'library', d.library, 'root', d.edition, 'is_given', d.version_given) end as edition,
    coalesce(d.stored_at, d.fetched_at) as stored_at
"""


async def find_pages(connection: Connection, urls: Sequence[str]) -> dict[str, StoredPage]:
    """Give the page each URL stands for; a canonical URL wins over an alias."""
    statement = f"""
        select asked, page.* from unnest(%s::text[]) asked cross join lateral (
            select {_PAGE} from {{documents}} d
            where d.url = asked or d.aliases @> array[asked]
            order by d.url = asked desc, d.fetched_at desc limit 1
        ) page
        """
    found = await connection.fetch_as(dict, statement, (list(urls),))
    return {row.pop("asked"): StoredPage(**row) for row in found}


async def read_pages(connection: Connection, page_ids: Sequence[int]) -> list[StoredPage]:
    """Give pages by their row numbers, in the order asked for."""
    statement = (
        f"select {_PAGE} from {{documents}} d where d.id = any(%(ids)s)"
        " order by array_position(%(ids)s, d.id)"
    )
    return await connection.fetch_as(StoredPage, statement, {"ids": list(page_ids)})


_SITES: Final = """
select site, count(*) as documents, coalesce(sum(token_count), 0)::bigint as tokens,
       min(fetched_at) as fetched_at
from {documents} where gone_at is null group by site order by documents desc, site
"""

# From one version to the next along the index, which has a row for each page.
_VERSIONS = """
with recursive versions as (
    (select site, library, edition, version from {documents}
     where version is not null and gone_at is null
     order by site, library, edition, version limit 1)
    union all
    select n.site, n.library, n.edition, n.version from versions v cross join lateral (
        select d.site, d.library, d.edition, d.version from {documents} d
        where d.version is not null and d.gone_at is null
          and (d.site, d.library, d.edition, d.version)
              > (v.site, v.library, v.edition, v.version)
        order by d.site, d.library, d.edition, d.version limit 1
    ) n
) select site, library, edition, version from versions
"""


async def stored_versions(connection: Connection) -> list[StoredVersion]:
    """Read every version that a page can be retrieved of, each once."""
    return await connection.fetch_as(StoredVersion, _VERSIONS)


async def site_sizes(connection: Connection) -> list[SiteSize]:
    """Give what is stored of each host, those with most pages first."""
    sites = await connection.fetch_as(SiteSize, _SITES)
    stored = await stored_versions(connection)
    return [
        each.model_copy(update={"versions": _newest_first(stored, each.site)}) for each in sites
    ]


def _newest_first(stored: Sequence[StoredVersion], site: str) -> dict[str, tuple[str, ...]]:
    versions: dict[str, set[str]] = {}
    for each in stored:
        if each.site == site:
            versions.setdefault(each.library.removeprefix(FILES), set()).add(each.version)
    return {
        library: tuple(sorted(own, key=version_order, reverse=True))
        for library, own in versions.items()
    }


_MOST_TWINS = 5


class KnownVersions(NamedTuple):
    """A page that has arrived, the stored one with its URL, and the `same` one under any URL."""

    document: NormalizedDocument
    previous: StoredPage | None
    same: StoredPage | None


class KnownChunks(NamedTuple):
    """Chunks that need not be made again: vectors by text hash, and node ids of the page itself."""

    embeddings: dict[bytes, NDArray[np.float32]]
    node_ids: set[str]


async def read_versions(
    connection: Connection, documents: Sequence[NormalizedDocument]
) -> list[KnownVersions]:
    """Find what is stored of pages; the `same` have the same text, title and link targets."""
    found = await find_pages(connection, [document.url for document in documents])
    documents = [_with_given_version(each, found.get(each.url)) for each in documents]
    own = {page.url: page for page in found.values()}  # not those known by another address
    previous = [own.get(document.url) for document in documents]
    pairs = list(zip(documents, previous, strict=True))
    twins = await _twins(connection, [each for each, page in pairs if page is None])
    candidates = [
        twins.get(document.url, []) if page is None else _unchanged(page, document)
        for document, page in pairs
    ]
    ids = [page_id for each in candidates for page_id, _ in each]
    places = await _read_places(connection, ids) if ids else {}
    same = [
        next((url for page_id, url in each if places[page_id].fits(document, url)), None)
        for document, each in zip(documents, candidates, strict=True)
    ]
    others = [url for url in same if url is not None and url not in found]
    if others:
        found |= await find_pages(connection, others)
    return [
        KnownVersions(document, page, None if url is None else found.get(url))
        for document, page, url in zip(documents, previous, same, strict=True)
    ]


async def read_chunks(
    connection: Connection, wanted: Sequence[tuple[int | None, Sequence[bytes]]]
) -> list[KnownChunks]:
    """Find chunks that new versions of pages have in common with the corpus and the pages."""
    hashes = {each for _, several in wanted for each in several}
    rows = await connection.fetch(
        "select distinct on (text_hash) text_hash, embedding from {data_children}"
        " where text_hash = any(%s) and embedding is not null",
        (list(hashes),),
    )
    embeddings = {bytes(key): vector.to_numpy().astype(np.float32) for key, vector in rows}
    ids = [page_id for page_id, _ in wanted if page_id is not None]
    node_ids: dict[int, set[str]] = {}
    if ids:
        statement = "select document, node_id from {data_children} where document = any(%s)"
        for page_id, node_id in await connection.fetch(statement, (ids,)):
            node_ids.setdefault(page_id, set()).add(node_id)
    return [
        KnownChunks(
            {each: embeddings[each] for each in several if each in embeddings},
            node_ids.get(page_id, set()) if page_id is not None else set(),
        )
        for page_id, several in wanted
    ]


def _with_given_version(
    document: NormalizedDocument, stored: StoredPage | None
) -> NormalizedDocument:
    """Keep the version that somebody named for a page for its later states as well."""
    if document.edition is not None and document.edition.is_given:
        return document
    if stored is None or stored.edition is None or not stored.edition.is_given:
        return document
    return document.model_copy(update={"edition": stored.edition})


def _unchanged(page: StoredPage, document: NormalizedDocument) -> list[tuple[int, str]]:
    known = (page.content_hash, page.title, page.edition, page.with_login)
    now = (document.content_hash, document.title, document.edition, document.with_login)
    return [(page.page_id, page.url)] if known == now else []


class _Places(NamedTuple):
    """The targets of a stored page's links, and the places on it that can be led to."""

    links: Set[str]
    anchors: list[Any]
    map_marks: list[Any]

    def fits(self, document: NormalizedDocument, url: str) -> bool:
        """Tell whether a page that has arrived leads to the same places as this one, at `url`."""
        either = {url, document.url}
        if self.links - either != {link.url for link in document.links} - either:
            return False
        # Those of earlier versions had none; another page's are not looked at.
        return (
            url != document.url
            or not (document.anchors or document.map_marks)
            or (self.anchors, self.map_marks)
            == (
                [anchor.model_dump() for anchor in document.anchors],
                [mark.model_dump(mode="json") for mark in document.map_marks],
            )
        )


async def _read_places(connection: Connection, ids: Sequence[int]) -> dict[int, _Places]:
    statement = (
        "select d.id, array(select distinct l.url from {link_candidates} l"
        " where l.source_document = d.id and l.origin = 'page'), d.anchors, d.map_marks"
        " from {documents} d where d.id = any(%s)"
    )
    rows = await connection.fetch(statement, (list(ids),))
    return {page_id: _Places(set(links), *places) for page_id, links, *places in rows}


async def _twins(
    connection: Connection, documents: Sequence[NormalizedDocument]
) -> dict[str, list[tuple[int, str]]]:
    """Find pages with the text and title of others on their sites, by the addresses of these."""
    if not documents:
        return {}
    statement = """
        select n.url, d.id, d.url
        from unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
             n(hash, site, title, edition, url)
        cross join lateral (
            select id, url from {documents} d where d.content_hash = n.hash and d.site = n.site
              and d.title is not distinct from n.title
              and d.edition is not distinct from n.edition
              and d.url <> n.url and d.gone_at is null
            order by id limit %s
        ) d
        """
    values = (
        [document.content_hash for document in documents],
        [site_of(document.url) for document in documents],
        [document.title for document in documents],
        [document.edition and document.edition.root for document in documents],
        [document.url for document in documents],
        _MOST_TWINS,
    )
    found: dict[str, list[tuple[int, str]]] = {}
    for asked, page_id, url in await connection.fetch(statement, values):
        found.setdefault(asked, []).append((page_id, url))
    return found
