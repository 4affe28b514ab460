"""Turns the state of a run into its result; it decides and fetches nothing."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal
from uuid import UUID

from llama_index.postprocessor.webrag.selection import fill_budget, neighbours_in_order

from webrag.concurrency import all_of
from webrag.corpus.pages import Corpus, StoredParent
from webrag.ingestion.models import Anchor
from webrag.orchestration.confidence import band
from webrag.orchestration.models import OrchestrationResult, RankedChunk
from webrag.orchestration.question.wishes import without_effect
from webrag.orchestration.ranking.merger import documents_in
from webrag.orchestration.steps.judgement import question_weights
from webrag.orchestration.steps.research import Report, ResearchRun
from webrag.retrieval.aggregation import HTML_PREFERRED_FLAGS, select_surface
from webrag.retrieval.citations import extract_citation
from webrag.retrieval.models import CitationSpan, CorpusStats, RetrievalResult, RetrievedChunk

__all__ = ["build_result", "in_reading_order", "neighbours"]
_FLAGS = (*HTML_PREFERRED_FLAGS, "has_steps")


async def neighbours(
    ranked: Sequence[RankedChunk],
    corpus: Corpus,
    *,
    radius: int,
    min_score: float,
    token_budget: int,
) -> tuple[RankedChunk, ...]:
    """Chunks next to strong ones on their pages, scored 0.0 and marked as adjacent.

    None of them is in `ranked`, none twice. Neighbours of better chunks come first and all
    together stay within the budget.

    Args:
        ranked: Matched chunks, best first.
        corpus: Where the pages are stored.
        radius: Neighbours on each side; 0 for none.
        min_score: Chunks below it get no neighbours.
        token_budget: Tokens of neighbours at most; 0 for none.
    """
    strong = [item for item in ranked if item.reranked_score >= min_score]
    places = neighbours_in_order(
        (_around(item.chunk, radius) for item in strong),
        {(item.chunk.document_id, item.chunk.chunk_index) for item in ranked},
    )
    if not places or token_budget <= 0:
        return ()
    wanted: defaultdict[UUID, list[int]] = defaultdict(list)
    for page, index in places:
        wanted[page].append(index)
    pages = list(wanted)
    found = await all_of(corpus.neighbours(page, wanted[page]) for page in pages)
    by_place = {(row.document_id, row.chunk_index): row for rows in found for row in rows}
    rows = [by_place[place] for place in places if place in by_place]
    kept = fill_budget((row.token_end - row.token_start for row in rows), token_budget)
    return tuple(
        RankedChunk(chunk=_chunk(rows[place]), reranked_score=0.0, is_locality_expanded=True)
        for place in kept
    )


def in_reading_order(ranked: Iterable[RankedChunk]) -> tuple[RankedChunk, ...]:
    """One group per page, groups by best score, chunks of a page as they stand on it."""
    groups: defaultdict[str, list[RankedChunk]] = defaultdict(list)
    for item in ranked:
        groups[item.chunk.source_url].append(item)
    ordered = sorted(groups.values(), key=lambda group: -max(i.reranked_score for i in group))
    return tuple(
        item for group in ordered for item in sorted(group, key=lambda i: i.chunk.chunk_index)
    )


def _around(chunk: RetrievedChunk, radius: int) -> list[tuple[UUID, int]]:
    distances = [side * distance for distance in range(1, radius + 1) for side in (-1, 1)]
    indexes = (chunk.chunk_index + distance for distance in distances)
    return [(chunk.document_id, index) for index in indexes if index >= 0]


def _chunk(row: StoredParent) -> RetrievedChunk:
    flags = {name: getattr(row, name) for name in _FLAGS}
    is_lossy = any(flags[name] for name in HTML_PREFERRED_FLAGS)
    selected, surface = select_surface(row.text, row.html, is_lossy=is_lossy)
    return RetrievedChunk(
        chunk_id=row.id,
        document_id=row.document_id,
        source_url=row.url,
        site=row.site,
        title=row.title,
        text=row.text,
        selected_text=selected,
        surface=surface,
        section_heading=row.heading,
        heading_path=tuple(row.heading_path),
        chunk_index=row.chunk_index,
        char_start=row.char_start,
        char_end=row.char_end,
        token_start=row.token_start,
        token_end=row.token_end,
        score=0.0,
        raw_similarity=None,
        depth=row.depth,
        images=tuple(row.images),
        anchors=tuple(map(Anchor.model_validate, row.anchors)),
        published_at=row.published_at,
        fetched_at=row.fetched_at,
        **flags,
    )


async def build_result(run: ResearchRun, report: Report) -> OrchestrationResult:
    """The result of a run that has been judged at least once.

    Matched evidence comes first into the token budget; neighbours take what is left.
    """
    state, request = run.state, run.state.request
    assert state.analysis is not None, "a question is analysed before it is answered"
    assert state.decision is not None, "a run is judged before it is assembled"
    mode, matched, stats = await _evidence(run)
    adjacent = await _adjacent(run, matched, report) if mode == "chunk" else ()
    _tell_vain_wishes(run, mode, matched)
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
        wordings={
            wording.text: wording.term_idf
            for part in state.results
            for wording in part.retrieval.wordings
        },
        total_iterations=max((step.iteration for step in state.steps), default=0),
        total_urls_ingested=len(state.fetched),
        urls_fetched=tuple(state.fetched),
        page_sources={url: source for url, source in state.fetched.items() if source},
        expansion_budget=request.expansion_budget,
        rounds_allowed=request.max_iterations,
        rounds_ceiling=run.components.config.expansion.max_depth,
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
            whole = await run.components.searcher.retrieve(
                request.query,
                filters=state.filters,
                mode=request.retrieval_mode,
                context_budget=run.components.config.context_budget,
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


def _tell_vain_wishes(
    run: ResearchRun, mode: Literal["full_context", "chunk"], matched: Sequence[RankedChunk]
) -> None:
    analysis = run.state.analysis
    is_told = analysis is not None and analysis.method == "llm"
    # A model worked the wishes into its queries; so does a reranker that reads them.
    if is_told or run.components.reranker.takes_instruction:
        return
    if mode == "full_context" and run.wishes:
        run.state.warn("Intent and constraints had no effect: the pages are given whole.")
        return
    sentence = without_effect(run.wishes, [item.chunk for item in matched])
    run.state.warn(*([sentence] if sentence else []))


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
    config, state = run.components.config, run.state
    if not config.locality_enabled or state.request.is_search or not matched:
        return ()
    report("locality", "Grabbing adjacent context...")
    used = sum(item.chunk.token_count for item in matched)
    with state.clock.timed("locality_ms"):
        return await neighbours(
            matched,
            run.components.corpus,
            radius=config.locality_radius,
            min_score=run.profile.mediocre_score_floor,
            token_budget=config.context_budget - used,
        )


def _citations(chunks: Iterable[RankedChunk]) -> Iterable[CitationSpan]:
    for item in chunks:
        span = extract_citation(item.chunk, item.chunk.char_start, item.chunk.char_end)
        if span is not None:
            yield span
