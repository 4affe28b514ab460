"""Gets the pages a question names, then retrieves and ranks the passages an answer is made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from llama_index.postprocessor.webrag.selection import age_years

from webrag.answering.guardrails import unquotable_spans
from webrag.answering.models import (
    AnswerConfig,
    Evidence,
    ExecutionPlan,
    RetrieveStep,
)
from webrag.answering.page_summary import SURE, page_summary
from webrag.concurrency import all_of, in_background
from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.pages import Corpus
from webrag.ingestion.fetch_context import listening
from webrag.lexical.analysis import analyze
from webrag.lexical.spelling import respelled
from webrag.orchestration.confidence import HIGH, LOW, MEDIUM, below_high, quality
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.judge import Encode, Judgement, judged
from webrag.orchestration.models import ProgressCallback, RankedChunk, ScoreProfile, SubQueryResult
from webrag.orchestration.ranking.reranker import ChunkReranker, rank_parts, union
from webrag.orchestration.steps.judgement import matched_lists
from webrag.orchestration.steps.research import acquire_seeds
from webrag.question import Question
from webrag.retrieval.filters import NO_FILTERS, SearchFilters
from webrag.retrieval.models import RetrievalConfig, RetrievalResult
from webrag.retrieval.search import Searcher


def freshness(published_at: datetime | None, *, window_years: int, now: datetime) -> float:
    """Rate how recent a page is, from 1.0 now or later to 0.0 at the window's end or undated."""
    if published_at is None:
        return 0.0
    return max(0.0, 1.0 - age_years(published_at, now) / window_years)


def boosted(score: float, fresh: float, *, profile: ScoreProfile, boost: float) -> float:
    """Give what passages are ordered by: the normalised score plus `boost` at a freshness of 1."""
    return quality(score, profile) + boost * fresh


_COVERED_PASSAGES: Final = 5

IN_PART: Final = MEDIUM - 0.01
"""Most confidence of what leaves a part of the question out, whatever the rest is worth."""


def is_missing(part: Judgement) -> bool:
    """Tell whether nothing that was found answers a question, or a part of one."""
    return part.confidence < LOW


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything the retrieve and rerank steps found, the best evidence first.

    Judged is the whole question, by its text, then each part where it has several; the outline is
    the headings of the page, and the description its own, where the question is what that is about.
    """

    evidence: tuple[Evidence, ...]
    step: RetrieveStep
    judged: tuple[tuple[str, Judgement], ...] = ()
    outline: tuple[tuple[Evidence, int, int], ...] = ()
    description: str = ""
    degraded: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Parts of a question of several that nothing found answers."""
        return tuple(text for text, part in self.judged[1:] if is_missing(part))


