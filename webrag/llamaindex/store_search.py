"""The ranked searches of the vector store; each begins a transaction if it needs one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.types import (
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from numpy.typing import NDArray

from webrag.ingestion.characters import storable
from webrag.lexical.analysis import query_terms
from webrag.lexical.bm25 import WordScores, child_key, fuse_scores, split_key
from webrag.llamaindex.store_filters import query_scope, refuse_unknown_keys
from webrag.llamaindex.stored_nodes import (
    STORED_NODE,
    STORED_NODE_WIDTH,
    matched_part,
    stored_node,
    tell,
)
from webrag.postgres.database import Connection, Rows
from webrag.retrieval.chunk_search import best_by_words, find_nearest, score_collection
from webrag.retrieval.statements import CHUNK_KEY, Queries


def select_varied(
    query: NDArray[np.float64], vectors: NDArray[np.float64], limit: int, *, threshold: float
) -> list[tuple[int, float]]:
    """Choose vectors that are near the query and unlike each other, in the order chosen.

    A zero vector is similar to nothing. The score is `threshold` times the cosine with the query,
    less `1 - threshold` times the largest cosine with earlier choices.
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
    {VectorStoreQueryMode.SPARSE, VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.HYBRID}
)

"""Modes that look for the words of `query_str`."""

# Up to here the matching rows are compared one by one (3.6 ms at 1.4 % of 100k rows, nothing
# missed); beyond, the graph is searched until enough rows match.
_EXACT_ROWS = 20_000

_MAX_EF_SEARCH = 1000  # pgvector's limit

_COLUMNS = f"{STORED_NODE}, {CHUNK_KEY}"

