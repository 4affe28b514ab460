"""Turns the state of a run into its result; it decides and fetches nothing."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from llama_index.postprocessor.webrag.selection import fill_budget, neighbours_in_order

from webrag.concurrency import in_background
from webrag.ingestion.addresses import site_of
from webrag.orchestration.confidence import LOCAL, LOW, band, score_of
from webrag.orchestration.models import (
    NextLink,
    OrchestrationResult,
    PartCoverage,
    RankedChunk,
)
from webrag.orchestration.question.wishes import without_effect
from webrag.orchestration.ranking.reranker import in_order_of_units
from webrag.orchestration.state import RunState
from webrag.orchestration.steps.judgement import links_ahead, question_weights, wording_weights
from webrag.orchestration.steps.research import ResearchRun
from webrag.retrieval.chunk_search import in_reading_order
from webrag.retrieval.citations import extract_citation
from webrag.retrieval.markup import longest_piece
from webrag.retrieval.models import CitationSpan, CorpusStats, RetrievalResult, RetrievedChunk
from webrag.retrieval.search import Searcher

_MOST_NEXT_LINKS: Final = 8
_MOST_SITES: Final = 3
# Probability of a link worth naming; where none is as likely, half of the best is enough.
_LEAST_LINK: Final = 0.02
_LEAST_LINK_SHARE: Final = 0.5


async def neighbours(
    ranked: Sequence[RankedChunk],
    searcher: Searcher,
    *,
    radius: int,
    min_score: float,
    token_budget: int,
    as_of: datetime | None = None,
) -> tuple[RankedChunk, ...]:
    """Chunks next to strong ones on their pages, scored 0.0 and marked as adjacent.

    None of them is in `ranked`, none twice. Neighbours of better chunks come first, as many on
    each side as the radius, and all together stay within the budget of tokens. Chunks that score
    less than `min_score` have none. Of the texts that pages had at a moment where one is given.
    """
    strong = [item for item in ranked if item.reranked_score >= min_score]
    places = neighbours_in_order(
        (_around(item.chunk, radius) for item in strong),
        {(item.chunk.document_id, item.chunk.chunk_index) for item in ranked},
    )
    if not places or token_budget <= 0:
        return ()
    found = await searcher.chunks_at(places, as_of=as_of)
    kept = fill_budget((chunk.token_count for chunk in found), token_budget)
    return tuple(
        RankedChunk(chunk=found[place], reranked_score=0.0, is_locality_expanded=True)
        for place in kept
    )


def _around(chunk: RetrievedChunk, radius: int) -> list[tuple[UUID, int]]:
    distances = [side * distance for distance in range(1, radius + 1) for side in (-1, 1)]
    indexes = (chunk.chunk_index + distance for distance in distances)
    return [(chunk.document_id, index) for index in indexes if index >= 0]


async def build_result(run: ResearchRun) -> OrchestrationResult:
    """The result of a run that has been judged at least once.

    Matched evidence comes first into the token budget; neighbours take what is left.
    """
    state, question = run.state, run.state.question
    assert state.analysis is not None, "a question is analysed before it is answered"
    assert state.decision is not None, "a run is judged before it is assembled"
    mode, matched, stats = await _evidence(run)
    parts = _parts(state)
    matched = _told_apart(matched, parts)
    adjacent = await _adjacent(run, matched) if mode == "chunk" else ()
    _tell_vain_wishes(run, mode, matched)
    with state.clock.timed("merge_ms"):
        chunks = in_reading_order(
            (*matched, *adjacent),
            chunk=lambda item: item.chunk,
            score=lambda item: item.reranked_score,
        )
        citations = await in_background(_citations, chunks)
    links = await _next_links(run)
    matched_urls = tuple(
        dict.fromkeys(item.chunk.source_url for item in chunks if not item.is_locality_expanded)
    )
    stored: dict[str, int] = {}
    if band(state.confidence) != "high" and question.as_of is None:
        sites = list(dict.fromkeys(map(site_of, matched_urls)))[:_MOST_SITES]
        counts = await run.components.corpus.page_counts(sites)
        stored = {site: counts.get(site, 0) for site in sites}
    tokens = sum(item.chunk.token_count for item in chunks)
    run.report("assembly", f"Assembling results ({len(chunks)} chunks, {tokens} tokens)...")
    return OrchestrationResult(
        query=question.text,
        as_of=question.as_of,
        seed_urls=question.urls,
        chunks=chunks,
        citations=citations,
        query_analysis=state.analysis,
        units=state.units,
        parts=parts,
        expansion_steps=tuple(state.steps),
        corpus_stats=stats.model_copy(
            update={"documents_matched": matched_urls, "stored_of_sites": stored}
        ),
        timing=state.clock.timing(),
        mode=mode,
        final_decision=state.decision,
        final_signals=state.signals,
        term_idf=question_weights(state),
        wordings=wording_weights(state),
        also_searched=state.also_searched,
        absent_words=tuple(
            dict.fromkeys(word for each in state.results for word in each.retrieval.absent_words)
        ),
        total_iterations=max((step.iteration for step in state.steps), default=0),
        total_urls_ingested=len(state.fetched),
        urls_fetched=tuple(state.fetched),
        next_links=links,
        page_sources={url: source for url, source in state.fetched.items() if source},
        expansion_budget=question.expansion_budget,
        rounds_allowed=state.rounds,
        relevance_floor=run.profile.irrelevant_score,
        likely_floor=score_of(LOW, run.profile),
        rounds_ceiling=run.components.config.expansion.max_depth,
        confidence=state.confidence,
        confidence_band=band(state.confidence),
        degraded=tuple(state.degraded),
        warnings=tuple(state.warnings),
        partial=state.partial,
    )


def _parts(state: RunState) -> tuple[PartCoverage, ...]:
    ranked = {each.sub_query: each.ranked for each in state.results}
    return tuple(
        PartCoverage(
            text=part,
            confidence=state.part_confidence[part],
            confidence_band=band(state.part_confidence[part]),
            chunk_id=next((item.chunk.chunk_id for item in ranked[part]), None),
        )
        for part in state.parts
        if part in state.part_confidence
    )


def _told_apart(
    matched: Sequence[RankedChunk], parts: Sequence[PartCoverage]
) -> tuple[RankedChunk, ...]:
    """The passages, the best for each part marked as found for it, so that it is quoted for it."""
    best = {part.chunk_id: part.text for part in parts}
    return tuple(
        item.model_copy(update={"source_sub_query": best[item.chunk.chunk_id]})
        if item.chunk.chunk_id in best
        else item
        for item in matched
    )


async def _next_links(run: ResearchRun) -> tuple[NextLink, ...]:
    """Name where to look next, for callers who may name the pages in another call."""
    state = run.state
    is_sure = band(state.confidence) == "high" and not state.rounds
    if is_sure or state.clock.is_over or state.question.as_of is not None:
        return ()
    known = state.frontier
    left = known.candidates or known.weak if known else ()
    found = left or (await links_ahead(run)).candidates
    links = [each for each in found if each.anchor][:_MOST_NEXT_LINKS]
    best = max((each.score for each in links), default=0.0)
    least = min(_LEAST_LINK, best * _LEAST_LINK_SHARE)
    return tuple(each for each in links if each.score >= least)


async def _evidence(
    run: ResearchRun,
) -> tuple[Literal["full_context", "chunk"], tuple[RankedChunk, ...], CorpusStats]:
    state, question = run.state, run.state.question
    ranked = _ranked(run)
    if question.retrieval_mode != "chunk":
        with state.clock.timed("retrieval_ms"):
            whole = await run.components.searcher.read_whole(
                question.text,
                filters=state.filters,
                mode=question.retrieval_mode,
                context_budget=run.components.config.context_budget,
            )
        if whole is not None:
            state.warn(*whole.warnings)
            if not whole.truncated:
                return "full_context", _whole(whole, ranked), whole.corpus_stats
            count = whole.corpus_stats.total_documents
            state.warn(
                f"{'The page holds' if count == 1 else 'The pages hold'}"
                f" {whole.corpus_stats.total_tokens} tokens and the budget is"
                f" {run.components.config.context_budget}, so the passages that fit the question"
                " best are given instead of everything."
            )
    stats = next((r.retrieval.corpus_stats for r in state.results), None)
    return (
        "chunk",
        ranked[: question.top_k],
        stats or CorpusStats(total_documents=0, total_parent_chunks=0, total_tokens=0),
    )


def _ranked(run: ResearchRun) -> tuple[RankedChunk, ...]:
    """The passages as their units order them; parts take turns, other scorers order their own."""
    chunks = run.state.merged.chunks
    if run.state.part_confidence or run.profile.name != LOCAL.name:
        return chunks
    return in_order_of_units(chunks, run.state.units)


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


async def _adjacent(run: ResearchRun, matched: Sequence[RankedChunk]) -> tuple[RankedChunk, ...]:
    config, state = run.components.config, run.state
    if not config.locality_enabled or state.question.is_search or not matched:
        return ()
    run.report("locality", "Grabbing adjacent context...")
    used = sum(item.chunk.token_count for item in matched)
    with state.clock.timed("locality_ms"):
        return await neighbours(
            matched,
            run.components.searcher,
            radius=config.locality_radius,
            min_score=run.profile.mediocre_score_floor,
            token_budget=config.context_budget * run.scale - used,
            as_of=state.question.as_of,
        )


def _citations(chunks: Iterable[RankedChunk]) -> tuple[CitationSpan, ...]:
    """The longest part of each chunk that its page shows in one piece."""
    spans = []
    for item in chunks:
        start, end = (item.chunk.char_start + place for place in longest_piece(item.chunk.text))
        spans.append(extract_citation(item.chunk, start, end))
    return tuple(span for span in spans if span is not None)
