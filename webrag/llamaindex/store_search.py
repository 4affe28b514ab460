"""The ranked searches of the vector store, as steps that begin a transaction if they need one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_index.core.vector_stores.types import (
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql

from webrag.corpus.nodes import NODE_COLUMNS, node_from_columns
from webrag.corpus.schema import table
from webrag.lexical.analysis import query_terms
from webrag.lexical.bm25 import (
    CorpusTotals,
    LexicalScores,
    child_key,
    score_children,
    split_key,
    term_postings,
)
from webrag.lexical.fusion import fuse_scores
from webrag.llamaindex.store_filters import Condition, query_condition
from webrag.postgres.steps import Begin, Execute, Rows, Steps, begin_snapshot

__all__ = ["LEXICAL_MODES", "SearchOptions", "search", "select_varied"]


def select_varied(
    query: NDArray[np.float64], vectors: NDArray[np.float64], limit: int, *, threshold: float
) -> list[tuple[int, float]]:
    """Choose vectors that are near the query and unlike each other.

    Args:
        query: Shape (dimensions,).
        vectors: Shape (candidates, dimensions); a zero vector is similar to nothing.
        limit: Choices at most.
        threshold: 0 to 1; 1 is nearness alone, 0 variety alone.

    Returns:
        Row and score of each choice in the order chosen. The score is `threshold` times the
        cosine with the query, less `1 - threshold` times the largest cosine with earlier choices.
    """
    rows = _normalised(vectors)
    relevance = rows @ _normalised(query[None])[0]
    overlap = np.zeros(len(rows))
    is_free = np.ones(len(rows), bool)
    chosen: list[tuple[int, float]] = []
    for _ in range(min(limit, len(rows))):
        scores = threshold * relevance - (1.0 - threshold) * overlap
        best = int(np.argmax(np.where(is_free, scores, -np.inf)))
        chosen.append((best, float(scores[best])))
        is_free[best] = False
        cosines = rows @ rows[best]
        overlap = cosines if len(chosen) == 1 else np.maximum(overlap, cosines)
    return chosen


def _normalised(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = np.divide(
        vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0
    )
    return scaled


LEXICAL_MODES = frozenset(
    {
        VectorStoreQueryMode.SPARSE,
        VectorStoreQueryMode.TEXT_SEARCH,
        VectorStoreQueryMode.HYBRID,
    }
)

"""Modes that look for the words of `query_str`."""

# Up to here the matching rows are compared one by one (3.6 ms at 1.4 % of 100k rows, nothing
# missed); beyond, the graph is searched until enough rows match.
_EXACT_ROWS = 20_000

_MAX_EF_SEARCH = 1000  # pgvector's limit

_DENSE_SHARE = 0.6  # as retrieval weighs the two legs; a query's alpha replaces it

# Counting and comparing in one pass: two took half as long again.
_EXACT = """
with subset as materialized (
    select c.id, c.embedding <=> %s::halfvec as distance
    from {children} c join {documents} d on d.id = c.document
    where d.gone_at is null and c.embedding is not null and {condition} limit %s
), best as (select id, distance from subset order by distance limit %s)
select {columns}, best.distance, (select count(*) from subset)
from best join {children} c on c.id = best.id
"""

_GRAPH = """
select {columns}, c.embedding <=> %s::halfvec as distance
from {children} c join {documents} d on d.id = c.document
where d.gone_at is null and c.embedding is not null and {condition}
order by distance limit %s
"""

_TOTALS = """
select count(*), coalesce(sum(child_count), 0), coalesce(sum(term_count), 0)
from {documents} where gone_at is null
"""

_POSTINGS = """
select p.term,
       string_agg(int4send(d.id) || int4send(d.term_count) || int4send(length(p.packed)),
                  ''::bytea),
       string_agg(p.packed, ''::bytea)
