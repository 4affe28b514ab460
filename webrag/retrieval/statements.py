"""The SQL of retrieval, and filters as conditions in it; it scores and decides nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from pgvector import HalfVector
from psycopg import sql

from webrag.corpus.queries import ANCHORS
from webrag.corpus.schema import table
from webrag.retrieval.filters import ContentKind, SearchFilters

__all__ = ["PARENT_COLUMNS", "Queries", "Scope", "Statement"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which conditions a search has, as SQL over values that are bound.

    Attributes:
        conditions: Names of the page conditions that restrict.
        has: Kinds of content that chunks must hold.
    """

    conditions: tuple[str, ...]
    has: tuple[ContentKind, ...]

    @classmethod
    def of(cls, filters: SearchFilters) -> "Scope":
        """The conditions of some filters, whatever their values."""
        given = tuple(name for name in _CONDITIONS if getattr(filters, name) is not None)
        return cls(given, filters.has)

    @staticmethod
    def values(filters: SearchFilters) -> dict[str, Any]:
        """What the conditions compare with."""
        return {
            "urls": list(filters.source_urls or ()),
            "sites": list(filters.sites or ()),
            "years": list(filters.years or ()),
            "fetched_since": filters.fetched_since,
        }

    @property
    def pages(self) -> sql.Composed:
        """Condition on `documents d`."""
        parts = ["d.gone_at is null", *(_CONDITIONS[name] for name in self.conditions)]
        return sql.SQL(" and ").join(sql.SQL(part) for part in parts)

    @property
    def chunks(self) -> sql.Composable:
        """Condition on `parents p`; children are what their parents are."""
        flags = [sql.Identifier("p", f"has_{kind}") for kind in self.has]
        return sql.SQL(" and ").join(flags) if flags else sql.SQL("true")


_CONDITIONS: dict[str, LiteralString] = {
    "source_urls": "(d.url = any(%(urls)s) or d.aliases && %(urls)s::text[])",
    # A host without a port means every port of it.
    "sites": (
        "(d.site = any(%(sites)s) or regexp_replace(d.site, ':[0-9]+$', '') = any(%(sites)s))"
    ),
    "years": "d.publication_year = any(%(years)s)",
    "fetched_since": "d.fetched_at >= %(fetched_since)s",
}


class Statement(NamedTuple):
    """A statement and its values."""

    text: bytes
    values: dict[str, Any]


