"""Builds the result of a retrieval from rows; it reads nothing and orders nothing but groups."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from webrag.retrieval.aggregation import (
    HTML_PREFERRED_FLAGS,
    Candidate,
    ParentHit,
    group_by_source,
    select_surface,
)
from webrag.retrieval.models import (
    ChildMatch,
    CorpusStats,
    RetrievalResult,
    RetrievedChunk,
    TimingInfo,
)
from webrag.retrieval.plans import Found
from webrag.retrieval.request import RetrievalRequest

__all__ = ["matched_result", "whole_result"]


def whole_result(found: Found, request: RetrievalRequest) -> RetrievalResult:
    """Every parent that was read, in reading order; nothing is scored, so all score 1.0."""
    chunks = tuple(_chunk(row, score=1.0) for row in found.parents)
    elapsed = _elapsed_ms(request)
    return RetrievalResult(
        mode="full_context",
        chunks=chunks,
        truncated=found.is_cut,
        warnings=request.warnings,
        corpus_stats=_stats(found, chunks),
        timing=TimingInfo(search_ms=elapsed, total_ms=elapsed),
    )


def matched_result(
    found: Found, request: RetrievalRequest, vector: Sequence[float], embed_ms: float
) -> RetrievalResult:
    """The parents that matched, grouped by page, each with its matching children."""
    chunks = group_by_source(
        _matched_chunk(row, found.hits[row["chunk_id"]], found.texts) for row in found.parents
    )
    elapsed = _elapsed_ms(request)
    return RetrievalResult(
        mode="chunk",
        chunks=chunks,
        query_embedding=tuple(vector),
        term_idf=found.idf,
        truncated=found.is_cut,
        warnings=request.warnings,
        corpus_stats=_stats(found, chunks),
        timing=TimingInfo(embed_ms=embed_ms, search_ms=elapsed - embed_ms, total_ms=elapsed),
    )


def _matched_chunk(
    row: Mapping[str, Any], hit: ParentHit, texts: Mapping[int, tuple[Any, ...]]
) -> RetrievedChunk:
    return _chunk(
        row,
        score=hit.score,
        raw_similarity=max(match.similarity for match in hit.matches),
        matches=tuple(_match(match, texts[match.key]) for match in hit.matches),
    )


def _match(candidate: Candidate, row: tuple[Any, ...]) -> ChildMatch:
    node_id, char_start, char_end, text, heading_path = row
    return ChildMatch(
        node_id=node_id,
        char_start=char_start,
        char_end=char_end,
        text=text,
        heading_path=tuple(heading_path or ()),
        similarity=candidate.similarity,
        lexical=candidate.lexical,
        page_lexical=candidate.page_lexical,
        fused=candidate.fused,
    )


def _chunk(
    row: Mapping[str, Any],
    *,
    score: float,
    raw_similarity: float | None = None,
    matches: tuple[ChildMatch, ...] = (),
) -> RetrievedChunk:
    values = dict(row)
    html = values.pop("html")
    is_lossy = any(values[flag] for flag in HTML_PREFERRED_FLAGS)
    selected, surface = select_surface(values["text"], html, is_lossy=is_lossy)
    return RetrievedChunk(
        **values,
        selected_text=selected,
        surface=surface,
        score=score,
        raw_similarity=raw_similarity,
        matches=matches,
    )


def _stats(found: Found, chunks: Sequence[RetrievedChunk]) -> CorpusStats:
    return CorpusStats(
        total_documents=found.totals.documents,
        total_parent_chunks=found.totals.parents,
        total_tokens=found.totals.tokens,
        documents_matched=tuple(dict.fromkeys(chunk.source_url for chunk in chunks)),
    )


def _elapsed_ms(request: RetrievalRequest) -> float:
    return (time.perf_counter() - request.started) * 1000
