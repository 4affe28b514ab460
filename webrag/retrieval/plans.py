"""What a search reads, step by step; it runs nothing itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llama_index.postprocessor.webrag.selection import depth_weight
from numpy.typing import NDArray

from webrag.lexical.bm25 import (
    CorpusTotals,
    LexicalScores,
    TermPostings,
    child_key,
    score_children,
    score_pages,
    split_key,
    term_postings,
)
from webrag.lexical.fusion import fuse_ranks, fuse_scores
from webrag.postgres.steps import Begin, Execute, Rows, Steps, alone, together
from webrag.retrieval.aggregation import (
    Candidate,
    ParentHit,
    drop_repeated_texts,
    fit_budget,
    group_by_parent,
)
from webrag.retrieval.models import RetrievalConfig, TermStatistics
from webrag.retrieval.statements import CHUNK_KEY, PARENT_COLUMNS, Queries

__all__ = [
    "Found",
    "best_by_words",
    "find_chunks",
    "find_nearest",
    "parents_of",
    "read_totals",
    "read_whole",
    "totals_of",
]

# Looked up per wanted child, four times as many each round: nearly always one round, and never
# many where a kind of content is rare.
_FIRST_LOOK = 4


@dataclass(frozen=True, slots=True)
class Found:
    """What a plan found, as rows.

    Attributes:
        parents: Column name to value, one mapping per parent.
        hits: Matched parents by id; empty when everything was read.
        texts: Child key to node id, offsets, text and heading path.
        idf: Weight of each term of the question.
        is_cut: Something that matched was left out.
    """

    totals: CorpusTotals
    parents: list[dict[str, Any]] = field(default_factory=list)
    hits: dict[Any, ParentHit] = field(default_factory=dict)
    texts: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    idf: dict[str, float] = field(default_factory=dict)
    is_cut: bool = False


def read_totals(queries: Queries) -> Steps[CorpusTotals]:
    """Size of the pages in scope."""
    return totals_of((yield from alone(queries.totals())))


def read_whole(queries: Queries, budget: int) -> Steps[Found]:
    """Every parent in reading order, as many whole pages as the budget allows, nearest first."""
    totals_rows, pages = yield from together(queries.totals(), queries.pages_in_reading_order())
    totals = totals_of(totals_rows)
    kept_pages, _ = fit_budget(pages, lambda page: int(page[1]), budget)
    if not kept_pages:
        return Found(totals)
    parents = parents_of(
        (yield from alone(queries.parents_of_pages([page[0] for page in kept_pages])))
    )
    kept, _ = fit_budget(parents, lambda row: int(row["token_end"] - row["token_start"]), budget)
    return Found(totals, kept, is_cut=len(kept) < totals.parents)


def find_chunks(
    queries: Queries,
    config: RetrievalConfig,
    *,
    terms: Sequence[str],
    vector: Sequence[float],
    budget: int,
    limit: int,
    statistics: TermStatistics = "filtered",
) -> Steps[Found]:
    """The parents of the children that match best by meaning and by words.

    Args:
        queries: Statements for the scope.
        config: Weights and limits.
        terms: Distinct index terms of the question.
        vector: Its embedding; all zeros when it has no meaning the model knows.
        budget: Tokens of parents at most.
        limit: Children taken from each leg, and kept after fusion.
        statistics: Where it is counted how rare a term is and how long a chunk.
    """
    totals, words, dense_keys = yield from _both_legs(
        queries, config, terms=terms, vector=vector, limit=limit, statistics=statistics
    )
    lexical_keys = yield from best_by_words(queries, words.chunks, limit)
    keys = list(dict.fromkeys([*lexical_keys, *dense_keys]))
    if not keys:
        return Found(totals, idf=words.idf)

    rows = yield from alone(queries.candidates([split_key(key) for key in keys], vector))
    candidates = _candidates(rows, words, config)
    kept = candidates[:limit]
    hits, is_trimmed = fit_budget(group_by_parent(kept), lambda hit: hit.tokens, budget)
    if not hits:
        return Found(totals, idf=words.idf)

    children = [split_key(match.key) for hit in hits for match in hit.matches]
    text_rows, parent_rows = yield from together(
        queries.texts(children),
        queries.parents([hit.parent_id for hit in hits]),
    )
    return Found(
        totals,
        parents_of(parent_rows),
        {hit.parent_id: hit for hit in hits},
        {child_key(row[0], row[1]): row[2:] for row in text_rows},
        words.idf,
        is_cut=is_trimmed or len(candidates) > limit,
    )


@dataclass(frozen=True, slots=True)
class _Words:
    """What the words of a question say of chunks and of pages, and how rare each term is."""

    chunks: LexicalScores
    pages: LexicalScores
    idf: dict[str, float]


def _both_legs(
    queries: Queries,
    config: RetrievalConfig,
    *,
    terms: Sequence[str],
    vector: Sequence[float],
    limit: int,
    statistics: TermStatistics,
) -> Steps[tuple[CorpusTotals, _Words, list[int]]]:
    """Size of the scope, BM25, and the keys of the nearest chunks, in one round trip if it can."""
    few = config.exact_scan_limit
    is_apart = statistics == "corpus" and queries.scope.restricts_pages
    batch = [
        queries.totals(),
        queries.lexical(terms),
        queries.search_settings(config.hnsw_ef_search),
    ]
    batch += [queries.sizes(), queries.frequencies(terms)] if is_apart else []
    if any(vector):
        batch.append(_first_try(queries, vector, limit, few))
    totals_rows, lexical_rows, _, *others = yield from together(*batch)
    totals = totals_of(totals_rows)
    words = _score_words(
        *term_postings(terms, lexical_rows),
        *((totals_of(others[0]), others[1]) if is_apart else (totals, None)),
    )
    if not any(vector):
        return totals, words, []
    nearest = others[-1]
    if queries.scope.restricts and _are_too_many(nearest, few):
        nearest = yield from alone(queries.nearest_in_graph(vector, limit))
    return totals, words, [child_key(*row[:2]) for row in nearest]


def _score_words(
    postings: Sequence[TermPostings],
    page_lengths: Mapping[int, int],
    totals: CorpusTotals,
    frequency_rows: Rows | None,
) -> _Words:
    """BM25 with the statistics of the postings themselves, or with those that are given."""
    in_pages = in_children = None
    if frequency_rows is not None:
        in_pages = {term: pages for term, pages, _ in frequency_rows}
        in_children = {term: children for term, _, children in frequency_rows}
    chunks, idf = score_children(postings, totals, in_children)
    return _Words(chunks, score_pages(postings, page_lengths, totals, in_pages), idf)


def find_nearest(
    queries: Queries,
    vector: Sequence[float],
    limit: int,
    *,
    most: int,
    columns: str,
    begin: Begin | None = None,
) -> Steps[Rows]:
    """Rows of the nearest chunks, in nearly the right order: the columns, and the distance.

    Args:
        queries: Statements for the scope.
        vector: What the chunks are compared with.
        limit: Rows at most.
        most: Up to here what the scope leaves is compared one by one, and nothing is missed;
            beyond, the graph is searched until enough rows match.
        columns: Of `data_children c`.
        begin: Begins a transaction with the settings of the graph, if none has been begun: one
            statement sees one state of the corpus without.
    """
    if queries.scope.restricts:
        rows = yield _first_try(queries, vector, limit, most, columns)
        if not _are_too_many(rows, most):
            return [row[:-1] for row in rows]
    if begin:
        yield begin
    return (yield queries.nearest_in_graph(vector, limit, columns))


def _first_try(
    queries: Queries, vector: Sequence[float], limit: int, most: int, columns: str = CHUNK_KEY
) -> Execute:
    if queries.scope.restricts:
        return queries.nearest_of_few(vector, limit, most, columns)
    return queries.nearest_in_graph(vector, limit, columns)


def _are_too_many(rows: Rows, most: int) -> bool:
    return bool(rows) and int(rows[0][-1]) > most


def best_by_words(queries: Queries, scores: LexicalScores, limit: int) -> Steps[list[int]]:
    """Keys of the best chunks by BM25 among those in scope, best first."""
    if not queries.scope.restricts_chunks:
        return [int(key) for key in scores.best(limit)]
    ranked = [int(key) for key in scores.best(len(scores.ids))]
    kept: list[int] = []
    start, size = 0, limit * _FIRST_LOOK
    while start < len(ranked) and len(kept) < limit:
        block = ranked[start : start + size]
        rows = yield from alone(queries.allowed([split_key(key) for key in block]))
        allowed = {child_key(*row) for row in rows}
        kept += [key for key in block if key in allowed]
        start, size = start + size, size * _FIRST_LOOK
    return kept[:limit]


def _candidates(rows: Rows, words: _Words, config: RetrievalConfig) -> list[Candidate]:
    """Scored candidates, best first, each text once."""
    keys = np.array([child_key(row[0], row[1]) for row in rows], dtype=np.int64)
    lexical = words.chunks.at(keys)
    pages = words.pages.at(keys >> 16)
    # A vector without length has no direction: pgvector answers NaN.
    similarity = np.nan_to_num(np.array([row[6] for row in rows], dtype=np.float64))
    eligible = (lexical > 0) | (similarity >= config.similarity_floor)
    fused = np.zeros(len(rows))
    fused[eligible] = _fuse(lexical[eligible], similarity[eligible], pages[eligible], config)
    scored = [
        Candidate(
            key=int(keys[i]),
            document=row[0],
            parent_id=row[2],
            parent_tokens=row[5],
            text_hash=row[3],
            depth_weight=depth_weight(
                row[4], rate=config.depth_decay_rate, floor=config.depth_floor
            ),
            similarity=float(similarity[i]),
            lexical=float(lexical[i]),
            page_lexical=float(pages[i]),
            fused=float(fused[i]),
        )
        for i, row in enumerate(rows)
        if eligible[i]
    ]
    return drop_repeated_texts(sorted(scored, key=lambda each: (-each.fused, each.key)))


def _fuse(
    lexical: NDArray[np.float64],
    similarity: NDArray[np.float64],
    pages: NDArray[np.float64],
    config: RetrievalConfig,
) -> NDArray[np.float64]:
    if config.fusion_method == "rrf":
        return fuse_ranks(lexical, similarity)
    return fuse_scores(
        lexical,
        similarity,
        pages,
        lexical_weight=config.lexical_weight,
        page_weight=config.page_weight,
    )


def totals_of(rows: Rows) -> CorpusTotals:
    """What `Queries.totals` or `Queries.sizes` counted."""
    return CorpusTotals(*(int(value) for value in rows[0]))


def parents_of(rows: Rows) -> list[dict[str, Any]]:
    """Parents that a statement selected, column name to value."""
    return [dict(zip(PARENT_COLUMNS, row, strict=True)) for row in rows]