class Queries:
    """Statements for one collection and scope."""

    def __init__(self, collection: str, filters: SearchFilters) -> None:
        self.filters = filters
        self._collection = collection
        self._scope = Scope.of(filters)
        self._values = Scope.values(filters)

    def totals(self) -> Statement:
        """One row: pages, their children and lexical terms; tokens and number of parents.

        Pages and what BM25 needs do not depend on the kinds of content that are wanted.
        """
        if self.filters.has:
            return self._statement(_CHUNK_TOTALS)
        return self._statement(_TOTALS if self.filters.restrict_pages else _ALL_TOTALS)

    def matching_children(self, limit: int) -> Statement:
        """One row: children that the filters leave, counted up to one more than `limit`."""
        return self._statement(
            """
            select count(*) from (
                select from {parents} p
                join {documents} d on d.id = p.document
                join {data_children} c on c.parent_id = p.id
                where {scope} and {chunks} limit %(limit)s
            ) matching
            """,
            limit=limit + 1,
        )

    def search_settings(self, ef_search: int) -> Statement:
        """Settings of the vector index until the transaction ends."""
        return self._statement(
            "select set_config('hnsw.ef_search', %(ef_search)s, true),"
            " set_config('hnsw.iterative_scan', 'relaxed_order', true)",
            # The range pgvector accepts.
            ef_search=str(min(max(ef_search, 1), 1000)),
        )

    def lexical(self, terms: Sequence[str]) -> Statement:
        """Per term: pages as (id, terms of the page, bytes of postings), and the postings."""
        return self._statement(
            """
            select p.term,
                   string_agg(int4send(d.id) || int4send(d.term_count)
                              || int4send(length(p.packed)), ''::bytea),
                   string_agg(p.packed, ''::bytea)
            from {postings} p join {documents} d on d.id = p.document
            where p.term = any(%(terms)s) and {scope}
            group by p.term
            """,
            terms=list(terms),
        )

    def dense(self, vector: Sequence[float], limit: int, *, exact: bool) -> Statement:
        """Best children by the vectors alone: page, ordinal; order is approximate.

        Args:
            vector: The question's embedding.
            limit: Rows at most.
            exact: Compare with every child in scope instead of walking the index.
        """
        text = _DENSE_EXACT if exact else _DENSE_INDEXED
        if self.filters.has:
            text = _DENSE_EXACT_CHUNKS if exact else _DENSE_INDEXED_CHUNKS
        return self._statement(text, vector=HalfVector(list(vector)), limit=limit)

    def allowed(self, children: Sequence[tuple[int, int]]) -> Statement:
        """Page and ordinal of those children whose parents hold the wanted kinds of content."""
        return self._statement(
            """
            select c.document, c.ordinal
            from unnest(%(documents)s::int[], %(ordinals)s::int[]) k(document, ordinal)
            join {data_children} c on c.document = k.document and c.ordinal = k.ordinal
            join {parents} p on p.id = c.parent_id
            where {chunks}
            """,
            documents=[document for document, _ in children],
            ordinals=[ordinal for _, ordinal in children],
        )

    def candidates(self, children: Sequence[tuple[int, int]], vector: Sequence[float]) -> Statement:
        """What ordering needs of each (page, ordinal); the text comes later, for the best."""
        return self._statement(
            """
            select c.document, c.ordinal, c.parent_id, c.text_hash, d.depth,
                   p.token_end - p.token_start, 1 - (c.embedding <=> %(vector)s)
            from unnest(%(documents)s::int[], %(ordinals)s::int[]) k(document, ordinal)
            join {data_children} c on c.document = k.document and c.ordinal = k.ordinal
            join {parents} p on p.id = c.parent_id
            join {documents} d on d.id = c.document
            """,
            vector=HalfVector(list(vector)),
            documents=[document for document, _ in children],
            ordinals=[ordinal for _, ordinal in children],
        )

    def texts(self, children: Sequence[tuple[int, int]]) -> Statement:
        """Page, ordinal, node id, offsets, text and heading path of children."""
        return self._statement(
            """
            select c.document, c.ordinal, c.node_id, c.char_start, c.char_end, c.text,
                   c.metadata_ -> 'heading_path'
            from unnest(%(documents)s::int[], %(ordinals)s::int[]) k(document, ordinal)
            join {data_children} c on c.document = k.document and c.ordinal = k.ordinal
            """,
            documents=[document for document, _ in children],
            ordinals=[ordinal for _, ordinal in children],
        )

    def parents(self, ids: Sequence[UUID]) -> Statement:
        """Parents by id, as `PARENT_COLUMNS` names them."""
        return self._statement(
            f"select {_PARENT} from {{parents}} p"
            " join {documents} d on d.id = p.document where p.id = any(%(ids)s)",
            ids=list(ids),
        )

    def pages_in_reading_order(self) -> Statement:
        """Row number and tokens of the pages in scope, nearest to the named ones first."""
        return self._statement(
            """
            select d.id, sum(p.token_end - p.token_start)
            from {documents} d join {parents} p on p.document = d.id
            where {scope} and {chunks} group by d.id order by d.depth, d.url
            """
        )

    def parents_of_pages(self, documents: Sequence[int]) -> Statement:
        """All parents of some pages in reading order, as `PARENT_COLUMNS` names them."""
        return self._statement(
            f"select {_PARENT} from {{parents}} p"
            " join {documents} d on d.id = p.document"
            " where d.id = any(%(documents)s) and {chunks}"
            " order by d.depth, d.url, p.chunk_index",
            documents=list(documents),
        )

    def _statement(self, text: str, **values: Any) -> Statement:
        composed = _compose(text, self._collection, self._scope)
        return Statement(composed, {**self._values, **values})