def confidence_of_parts(parts: Sequence[tuple[str, Judgement]]) -> float:
    """Give the weakest confidence of the parts; where only some are missing, the rest's."""
    of_parts = parts[1:] or parts
    found = [part.confidence for _, part in of_parts if not is_missing(part)]
    if not found:
        return min((part.confidence for _, part in of_parts), default=0.0)
    return min(*found, 1.0 if len(found) == len(of_parts) else IN_PART)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The chunks retrieved for the whole question, then for each need, and what limited them."""

    parts: tuple[tuple[str, RetrievalResult], ...]
    years: tuple[int, ...] = ()
    as_of: datetime | None = None

    @property
    def count(self) -> int:
        """Distinct chunks."""
        return len({chunk.chunk_id for _, result in self.parts for chunk in result.chunks})

    @property
    def also_searched(self) -> dict[str, str]:
        """Words of the question that no searched page has, and what was searched for instead."""
        return {
            word: found for _, result in self.parts for word, found in result.also_searched.items()
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """The remarks of the searches, such as the version of a library that was searched."""
        said = (each for _, result in self.parts for each in result.warnings)
        return tuple(dict.fromkeys(said))

    def as_searched(self, plan: ExecutionPlan) -> ExecutionPlan:
        """The plan these are for, in the words that were searched for."""
        changed = self.also_searched
        return plan.model_copy(
            update={
                "revised_query": respelled(plan.revised_query, changed),
                "sub_queries": tuple(respelled(each, changed) for each in plan.sub_queries),
            }
        )


@dataclass(frozen=True, slots=True)
class EvidenceFinder:
    """Finds passages by meaning and by words, and judges them by words alone without `encode`.

    Safe to use from several tasks at once.
    """

    searcher: Searcher
    corpus: Corpus
    reranker: ChunkReranker
    retrieval: RetrievalConfig
    config: AnswerConfig
    encode: Encode | None = None

    async def retrieve(
        self, plan: ExecutionPlan, filters: SearchFilters = NO_FILTERS
    ) -> Candidates:
        """Retrieve candidates for each need of a coherent plan."""
        queries = tuple(dict.fromkeys((plan.revised_query, *plan.sub_queries)))
        results = await all_of(
            self.searcher.retrieve(query, wordings=() if place else plan.wordings, filters=filters)
            for place, query in enumerate(queries)
        )
        pairs = tuple(zip(queries, results, strict=True))
        found = Candidates(pairs, filters.years or (), filters.as_of)
        words = found.also_searched
        return replace(found, parts=tuple((respelled(q, words), each) for q, each in found.parts))

    async def rank(self, candidates: Candidates) -> Gathered:
        """Rank candidates as the engine does, and judge the best passages of them."""
        ranked, degraded = await rank_parts(self.reranker, candidates.parts)
        profile = self.reranker.fallback_profile if degraded else self.reranker.profile
        parts = tuple(
            SubQueryResult(sub_query=query, retrieval=result, ranked=chunks)
            for (query, result), chunks in zip(candidates.parts, ranked, strict=True)
        )
        kept = self._evidence(parts, profile)
        judged_parts = await in_background(_judged_parts, parts, kept, self.encode, profile)
        confidence = confidence_of_parts(judged_parts)
        if confidence >= HIGH and candidates.as_of is None:
            # As in the engine: an entry of a list of links names the answer and does not say it.
            lists = await matched_lists(self.corpus, (each.chunk for each in kept))
            others = [each for each in kept if each.chunk.chunk_id not in lists]
            if lists and others:
                judged_parts = await in_background(
                    _judged_parts, parts, others, self.encode, profile
                )
                least = confidence_of_parts(judged_parts)
                confidence = confidence if least >= HIGH else below_high(confidence)
        left_out = [span.kind for evidence in kept for span in evidence.unquotable]
        whole = candidates.parts[0][1]
        step = self._step(
            candidates.years,
            documents=whole.corpus_stats.total_documents,
            candidates=candidates.count,
            passages=len(kept),
            excluded_instructions=left_out.count("instruction"),
            excluded_secrets=left_out.count("secret"),
            also_searched=candidates.also_searched,
            coverage=_coverage(whole.term_idf, kept[:_COVERED_PASSAGES]),
            confidence=confidence,
        )
        return Gathered(
            evidence=kept,
            step=step,
            judged=judged_parts,
            degraded=(degraded,) if degraded else (),
        )

    async def summary(
        self, plan: ExecutionPlan, filters: SearchFilters
    ) -> tuple[Gathered | None, int]:
        """Give what the page that filters leave says it is about, and how many they leave."""
        found, pages = await page_summary(self.searcher, plan.revised_query, filters)
        if found is None:
            return None, pages
        chunks = {
            chunk.chunk_id: Evidence(
                place, chunk, 1.0, 1.0, unquotable_spans(chunk.text, chunk.char_start)
            )
            for place, chunk in enumerate(found.chunks, start=1)
        }
        step = self._step(
            filters.years or (),
            documents=pages,
            candidates=len(chunks),
            passages=len(chunks),
            coverage=1.0,
            confidence=SURE,
        )
        return Gathered(
            evidence=tuple(chunks.values()),
            step=step,
            judged=((plan.original_query, Judgement(found.opening, SURE)),),
            outline=tuple(
                (chunks[each.chunk_id], each.char_start, each.char_end) for each in found.outline
            ),
            description=found.description,
        ), pages

    def _step(self, years: Sequence[int], **found: Any) -> RetrieveStep:
        return RetrieveStep(
            year_mode="explicit" if years else "none",
            requested_years=tuple(sorted(years)),
            recent_year_window=self.config.recent_year_window,
            fusion_method=self.retrieval.fusion_method,
            **found,
        )

    def _evidence(
        self, parts: Sequence[SubQueryResult], profile: ScoreProfile
    ) -> tuple[Evidence, ...]:
        """The best passages, among them the best for each part."""
        now = datetime.now(UTC)
        found = [self._one(item, profile, now) for item in union(parts)]
        # Of equal passages the one that retrieval put first stays first.
        found.sort(key=lambda each: (-each.order, -each.chunk.score))
        leading = {part.ranked[0].chunk.chunk_id for part in parts if part.ranked}
        kept = sorted(found, key=lambda each: each.chunk.chunk_id not in leading)
        chosen = {each.chunk.chunk_id for each in kept[: self.config.evidence_passages]}
        ordered = (each for each in found if each.chunk.chunk_id in chosen)
        return tuple(replace(each, number=n) for n, each in enumerate(ordered, start=1))

    def _one(self, item: RankedChunk, profile: ScoreProfile, now: datetime) -> Evidence:
        chunk, config = item.chunk, self.config
        fresh = freshness(chunk.published_at, window_years=config.recent_year_window, now=now)
        order = boosted(
            item.reranked_score, fresh, profile=profile, boost=config.rerank_recency_boost
        )
        unquotable = unquotable_spans(chunk.text, chunk.char_start)
        return Evidence(0, chunk, item.reranked_score, order, unquotable)


def _judged_parts(
    parts: Sequence[SubQueryResult],
    kept: Sequence[Evidence],
    encode: Encode | None,
    profile: ScoreProfile,
) -> tuple[tuple[str, Judgement], ...]:
    """Judge the question and its parts by what may be quoted of the passages that are evidence."""
    quotable = {each.chunk.chunk_id: each.quotable_chunk for each in kept}
    # Of a passage that several parts found, as the whole question did.
    ranked = {item.chunk.chunk_id: item for part in reversed(parts) for item in part.ranked}
    whole = [ranked[each.chunk.chunk_id] for each in kept]
    return tuple(
        (
            part.sub_query,
            judged(
                part.sub_query,
                [
                    item.model_copy(update={"chunk": quotable[item.chunk.chunk_id]})
                    for item in (part.ranked if place else whole)
                    if item.chunk.chunk_id in quotable
                ],
                wordings=part.retrieval.wordings,
                term_idf=part.retrieval.term_idf,
                encode=encode,
                profile=profile,
            ),
        )
        for place, part in enumerate(parts)
    )


def _coverage(term_idf: Mapping[str, float], evidence: Sequence[Evidence]) -> float:
    """Share of the weight of the question's terms that passages and their headings hold."""
    held = {term for each in evidence for term in analyze(_passage(each))}
    total = sum(term_idf.values())
    return sum(idf for term, idf in term_idf.items() if term in held) / total if total else 0.0