from {postings} p join {documents} d on d.id = p.document
where p.term = any(%s) and d.gone_at is null group by p.term
"""

_ALLOWED = """
select k.place from unnest(%s::int[], %s::int[]) with ordinality k(document, ordinal, place)
join {children} c on c.document = k.document and c.ordinal = k.ordinal
join {documents} d on d.id = c.document
where {condition} order by k.place limit %s
"""

_NODES = """
select {columns}, {distance}
from unnest(%s::int[], %s::int[]) with ordinality k(document, ordinal, place)
join {children} c on c.document = k.document and c.ordinal = k.ordinal
order by k.place
"""

_NODE_WIDTH = 4  # of NODE_COLUMNS

_KEY_COLUMNS = "c.document, c.ordinal"


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search.

    Attributes:
        ef_search: Size of the graph search's candidate list.
        prefetch: Nearest chunks that `mmr` chooses from.
        variety: `mmr_threshold`: 1 is similarity alone, 0 variety alone.
    """

    ef_search: int = 200
    prefetch: int = 40
    variety: float = 0.5


def search(
    collection: str, query: VectorStoreQuery, options: SearchOptions
) -> Steps[VectorStoreQueryResult]:
    """Give the best chunks of retrievable pages, best first.

    Similarities are cosines (`default`), BM25 (`sparse`, `text_search`), the fused score within
    0 and 1 (`hybrid`), or what the chunk adds (`mmr`).
    """
    if query.mode == VectorStoreQueryMode.MMR:
        return _varied(collection, query, options)
    if query.mode == VectorStoreQueryMode.HYBRID:
        return _hybrid(collection, query, options)
    if query.mode in LEXICAL_MODES:
        return _sparse(collection, query)
    return _default(collection, query, options)


def _default(
    collection: str, query: VectorStoreQuery, options: SearchOptions
) -> Steps[VectorStoreQueryResult]:
    limit = query.similarity_top_k
    rows = yield from _nearest(collection, query, options, limit, NODE_COLUMNS)
    # The graph gives rows in nearly the right order.
    ranked = sorted(((_similarity(row[-1]), row) for row in rows), key=lambda pair: -pair[0])
    return _result([row for _, row in ranked], [similarity for similarity, _ in ranked])


def _varied(
    collection: str, query: VectorStoreQuery, options: SearchOptions
) -> Steps[VectorStoreQueryResult]:
    limit = query.similarity_top_k
    columns = f"{NODE_COLUMNS}, c.embedding::halfvec"
    prefetch = max(options.prefetch, limit)
    rows = yield from _nearest(collection, query, options, prefetch, columns)
    if not rows:
        return _result([], [])
    rows = sorted(rows, key=lambda row: -_similarity(row[-1]))
    vectors = np.array([row[-2].to_numpy() for row in rows], dtype=np.float64)
    chosen = select_varied(
        np.asarray(query.query_embedding, float), vectors, limit, threshold=options.variety
    )
    return _result([rows[place] for place, _ in chosen], [score for _, score in chosen])


def _sparse(collection: str, query: VectorStoreQuery) -> Steps[VectorStoreQueryResult]:
    limit = query.sparse_top_k or query.similarity_top_k
    yield begin_snapshot()
    scores, keys = yield from _lexical(collection, query, limit)
    if not keys:
        return _result([], [])
    rows = yield Execute(_nodes(collection, distance="null"), _columns_of(keys))
    return _result(rows, scores.at(np.array(keys, np.int64)).tolist())


def _hybrid(
    collection: str, query: VectorStoreQuery, options: SearchOptions
) -> Steps[VectorStoreQueryResult]:
    """Every candidate of either leg is scored by both, so that the legs need not agree."""
    limit = query.similarity_top_k
    yield _begin_graph_search(options, limit)
    scores, found = yield from _lexical(collection, query, query.sparse_top_k or limit)
    nearest = yield from _among_few(collection, query, limit, _KEY_COLUMNS)
    if nearest is None:
        nearest = yield from _in_graph(collection, query, limit, _KEY_COLUMNS)
    keys = list(dict.fromkeys([*found, *(child_key(*row[:2]) for row in nearest)]))
    if not keys:
        return _result([], [])
    vector = HalfVector(query.query_embedding or [])
    rows = yield Execute(
        _nodes(collection, distance="c.embedding <=> %s::halfvec"),
        (vector, *_columns_of(keys)),
    )
    fused = _fused(query, scores.at(np.array(keys, np.int64)), [_similarity(r[-1]) for r in rows])
    # Without a bound of its own the result is what either leg found, as with PGVectorStore.
    best = np.argsort(-fused, kind="stable")[: query.hybrid_top_k]
    return _result([rows[place] for place in best], fused[best].tolist())


