"""Texts that pages had before they changed; only a search as of an earlier moment sees them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from psycopg import sql

from webrag.argument_checks import shown_moment
from webrag.corpus.tables import CHILDREN, DOCUMENTS, PARENTS, POSTINGS
from webrag.errors import InputError
from webrag.frozen import FrozenModel
from webrag.postgres.database import Connection

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


class PastPage(FrozenModel):
    """A text that a page had: first delivered, last confirmed, and when another took its place."""

    url: str
    title: str | None
    version: str | None
    stored_at: datetime
    fetched_at: datetime
    replaced_at: datetime
    markdown: str


async def keep_past(
    connection: Connection,
    pages: Mapping[str, tuple[str, datetime]],
    *,
    most: int,
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


class Holdings(NamedTuple):
    """Numbers of pages with a text of a moment, and with only later ones; times of the earliest."""

    held: int
    missing: int
    since: list[datetime]

    def refusal(self, moment: datetime, url: str | None = None) -> InputError | None:
        """Say why nothing is known of a moment; None where something is, or nothing is stored."""
        if self.held or not (self.since or url):
            return None
        if not self.since:
            return InputError(f"{url} is not stored; nothing is fetched for an earlier moment.")
        what = "What was stored" if url is None else f"The text that {url} had"
        held = ", ".join(map(shown_moment, self.since))
        earliest = "the earliest texts" if len(self.since) > 1 else "the earliest text"
        return InputError(
            f"{what} on {shown_moment(moment)} is not there; {earliest} held: from {held}.",
            hint="WEBRAG_KEEP_VERSIONS says how many earlier texts of a page are kept.",
        )

    def warning(self, moment: datetime) -> str | None:
        """Say in a sentence what an answer as of a moment lacks."""
        if not self.missing:
            return None
        pages = "1 page is" if self.missing == 1 else f"{self.missing:,} pages are"
        return (
            f"{pages} left out: what is stored there is from after {shown_moment(moment)}, and no"
            " text of then was kept (WEBRAG_KEEP_VERSIONS)."
        )


# What is named may be a folder, or a page by another of its addresses.
_WANTED = """(
    %(urls)s::text[] is null or d.url = any(%(urls)s) or d.aliases && %(urls)s::text[]
    or exists (select from unnest(%(urls)s::text[]) n(url)
               where d.url !~ '^https?:' and starts_with(d.url, rtrim(n.url, '/') || '/'))
)"""

# Of everything, or of some pages and what lies below them.
HOLDINGS: Final = """
with texts as (
    select url, coalesce(stored_at, fetched_at) as since, gone_at as until from {documents} d
    where {wanted}
    union all
    select url, stored_at, gone_at from {past_documents} d where {wanted}
), pages as (
    select bool_or(since <= %(moment)s and (until is null or until > %(moment)s)) as is_held,
           bool_or(since > %(moment)s) as is_later
    from texts group by url
)
select count(*) filter (where is_held), count(*) filter (where is_later and not is_held),
       array(select distinct since from texts order by since limit 3)
from pages
""".replace("{wanted}", _WANTED)

HELD: Final = """
select url from {documents} d where {wanted} and coalesce(stored_at, fetched_at) <= %(moment)s
  and (gone_at is null or gone_at > %(moment)s)
union
select url from {past_documents} d where {wanted} and stored_at <= %(moment)s
  and gone_at > %(moment)s
order by url
""".replace("{wanted}", _WANTED)