_DENSE_SHARE = 0.6  # as retrieval weighs the two legs; a query's alpha replaces it


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Candidates of the graph search, nearest chunks that `mmr` chooses from, and its threshold.

    With a `variety` of 1 it goes by similarity alone, with 0 by variety alone.
    """

    ef_search: int
    prefetch: int
    variety: float


async def search(
    connection: Connection, query: VectorStoreQuery, options: SearchOptions
) -> VectorStoreQueryResult:
    """Give the best chunks of retrievable pages, best first, on a connection in no transaction.

    Similarities are cosines (`default`), BM25 (`sparse`, `text_search`), the fused score within
    0 and 1 (`hybrid`), or what the chunk adds (`mmr`).
    """
    asked = _Search(connection, Queries(connection.collection, query_scope(query)), query, options)
    await refuse_unknown_keys(connection, query.filters)
    if query.mode == VectorStoreQueryMode.MMR:
        return await asked.varied()
    if query.mode == VectorStoreQueryMode.HYBRID:
        return await asked.hybrid()
    return await (asked.sparse() if query.mode in LEXICAL_MODES else asked.default())


@dataclass(frozen=True, slots=True)
class _Search:
    connection: Connection
    queries: Queries
    query: VectorStoreQuery
    options: SearchOptions

    async def default(self) -> VectorStoreQueryResult:
        # The graph gives rows in nearly the right order.
        rows = await self._nearest(self.query.similarity_top_k)
        return await self._by_meaning(rows, list(map(_row_similarity, rows)))

    async def varied(self) -> VectorStoreQueryResult:
        limit = self.query.similarity_top_k
        columns = f"{_COLUMNS}, c.embedding::halfvec"
        rows = await self._nearest(max(self.options.prefetch, limit), columns)
        if not rows:
            return _result([], [])
        vectors = np.array([row[-2].to_numpy() for row in rows], dtype=np.float64)
        asked = np.asarray(self.query.query_embedding, float)
        chosen = select_varied(asked, vectors, limit, threshold=self.options.variety)
        scores = [score for _, score in chosen]
        return await self._by_meaning([rows[place] for place, _ in chosen], scores)

    async def sparse(self) -> VectorStoreQueryResult:
        await self.connection.begin_snapshot()
        words, keys = await self._lexical(self.query.sparse_top_k or self.query.similarity_top_k)
        if not keys:
            return _result([], [])
        chunks = self.queries.chunks([split_key(key) for key in keys], STORED_NODE)
        rows = await chunks.fetch(self.connection)
        return _result(rows, words.children.at(np.array(keys, np.int64)).tolist())

    async def hybrid(self) -> VectorStoreQueryResult:
        """Every candidate of either leg is scored by both, so that the legs need not agree."""
        query, limit = self.query, self.query.similarity_top_k
        await self.connection.begin_snapshot(self._graph_settings(limit))
        words, found = await self._lexical(query.sparse_top_k or limit)
        nearest = await self._found_near(limit, CHUNK_KEY)
        keys = list(dict.fromkeys([*found, *(child_key(*row[:2]) for row in nearest)]))
        if not keys:
            return _result([], [])
        places = [split_key(key) for key in keys]
        distances = self.queries.distances(places, query.query_embedding or [], STORED_NODE)
        rows = await distances.fetch(self.connection)
        similarities = list(map(_row_similarity, rows))
        fused = _fused(query, words.children.at(np.array(keys, np.int64)), similarities)
        # Without a bound of its own the result is what either leg found, as with PGVectorStore.
        best = np.argsort(-fused, kind="stable")[: query.hybrid_top_k].tolist()
        result = _result([rows[place] for place in best], fused[best].tolist())
        pages = [places[place][0] for place in best]
        self._tell_matches(result, words, [similarities[place] for place in best], pages)
        return result

    async def _nearest(self, limit: int, columns: str = _COLUMNS) -> Rows:
        """Nearest chunks, best first."""
        await self.connection.begin_snapshot(self._graph_settings(limit))
        rows = await self._found_near(limit, columns)
        return sorted(rows, key=_row_similarity, reverse=True)

    async def _found_near(self, limit: int, columns: str) -> Rows:
        vector = self.query.query_embedding or []
        return await find_nearest(
            self.connection, self.queries, vector, limit, most=_EXACT_ROWS, columns=columns
        )

    def _graph_settings(self, limit: int) -> dict[str, str | int]:
        candidates = min(max(self.options.ef_search, limit), _MAX_EF_SEARCH)
        return {"hnsw.ef_search": candidates, "hnsw.iterative_scan": "relaxed_order"}

    async def _by_meaning(self, rows: Rows, scores: Sequence[float]) -> VectorStoreQueryResult:
        result = _result(rows, scores)
        if self.query.query_str and rows:
            words = await self._words()
            pages = [row[STORED_NODE_WIDTH] for row in rows]
            self._tell_matches(result, words, list(map(_row_similarity, rows)), pages)
        return result

    async def _lexical(self, limit: int) -> tuple[WordScores, list[int]]:
        """BM25 of all chunks that hold a word of the question, and the best of those in scope."""
        words = await self._words()
        return words, await best_by_words(self.connection, self.queries, words.children, limit)

    async def _words(self) -> WordScores:
        # Metadata are of chunks: how rare a word is, is counted over the whole collection.
        terms = query_terms(storable(self.query.query_str or ""))
        return await score_collection(self.connection, self.queries, terms)

    def _tell_matches(
        self,
        result: VectorStoreQueryResult,
        words: WordScores,
        similarities: Sequence[float],
        pages: Sequence[int],
    ) -> None:
        """Tell nodes what `LocalRerank` needs to score them as `WebRAG.search` does."""
        asked = self.query.query_str or ""
        of_pages = words.pages.at(np.array(pages, np.int64)).tolist()
        for node, *told in zip(result.nodes or (), similarities, of_pages, strict=True):
            whole = (0, len(node.get_content(MetadataMode.NONE)))
            part = matched_part(whole, {asked: (told[0], told[1])})
            tell(node, {"webrag_retrieved": {"term_idf": {asked: words.idf}, "matches": [part]}})


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


def _row_similarity(row: tuple[Any, ...]) -> float:
    distance: float | None = row[-1]
    # A zero vector is at distance NaN from everything, a missing one at none.
    return 0.0 if distance is None or math.isnan(distance) else 1.0 - distance


def _result(rows: Sequence[tuple[Any, ...]], scores: Sequence[float]) -> VectorStoreQueryResult:
    return VectorStoreQueryResult(
        nodes=[stored_node(*row[:STORED_NODE_WIDTH]) for row in rows],
        similarities=list(scores),
        ids=[row[0] for row in rows],
    )