def _passage(evidence: Evidence) -> str:
    chunk = evidence.chunk
    text = chunk.focus.text if chunk.focus else chunk.text
    return " ".join((chunk.title or "", *chunk.heading_path, text))


@dataclass(frozen=True, slots=True)
class NamedPages:
    """Reads the named pages, and with `deep` those their links lead to."""

    acquirer: PageAcquirer
    engine: OrchestratorEngine

    async def __call__(
        self, question: Question, progress: ProgressCallback
    ) -> tuple[Sequence[str] | None, tuple[str, ...]]:
        """Give addresses to search, None for all that is stored, and what failed to work."""
        if question.is_search:
            return question.source_urls, ()
        if question.as_of is not None:
            return (*question.urls, *question.stored), ()
        if question.is_deep:
            found = await self.engine.run(question, on_progress=progress)
            matched = (ranked.chunk.source_url for ranked in found.chunks)
            urls = (*found.seed_urls, *question.stored, *found.urls_fetched, *matched)
            return list(dict.fromkeys(urls)), (*found.degraded, *found.warnings)
        if not question.urls:
            return question.stored, ()
        for url in question.urls:
            await progress("ingestion", f"Checking if {url} is indexed...")
        notes: dict[str, None] = {}
        with listening(lambda sentence: notes.update({sentence: None})):
            seeds = await acquire_seeds(self.acquirer, question.urls)
        pages = (page.url for page in seeds.pages)
        return [*pages, *question.stored], (*notes, *seeds.warnings)
