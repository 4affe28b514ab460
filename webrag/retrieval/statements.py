"""The SQL of every search, by meaning and by words; it scores and decides nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from pgvector import HalfVector
from psycopg import sql

from webrag.corpus.models import ParentChunk
from webrag.corpus.tables import CHILDREN, DOCUMENTS, PARENTS, POSTINGS
from webrag.lexical.postings import POSTING
from webrag.postgres.database import Connection, Rows, Values, compose
from webrag.retrieval.filters import EVERYTHING, Scope, there

CHUNK_KEY = "c.document, c.ordinal"
"""Columns that name a chunk: its page and its place in it."""

# The planner leaves a table out that a left join adds and nothing reads. Parents of several texts
# of a page may have one id.
_PARENT_OF = "left join {parents} p on p.id = c.parent_id{of_same_text}"

_OWNERS = f"join {{documents}} d on d.id = c.document {_PARENT_OF}"

_PLACES = """unnest(%(documents)s::int[], %(ordinals)s::int[]) with ordinality
            k(document, ordinal, place)
            join {data_children} c on c.document = k.document and c.ordinal = k.ordinal"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement and its values, to be run alone or together with others."""

    text: bytes | sql.Composed | sql.SQL
    values: Values = ()
    binary: bool = False

    async def fetch(self, connection: Connection) -> Rows:
        """Run the statement alone and give its rows, none where it has none."""
        return await connection.fetch(self.text, self.values, binary=self.binary)


async def fetch_together(connection: Connection, *statements: Statement) -> list[Rows]:
    """Run independent statements in one round trip and give the rows of each."""
    async with connection.pipeline():
        sent = [
            await connection.execute(each.text, each.values, binary=each.binary)
            for each in statements
        ]
    return [await each.fetchall() if each.description else [] for each in sent]


