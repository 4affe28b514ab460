"""What retrieval reads, step by step; it runs nothing itself.

A plan is a generator: it yields statements that may travel together, gets their rows, and returns
what it found. The same plan thus serves synchronous and asynchronous connections.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
from llama_index.postprocessor.webrag.selection import depth_weight
from numpy.typing import NDArray

from webrag.lexical.bm25 import (
    CorpusTotals,
    LexicalScores,
    child_key,
    score_children,
    score_pages,
    split_key,
    term_postings,
)
from webrag.lexical.fusion import fuse_ranks, fuse_scores
from webrag.retrieval.aggregation import (
    Candidate,
    ParentHit,
    drop_repeated_texts,
    fit_budget,
    group_by_parent,
)
from webrag.retrieval.models import RetrievalConfig
from webrag.retrieval.statements import PARENT_COLUMNS, Queries, Statement

__all__ = ["Found", "Plan", "find_chunks", "read_totals", "read_whole"]

T = TypeVar("T")
Rows: TypeAlias = list[tuple[Any, ...]]
Plan: TypeAlias = Generator[list[Statement], list[Rows], T]

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


def read_totals(queries: Queries) -> Plan[CorpusTotals]:
    """Size of the pages in scope."""
    (rows,) = yield [queries.totals()]
    return _totals(rows)


def read_whole(queries: Queries, budget: int) -> Plan[Found]:
    """Every parent in reading order, as many whole pages as the budget allows, nearest first."""
    totals_rows, pages = yield [queries.totals(), queries.pages_in_reading_order()]
    totals = _totals(totals_rows)
    kept_pages, _ = fit_budget(pages, lambda page: int(page[1]), budget)
    if not kept_pages:
        return Found(totals)
    (rows,) = yield [queries.parents_of_pages([page[0] for page in kept_pages])]
    parents = _parents(rows)
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
) -> Plan[Found]:
    """The parents of the children that match best by meaning and by words.

    Args:
        queries: Statements for the scope.
        config: Weights and limits.
        terms: Distinct index terms of the question.
        vector: Its embedding; all zeros when it has no meaning the model knows.
        budget: Tokens of parents at most.
        limit: Children taken from each leg, and kept after fusion.
    """
    is_small = yield from _is_small(queries, config.exact_scan_limit)
    batch = [
        queries.totals(),
        queries.lexical(terms),
        queries.search_settings(config.hnsw_ef_search),
    ]
    if any(vector):
        batch.append(queries.dense(vector, limit, exact=is_small))
    totals_rows, lexical_rows, _, *dense_rows = yield batch
    totals = _totals(totals_rows)
    postings, page_lengths = term_postings(terms, lexical_rows)
    lexical, idf = score_children(postings, totals)
    pages = score_pages(postings, page_lengths, totals)
    dense_keys = [child_key(*row) for rows in dense_rows for row in rows]
    lexical_keys = yield from _best_by_words(queries, lexical, limit)
    keys = list(dict.fromkeys([*lexical_keys, *dense_keys]))
    if not keys:
        return Found(totals, idf=idf)

    (rows,) = yield [queries.candidates([split_key(key) for key in keys], vector)]
    candidates = _candidates(rows, lexical, pages, config)
    kept = candidates[:limit]
    hits, is_trimmed = fit_budget(group_by_parent(kept), lambda hit: hit.tokens, budget)
    if not hits:
        return Found(totals, idf=idf)

    children = [split_key(match.key) for hit in hits for match in hit.matches]
    text_rows, parent_rows = yield [
        queries.texts(children),
        queries.parents([hit.parent_id for hit in hits]),
    ]
    return Found(
        totals,
        _parents(parent_rows),
        {hit.parent_id: hit for hit in hits},
        {child_key(row[0], row[1]): row[2:] for row in text_rows},
        idf,
        is_cut=is_trimmed or len(candidates) > limit,
    )


def _is_small(queries: Queries, limit: int) -> Plan[bool]:
    """Whether filters leave so few children that comparing all of them beats walking the index."""
    if queries.filters.has:
        (rows,) = yield [queries.matching_children(limit)]
        return int(rows[0][0]) <= limit
    if not queries.filters.restrict_pages:
        return False
    totals = yield from read_totals(queries)
    return totals.children <= limit


def _best_by_words(queries: Queries, scores: LexicalScores, limit: int) -> Plan[list[int]]:
    """The best children by BM25 among those that hold the wanted kinds of content."""
    if not queries.filters.has:
        return [int(key) for key in scores.best(limit)]
    ranked = [int(key) for key in scores.best(len(scores.ids))]
    kept: list[int] = []
    start, size = 0, limit * _FIRST_LOOK
    while start < len(ranked) and len(kept) < limit:
        block = ranked[start : start + size]
        (rows,) = yield [queries.allowed([split_key(key) for key in block])]
        allowed = {child_key(*row) for row in rows}
        kept += [key for key in block if key in allowed]
        start, size = start + size, size * _FIRST_LOOK
    return kept[:limit]


def _candidates(
    rows: Rows, children: LexicalScores, pages_scored: LexicalScores, config: RetrievalConfig
) -> list[Candidate]:
    """Scored candidates, best first, each text once."""
    keys = np.array([child_key(row[0], row[1]) for row in rows], dtype=np.int64)
    lexical = children.at(keys)
    pages = pages_scored.at(keys >> 16)
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


def _totals(rows: Rows) -> CorpusTotals:
    return CorpusTotals(*(int(value) for value in rows[0]))


def _parents(rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(PARENT_COLUMNS, row, strict=True)) for row in rows]
