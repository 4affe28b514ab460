"""Turns the state of a run into its result; it decides and fetches nothing."""

from collections.abc import Iterable, Sequence
from typing import Literal

from webrag.orchestration.confidence import band
from webrag.orchestration.judgement import question_weights
from webrag.orchestration.locality import in_reading_order, neighbours
from webrag.orchestration.merger import documents_in
from webrag.orchestration.models import OrchestrationResult, RankedChunk
from webrag.orchestration.research import Report, ResearchRun
from webrag.retrieval.citations import extract_citation
from webrag.retrieval.models import CitationSpan, CorpusStats, RetrievalResult

__all__ = ["assemble"]


async def assemble(run: ResearchRun, report: Report) -> OrchestrationResult:
    """The result of a run that has been judged at least once.

    Matched evidence comes first into the token budget; neighbours take what is left.
    """
    state, request = run.state, run.state.request
    assert state.analysis is not None, "a question is analysed before it is answered"
    assert state.decision is not None, "a run is judged before it is assembled"
    mode, matched, stats = await _evidence(run)
    adjacent = await _adjacent(run, matched, report) if mode == "chunk" else ()
    with state.clock.timed("merge_ms"):
        chunks = in_reading_order((*matched, *adjacent))
        citations = tuple(_citations(chunks))
    tokens = sum(item.chunk.token_count for item in chunks)
    report("assembly", f"Assembling results ({len(chunks)} chunks, {tokens} tokens)...")
    return OrchestrationResult(
        query=request.query,
        seed_urls=request.urls,
        chunks=chunks,
        citations=citations,
        query_analysis=state.analysis,
        expansion_steps=tuple(state.steps),
        corpus_stats=stats.model_copy(update={"documents_matched": documents_in(chunks)}),
        timing=state.clock.timing(),
        mode=mode,
        final_decision=state.decision,
        final_signals=state.signals,
        term_idf=question_weights(state),
        total_iterations=max((step.iteration for step in state.steps), default=0),
        total_urls_ingested=len(state.fetched),
        urls_fetched=tuple(state.fetched),
        page_sources={url: source for url, source in state.fetched.items() if source},
        expansion_budget=request.expansion_budget,
        rounds_allowed=request.max_iterations,
        rounds_ceiling=run.parts.config.expansion.max_depth,
        confidence=state.confidence,
        confidence_band=band(state.confidence),
        degraded=tuple(state.degraded),
        warnings=tuple(state.warnings),
        partial=state.partial,
    )


async def _evidence(
    run: ResearchRun,
) -> tuple[Literal["full_context", "chunk"], tuple[RankedChunk, ...], CorpusStats]:
    state, request = run.state, run.state.request
    if request.retrieval_mode != "chunk":
        with state.clock.timed("retrieval_ms"):
            whole = await run.parts.searcher.retrieve(
                request.query,
                filters=state.filters,
                mode=request.retrieval_mode,
                context_budget=run.parts.config.context_budget,
            )
        state.warn(*whole.warnings)
        if whole.mode == "full_context":
            return "full_context", _whole(whole, state.merged.chunks), whole.corpus_stats
    stats = next((r.retrieval.corpus_stats for r in state.results), None)
    matched = state.merged.chunks if request.top_k is None else state.merged.chunks[: request.top_k]
    return (
        "chunk",
        matched,
        stats or CorpusStats(total_documents=0, total_parent_chunks=0, total_tokens=0),
    )


def _whole(whole: RetrievalResult, ranked: Sequence[RankedChunk]) -> tuple[RankedChunk, ...]:
    """Every chunk of the pages; those that were matched keep their relevance, others have 0."""
    scores = {item.chunk.chunk_id: item for item in ranked}
    return tuple(
        RankedChunk(
            chunk=chunk,
            reranked_score=known.reranked_score if known else 0.0,
            confidence=known.confidence if known else None,
            source_sub_query=known.source_sub_query if known else None,
        )
        for chunk in whole.chunks
        for known in [scores.get(chunk.chunk_id)]
    )


async def _adjacent(
    run: ResearchRun, matched: Sequence[RankedChunk], report: Report
) -> tuple[RankedChunk, ...]:
    config, state = run.parts.config, run.state
    if not config.locality_enabled or state.request.is_search or not matched:
        return ()
    report("locality", "Grabbing adjacent context...")
    used = sum(item.chunk.token_count for item in matched)
    with state.clock.timed("locality_ms"):
        return await neighbours(
            matched,
            run.parts.corpus,
            radius=config.locality_radius,
            min_score=run.profile.mediocre_score_floor,
            token_budget=config.context_budget - used,
        )


def _citations(chunks: Iterable[RankedChunk]) -> Iterable[CitationSpan]:
    for item in chunks:
        span = extract_citation(item.chunk, item.chunk.char_start, item.chunk.char_end)
        if span is not None:
            yield span