class Queries:
    """Statements for one collection and scope; none sees pages that have gone.

    As of a moment they read earlier texts, too, and see those of that moment.
    """

    def __init__(self, collection: str, scope: Scope = EVERYTHING) -> None:
        self.scope = scope
        self.collection = collection
        present, present_values = there(scope.as_of).named("there_")
        pages, page_values = scope.pages.named("page_")
        chunks, chunk_values = scope.chunks.named("chunk_")
        self._conditions = (f"{present} and {pages}", chunks, present)
        self._values = {**present_values, **page_values, **chunk_values}

    def totals(self) -> Statement:
        """One row: pages, their children and terms, all of them; tokens and number of parents."""
        if self.scope.restricts_chunks:
            return self._statement(_CHUNK_TOTALS)
        return self._statement(_TOTALS if self.scope.restricts_pages else _ALL_TOTALS)

    def sizes(self) -> Statement:
        """One row: pages of the whole collection, their children and lexical terms."""
        return self._statement(
            """
            select count(*), coalesce(sum(d.child_count), 0), coalesce(sum(d.term_count), 0)
            from {documents} d where {there}
            """
        )

    def search_settings(self, ef_search: int) -> Statement:
        """Settings of the vector index until the transaction ends."""
        return self._statement(
            "select set_config('hnsw.ef_search', %(ef_search)s, true),"
            " set_config('hnsw.iterative_scan', 'relaxed_order', true)",
            # The range pgvector accepts.
            ef_search=str(min(max(ef_search, 1), 1000)),
        )

    def postings(self, terms: Sequence[str]) -> Statement:
        """Per term: pages as (id, terms of the page, bytes of postings), and the postings."""
        # Term by term: grouping all rows sorts them, which takes longer than reading them.
        return self._statement(
            """
            select t.term, f.pages, f.packed from unnest(%(terms)s::text[]) t(term)
            cross join lateral (
                select string_agg(int4send(d.id) || int4send(d.term_count)
                                  || int4send(length(p.packed)), ''::bytea) as pages,
                       string_agg(p.packed, ''::bytea) as packed
                from {postings} p join {documents} d on d.id = p.document
                where p.term = t.term and {pages}
            ) f
            where f.pages is not null
            """,
            terms=list(terms),
        )

    def held_terms(self, terms: Sequence[str]) -> Statement:
        """One row for each of the terms that a page in scope holds."""
        return self._statement(
            f"select t.term from {_TERMS} where exists ({_POSTINGS_OF})", terms=list(terms)
        )

    def bounded_counts(self, terms: Sequence[str]) -> Statement:
        """Per term that pages in scope hold: the term, and chunks of the first such pages."""
        return self._statement(
            f"""
            select t.term, n.size / %(size)s from {_TERMS}
            cross join lateral (
                select coalesce(sum(length(k.packed)), 0)::int as size
                from ({_POSTINGS_OF} limit %(most)s) k
            ) n
            where n.size > 0
            """,
            terms=list(terms),
            most=_PAGES_COUNTED,
            size=POSTING.itemsize,
        )

    def phrase(self, terms: Sequence[str], pattern: str) -> Statement:
        """One row if one of the first pages with all the terms has text that matches a pattern."""
        others = "".join(
            " and exists (select from {postings} o"
            f" where o.term = %(term_{place})s and o.document = p.document)"
            for place in range(1, len(terms))
        )
        return self._statement(
            f"""
            select 1 from (
                select distinct d.id from {{postings}} p
                join {{documents}} d on d.id = p.document
                where p.term = %(term_0)s and {{pages}}{others} limit %(most)s
            ) k join {{documents}} d on d.id = k.id
            where d.markdown ~* %(pattern)s limit 1
            """,
            **{f"term_{place}": term for place, term in enumerate(terms)},
            pattern=pattern,
            most=_PAGES_READ,
        )

    def nearest_of_few(
        self, vector: Sequence[float], limit: int, most: int, columns: str = CHUNK_KEY
    ) -> Statement:
        """Best children by comparison with all in scope: columns, distance, number compared.

        The result is worthless where more than `most` were.
        """
        return self._statement(
            _OF_FEW, columns, vector=HalfVector(list(vector)), limit=limit, most=most + 1
        )

    def nearest_in_graph(
        self, vector: Sequence[float], limit: int, columns: str = CHUNK_KEY
    ) -> Statement:
        """Best children by the vector index, in nearly the right order, with the distance."""
        text = _IN_GRAPH_CHUNKS if self.scope.restricts_chunks else _IN_GRAPH
        allowed = _AMONG_PAGES if self.scope.restricts_pages else _NOT_GONE
        allowed = _NOT_LEFT_OUT if self.scope.left_out else allowed
        text = text.replace("<allowed>", allowed)
        values = {"vector": HalfVector(list(vector)), "limit": limit}
        return self._statement(text, columns, editions=list(self.scope.left_out), **values)

    def allowed(self, children: Sequence[tuple[int, int]]) -> Statement:
        """Page and ordinal of those children that the condition on chunks leaves."""
        return self._statement(
            f"""
            select c.document, c.ordinal
            from {_PLACES} {_OWNERS} where {{chunks}}
            """,
            **_places(children),
        )

    def candidates(
        self, children: Sequence[tuple[int, int]], vectors: Sequence[Sequence[float]]
    ) -> Statement:
        """Columns that ordering needs of each (page, ordinal), and the cosines with each vector."""
        names = [f"vector_{place}" for place in range(len(vectors))]
        cosines = ", ".join(f"1 - (c.embedding <=> %({name})s)" for name in names)
        return self._statement(
            f"""
            select c.document, c.ordinal, c.parent_id, c.text_hash, d.depth,
                   p.token_end - p.token_start, {cosines}
            from {_PLACES}
            join {{parents}} p on p.id = c.parent_id{{of_same_text}}
            join {{documents}} d on d.id = c.document
            """,
            **{name: HalfVector(list(each)) for name, each in zip(names, vectors, strict=True)},
            **_places(children),
        )

    def distances(
        self, children: Sequence[tuple[int, int]], vector: Sequence[float], columns: str
    ) -> Statement:
        """Columns of `data_children c` and the distance, in the order of the children."""
        return self._statement(
            f"select {{columns}}, c.embedding <=> %(vector)s from {_PLACES} order by k.place",
            columns,
            vector=HalfVector(list(vector)),
            **_places(children),
        )

    def chunks(self, children: Sequence[tuple[int, int]], columns: str) -> Statement:
        """Columns of `data_children c`, in the order of the children."""
        return self._statement(
            f"select {{columns}} from {_PLACES} order by k.place", columns, **_places(children)
        )

    def texts(self, children: Sequence[tuple[int, int]]) -> Statement:
        """Page, ordinal, node id, offsets, text and heading path of children."""
        return self._statement(
            f"""
            select c.document, c.ordinal, c.node_id, c.char_start, c.char_end, c.text,
                   c.metadata_ -> 'heading_path'
            from {_PLACES}
            """,
            **_places(children),
        )

    def parents(self, ids: Sequence[UUID]) -> Statement:
        """Parents by id, as `PARENT_COLUMNS` names them."""
        return self._statement(
            f"select {_PARENT} from {{parents}} p"
            " join {documents} d on d.id = p.document where p.id = any(%(ids)s) and {there}",
            ids=list(ids),
        )

    def parents_at(self, places: Sequence[tuple[UUID, int]]) -> Statement:
        """Parents by the id of their page and their index on it, in that order."""
        return self._statement(
            f"""
            select {_PARENT}
            from unnest(%(pages)s::uuid[], %(indexes)s::int[]) with ordinality
                k(page, chunk_index, place)
            join {{documents}} d on d.document_id = k.page and {{there}}
            join {{parents}} p on p.document = d.id and p.chunk_index = k.chunk_index
            order by k.place
            """,
            pages=[page for page, _ in places],
            indexes=[index for _, index in places],
        )

    def versions(self) -> Statement:
        """Site, library, edition and version of all pages that say one, each once."""
        return self._statement(
            "select distinct d.site, d.library, d.edition, d.version from {documents} d"
            " where d.version is not null and {there}"
        )

    def pages_in_reading_order(self) -> Statement:
        """Row number and tokens of the pages in scope, nearest to the named ones first."""
        return self._statement(
            """
            select d.id, sum(p.token_end - p.token_start)
            from {documents} d join {parents} p on p.document = d.id
            where {pages} and {chunks} group by d.id, d.depth, d.url order by d.depth, d.url
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

    def _statement(self, text: str, columns: str = "", /, **values: Any) -> Statement:
        is_short = sum(map(len, self._conditions)) < _LONGEST_KEPT
        composed = _composed if is_short else _composed.__wrapped__
        is_past = self.scope.as_of is not None
        statement = composed(text, self.collection, self._conditions, columns, is_past)
        return Statement(statement, {**self._values, **values}, binary=True)


_LONGEST_KEPT = 2_000

# What tells a common spelling from a rare one, and a phrase from words that only meet by chance:
# more would cost more in a large corpus, and change little.
_PAGES_COUNTED = 100
_PAGES_READ = 50

_TERMS = "unnest(%(terms)s::text[]) t(term)"

_POSTINGS_OF = """
    select p.packed from {postings} p join {documents} d on d.id = p.document
    where p.term = t.term and {pages}
"""


# Composing costs a tenth of a millisecond per statement, and there are few different ones; long
# ones are those of thousands of filters.
@lru_cache(maxsize=256)
def _composed(
    text: str, collection: str, conditions: tuple[str, str, str], columns: str, is_past: bool
) -> bytes:
    pages, chunks, present = conditions
    tables = {name: _with_past(collection, name) for name in _COLUMNS} if is_past else {}
    composed = compose(
        collection,
        text,
        pages=sql.SQL(pages),
        chunks=sql.SQL(chunks),
        there=sql.SQL(present),
        columns=compose(collection, columns, **tables),
        of_same_text=sql.SQL(" and p.document = c.document" if is_past else ""),
        **tables,
    )
    return composed.as_bytes(None)


_COLUMNS = {
    "documents": list(DOCUMENTS.loaded),
    "parents": list(PARENTS.loaded),
    "data_children": ["id", *CHILDREN.loaded],
    "postings": list(POSTINGS.loaded),
}

_PAST_MARKDOWN = "(select t.markdown from {past_pages} t where t.id = e.past)"


def _with_past(collection: str, name: str) -> sql.Composed:
    """A table and its past rows, without conditions, so that each is joined by its own indexes."""
    own = [f"e.{column}" for column in _COLUMNS[name]]
    past = [_PAST_MARKDOWN if each == "e.markdown" else each for each in own]
    then = f"past_{name.removeprefix('data_')}"
    return compose(
        collection,
        f"(select {', '.join(own)} from {{{name}}} e"
        f" union all select {', '.join(past)} from {{{then}}} e)",
    )


def _places(children: Sequence[tuple[int, int]]) -> dict[str, str]:
    # Arrays as Postgres writes them: the driver takes lists number by number.
    return {
        "documents": f"{{{','.join(str(document) for document, _ in children)}}}",
        "ordinals": f"{{{','.join(str(ordinal) for _, ordinal in children)}}}",
    }


# The anchors of `documents d` that lead to some part of `parents p`, as JSON. One of a line before
# the parent is given the line that the parent begins with: only its text is at hand later.
_ANCHORS = """(
    select coalesce(
        jsonb_agg(case when a.char_start < p.char_start and a.fragment ~ '^L[0-9]+$'
            then jsonb_build_object('char_start', p.char_start, 'fragment', 'L' ||
                substr(a.fragment, 2)::int + regexp_count(
                    substr(d.markdown, a.char_start + 1, p.char_start - a.char_start), E'\\n'))
            else jsonb_build_object('char_start', a.char_start, 'fragment', a.fragment) end
            order by a.number), '[]')
    from (
        select *, lead(char_start) over (order by number) as next_start
        from rows from (jsonb_to_recordset(d.anchors) as (char_start int, fragment text))
        with ordinality as anchors(char_start, fragment, number)
    ) a
    where a.char_start < p.char_end and (a.next_start is null or a.next_start > p.char_start)
)"""

_OF_PARENTS = PARENTS.selected("p")

PARENT_COLUMNS = {
    **{name: _OF_PARENTS[name] for name in ParentChunk.model_fields},
    "source_url": "d.url",
    **DOCUMENTS.selected(
        *("d", "document_id", "site", "title", "description", "author", "site_name", "depth"),
        *("published_at", "modified_at", "fetched_at", "version", "library", "with_login"),
    ),
    "anchors": _ANCHORS,
    "commit": "case when starts_with(d.url, 'git+') then d.last_modified end",
}
"""Names of what is read of a parent, and the columns of `parents p` and `documents d`."""

_PARENT = ", ".join(PARENT_COLUMNS.values())

_TOTALS = """
    select count(*), coalesce(sum(d.child_count), 0), coalesce(sum(d.term_count), 0),
           coalesce(sum(d.token_count), 0),
           (select count(*) from {parents} p join {documents} d on d.id = p.document
            where {pages})
    from {documents} d where {pages}
"""

# Counts the parents of gone pages, which are few, in place of joining all that are not.
_ALL_TOTALS = """
    select count(*), coalesce(sum(d.child_count), 0), coalesce(sum(d.term_count), 0),
           coalesce(sum(d.token_count), 0),
           (select count(*) from {parents})
           - (select count(*) from {parents} p where p.document = any(array(
                select g.id from {documents} g where g.gone_at is not null)))
    from {documents} d where {pages}
"""

_CHUNK_TOTALS = """
    with matching as (
        select count(*) as parents, coalesce(sum(p.token_end - p.token_start), 0) as tokens
        from {parents} p join {documents} d on d.id = p.document where {pages} and {chunks}
    )
    select count(*), coalesce(sum(d.child_count), 0), coalesce(sum(d.term_count), 0),
           (select tokens from matching), (select parents from matching)
    from {documents} d where {pages}
"""

# Materialised, or the planner may walk the vector index and miss rows under a selective filter.
# Counting and comparing in one pass: two took half as long again.
_OF_FEW = f"""
    with subset as materialized (
        select c.id, c.embedding <=> %(vector)s as distance
        from {{documents}} d join {{data_children}} c on c.document = d.id {_PARENT_OF}
        where {{pages}} and {{chunks}} and c.embedding is not null limit %(most)s
    ), best as (select id, distance from subset order by distance limit %(limit)s)
    select {{columns}}, best.distance, (select count(*) from subset)
    from best join {{data_children}} c on c.id = best.id
"""

# A few pages to know of, where those that have not gone are as many as there are.
_NOT_GONE = """
    case when c.document in (select d.id from {documents} d where d.gone_at is not null)
    then null else true end
"""

# Pages that have a version are indexed; no page has an edition and none.
_OF_EDITIONS = "d.edition = any(%(editions)s) and d.version is not null and d.gone_at is null"

_NOT_LEFT_OUT = f"""
    case when c.document in (
        select d.id from {{documents}} d where d.gone_at is not null
        union all select d.id from {{documents}} d where {_OF_EDITIONS}
    ) then null else true end
"""

_AMONG_PAGES = (
    "case when c.document in (select d.id from {documents} d where {pages}) then true end"
)

# The parameter stands in ORDER BY itself: a column of a CTE would keep the index from being used.
# CASE keeps the planner from turning the condition into a join or a scan of its own index.
_IN_GRAPH = """
    select {columns}, c.embedding <=> %(vector)s from {data_children} c
    where (<allowed>) and c.embedding is not null
    order by c.embedding <=> %(vector)s limit %(limit)s
"""

# Only the rows the walk visits are looked up.
_IN_GRAPH_CHUNKS = f"""
    select {{columns}}, c.embedding <=> %(vector)s from {{data_children}} c
    where (<allowed>)
      and case when (
          select {{chunks}} from {{documents}} d {_PARENT_OF} where d.id = c.document
      ) then true end
      and c.embedding is not null
    order by c.embedding <=> %(vector)s limit %(limit)s
"""
