"""Stored pages and passages by their stable ids, whole and located; it searches nothing.

All functions raise StorageError when the database fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from webrag.corpus.models import SiteSize
from webrag.ingestion.addresses import FILES
from webrag.ingestion.versions import version_order
from webrag.postgres.database import Database
from webrag.postgres.execution import Connection


class StoredVersion(NamedTuple):
    """A version of a library that pages are stored of; fields are columns of `documents`."""

    site: str
    library: str
    edition: str
    version: str


@dataclass(frozen=True, slots=True)
class PageText:
    """A stored page.

    Attributes:
        document_id: Stable id, derived from the canonical URL.
        markdown: The text that all offsets refer to.
        fetched_at: When the site last delivered or confirmed it.
        gone_at: When the site was first seen to say that the page does not exist.
        with_login: It was read with a login of the user's.
    """

    document_id: UUID
    url: str
    title: str | None
    markdown: str
    fetched_at: datetime
    gone_at: datetime | None
    with_login: bool = False


@dataclass(frozen=True, slots=True)
class PassageText:
    """A parent chunk of a stored page.

    Attributes:
        id: Survives edits elsewhere on the page.
        document_id: Of its page.
        text: `markdown[char_start:char_end]` of the page.
    """

    id: UUID
    document_id: UUID
    url: str
    title: str | None
    heading: str | None
    text: str
    char_start: int
    char_end: int
    fetched_at: datetime
    gone_at: datetime | None
    with_login: bool = False


@dataclass(frozen=True, slots=True)
class PageImage:
    """An image of a stored page.

    Attributes:
        position: Offset in the page's markdown, before which it stands.
        alt: What stands for it; "" when nothing does.
        caption: Beneath or above it; "" without one.
    """

    position: int
    alt: str
    caption: str


@dataclass(frozen=True, slots=True)
class PageName:
    """What a stored page is called."""

    document_id: UUID
    url: str
    title: str | None


async def site_sizes(database: Database) -> list[SiteSize]:
    """What is stored of each host, those with most pages first."""
    sites = await database.fetch_as(
        SiteSize,
        """
        select site, count(*) as documents, coalesce(sum(token_count), 0)::bigint as tokens,
               min(fetched_at) as fetched_at
        from {documents} where gone_at is null group by site order by documents desc, site
        """,
    )
    stored = await database.fetch_as(StoredVersion, _VERSIONS)
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


async def year_sizes(database: Database) -> dict[int, int]:
    """The number of retrievable pages by year of publication, the latest first.

    Pages that do not say when they were published are in none.
    """
    rows = await database.fetch("""
        select publication_year, count(*) from {documents}
        where gone_at is null and publication_year is not null
        group by publication_year order by publication_year desc
        """)
    return dict(rows)


async def name_pages(database: Database, contains: str, limit: int) -> list[PageName]:
    """The pages last fetched whose URL or title holds some words, whatever their letter case."""
    return await database.fetch_as(
        PageName,
        """
        select document_id, url, title from {documents}
        where gone_at is null and (
            position(lower(%(words)s) in lower(url)) > 0
            or position(lower(%(words)s) in lower(coalesce(title, ''))) > 0
        )
        order by fetched_at desc, id desc limit %(limit)s
        """,
        {"words": contains, "limit": limit},
    )


async def read_page(database: Database, document_id: UUID) -> PageText | None:
    """The page with this id; None when it is not stored."""
    found = await database.fetch_as(
        PageText,
        "select document_id, url, title, markdown, fetched_at, gone_at, with_login"
        " from {documents} where document_id = %s",
        (document_id,),
    )
    return found[0] if found else None


async def read_images(database: Database, document_id: UUID) -> list[PageImage]:
    """The images of a page in their order; none where the page is not stored."""
    return await database.fetch_as(
        PageImage,
        """
        select distinct (image ->> 'position')::int as position,
               coalesce(image ->> 'alt', '') as alt, coalesce(image ->> 'caption', '') as caption
        from {parents} p join {documents} d on d.id = p.document,
             jsonb_array_elements(p.images) image
        where d.document_id = %s order by 1, 2, 3
        """,
        (document_id,),
    )


async def read_passage(database: Database, passage_id: UUID) -> PassageText | None:
    """The passage with this id; None when it is not stored."""
    found = await database.fetch_as(
        PassageText,
        """
        select p.id, d.document_id, d.url, d.title, p.heading, p.text, p.char_start, p.char_end,
               d.fetched_at, d.gone_at, d.with_login
        from {parents} p join {documents} d on d.id = p.document where p.id = %s
        """,
        (passage_id,),
    )
    return found[0] if found else None