def _fused(
    query: VectorStoreQuery, lexical: NDArray[np.float64], similarity: Sequence[float]
) -> NDArray[np.float64]:
    dense_share = _DENSE_SHARE if query.alpha is None else query.alpha
    return fuse_scores(
        lexical,
        similarity,
        np.zeros(len(lexical)),
        lexical_weight=1.0 - dense_share,
        page_weight=0.0,
    )


def _nearest(
    collection: str, query: VectorStoreQuery, options: SearchOptions, limit: int, columns: str
) -> Steps[Rows]:
    """Rows of the nearest chunks, the distance last; in nearly the right order.

    Among few it takes one statement, which sees one state of the corpus without a transaction.
    """
    found = yield from _among_few(collection, query, limit, columns)
    if found is None:
        yield _begin_graph_search(options, limit)
        found = yield from _in_graph(collection, query, limit, columns)
    return found


def _among_few(
    collection: str, query: VectorStoreQuery, limit: int, columns: str
) -> Steps[Rows | None]:
    """As `_nearest`; None when the query restricts nothing, or leaves too many chunks."""
    condition = query_condition(query)
    if condition is None:
        return None
    found = yield Execute(
        _compose(collection, _EXACT, condition, columns=columns),
        (HalfVector(query.query_embedding or []), *condition.values, _EXACT_ROWS + 1, limit),
    )
    if found and found[0][-1] > _EXACT_ROWS:
        return None
    return [row[:-1] for row in found]


def _in_graph(collection: str, query: VectorStoreQuery, limit: int, columns: str) -> Steps[Rows]:
    condition = query_condition(query) or Condition("true")
    return (
        yield Execute(
            _compose(collection, _GRAPH, condition, columns=columns),
            (HalfVector(query.query_embedding or []), *condition.values, limit),
        )
    )


def _begin_graph_search(options: SearchOptions, limit: int) -> Begin:
    candidates = min(max(options.ef_search, limit), _MAX_EF_SEARCH)
    return begin_snapshot({"hnsw.ef_search": candidates, "hnsw.iterative_scan": "relaxed_order"})


def _lexical(
    collection: str, query: VectorStoreQuery, limit: int
) -> Steps[tuple[LexicalScores, list[int]]]:
    """BM25 of all chunks that hold a word of the question, and the best that pass the filters.

    How rare a word is, is counted over the whole collection: a filter changes no score.
    """
    terms = query_terms(query.query_str or "")
    ((documents, children, length),) = yield Execute(_compose(collection, _TOTALS))
    rows = yield Execute(_compose(collection, _POSTINGS), (terms,))
    totals = CorpusTotals(int(documents), int(children), int(length))
    scores, _ = score_children(term_postings(terms, rows)[0], totals)
    condition = query_condition(query)
    if condition is None:
        return scores, scores.best(limit).tolist()
    ranked = scores.best(len(scores.ids)).tolist()
    allowed = yield Execute(
        _compose(collection, _ALLOWED, condition),
        (*_columns_of(ranked), *condition.values, limit),
    )
    return scores, [ranked[place - 1] for (place,) in allowed]


def _columns_of(keys: Sequence[int]) -> tuple[list[int], list[int]]:
    pairs = [split_key(key) for key in keys]
    return [document for document, _ in pairs], [ordinal for _, ordinal in pairs]


def _nodes(collection: str, *, distance: str) -> sql.Composed:
    return _compose(collection, _NODES, columns=NODE_COLUMNS, distance=distance)


def _compose(
    collection: str,
    statement: str,
    condition: Condition | None = None,
    *,
    columns: str = "",
    distance: str = "",
) -> sql.Composed:
    return sql.SQL(statement).format(
        children=table(collection, "data_children"),
        documents=table(collection, "documents"),
        postings=table(collection, "postings"),
        condition=(condition or Condition("true")).sql,
        columns=sql.SQL(columns),
        distance=sql.SQL(distance),
    )


def _similarity(distance: float | None) -> float:
    # A zero vector is at distance NaN from everything, a missing one at none.
    return 0.0 if distance is None or math.isnan(distance) else 1.0 - distance


def _result(rows: Sequence[tuple[Any, ...]], scores: Sequence[float]) -> VectorStoreQueryResult:
    return VectorStoreQueryResult(
        nodes=[node_from_columns(*row[:_NODE_WIDTH]) for row in rows],
        similarities=list(scores),
        ids=[row[0] for row in rows],
    )