# Composing costs a tenth of a millisecond per statement, and there are few different ones.
@lru_cache(maxsize=256)
def _compose(text: str, collection: str, scope: Scope) -> bytes:
    names = ("documents", "parents", "data_children", "postings")
    composed = sql.SQL(text).format(
        scope=scope.pages, chunks=scope.chunks, **{name: table(collection, name) for name in names}
    )
    return composed.as_bytes(None)


PARENT_COLUMNS = {
    "chunk_id": "p.id",
    "document_id": "d.document_id",
    "source_url": "d.url",
    "site": "d.site",
    "title": "d.title",
    "text": "p.text",
    "html": "p.html",
    "section_heading": "p.heading",
    "heading_path": "p.heading_path",
    "chunk_index": "p.chunk_index",
    "char_start": "p.char_start",
    "char_end": "p.char_end",
    "token_start": "p.token_start",
    "token_end": "p.token_end",
    "depth": "d.depth",
    "has_table": "p.has_table",
    "has_code": "p.has_code",
    "has_math": "p.has_math",
    "has_definition_list": "p.has_definition_list",
    "has_admonition": "p.has_admonition",
    "has_steps": "p.has_steps",
    "images": "p.images",
    "anchors": ANCHORS,
    "published_at": "d.published_at",
    "fetched_at": "d.fetched_at",
}

"""Names of what is read of a parent, and the columns of `parents p` and `documents d`."""

_PARENT = ", ".join(PARENT_COLUMNS.values())

_TOTALS = """
    select count(*), coalesce(sum(d.child_count), 0), coalesce(sum(d.term_count), 0),
           coalesce(sum(d.token_count), 0),
           (select count(*) from {parents} p join {documents} d on d.id = p.document
            where {scope})
    from {documents} d where {scope}
"""

# Counts the parents of gone pages, which are few, in place of joining all that are not.
_ALL_TOTALS = """
    select count(*), coalesce(sum(d.child_count), 0), coalesce(sum(d.term_count), 0),
           coalesce(sum(d.token_count), 0),
           (select count(*) from {parents})
           - (select count(*) from {parents} p where p.document = any(array(
                select g.id from {documents} g where g.gone_at is not null)))
    from {documents} d where {scope}
"""

_CHUNK_TOTALS = """
    with matching as (
        select count(*) as parents, coalesce(sum(p.token_end - p.token_start), 0) as tokens
        from {parents} p join {documents} d on d.id = p.document where {scope} and {chunks}
    )
    select count(*), coalesce(sum(d.child_count), 0), coalesce(sum(d.term_count), 0),
           (select tokens from matching), (select parents from matching)
    from {documents} d where {scope}
"""

# The parameter stands in ORDER BY itself: a column of a CTE would keep the index from being used.
# CASE keeps the planner from turning the condition into a join or a scan of its own index.
_DENSE_INDEXED = """
    select c.document, c.ordinal from {data_children} c
    where case when c.document in (select d.id from {documents} d where {scope}) then true end
    order by c.embedding <=> %(vector)s limit %(limit)s
"""

# Materialised, or the planner may walk the vector index and miss rows under a selective filter.
_DENSE_EXACT = """
    with subset as materialized (
        select c.document, c.ordinal, c.embedding from {data_children} c
        where c.document = any(array(select d.id from {documents} d where {scope}))
    )
    select document, ordinal from subset order by embedding <=> %(vector)s limit %(limit)s
"""

# Only the rows the walk visits are looked up.
_DENSE_INDEXED_CHUNKS = """
    select c.document, c.ordinal from {data_children} c
    where case when c.document in (select d.id from {documents} d where {scope}) then true end
      and case when (select {chunks} from {parents} p where p.id = c.parent_id) then true end
    order by c.embedding <=> %(vector)s limit %(limit)s
"""

_DENSE_EXACT_CHUNKS = """
    with subset as materialized (
        select c.document, c.ordinal, c.embedding
        from {parents} p join {data_children} c on c.parent_id = p.id
        where p.document = any(array(select d.id from {documents} d where {scope})) and {chunks}
    )
    select document, ordinal from subset order by embedding <=> %(vector)s limit %(limit)s
"""
