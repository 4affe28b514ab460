"""Scores retrieved chunks, with any LlamaIndex postprocessor; it does not decide what they mean."""

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final

from llama_index.postprocessor.webrag.local_scoring import PassageScorer
from llama_index.postprocessor.webrag.rerank_features import Passage
from llama_index.postprocessor.webrag.selection import choose_distinct, shingles, within_budget
from llama_index.postprocessor.webrag.wordings import (
    HELD_WITHIN,
    AskedWording,
    best_wording,
    held_scores,
    wordings_score,
)

from webrag.concurrency import all_of, in_background
from webrag.lexical.spelling import respelled
from webrag.orchestration.confidence import SIMILARITY
from webrag.orchestration.models import AnswerUnit, RankedChunk, ScoreProfile, SubQueryResult
from webrag.redaction import redacted_failure, remember_key
from webrag.retrieval.models import (
    ChildMatch,
    RetrievalResult,
    RetrievedChunk,
    WordingScores,
)

if TYPE_CHECKING:
    from uuid import UUID

    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, TextNode


_log = logging.getLogger(__name__)

# What a passage is embedded or reranked with; the rest of the metadata is for local features.
_SHOWN_KEYS: Final = ("title", "heading_path")
_ROUNDING: Final = 1e-6
_LEAST_ODDS: Final = 1e-6
# Log odds of a passage beside the score of its best unit; docs/experiments.md has other weights.
_PASSAGE_WEIGHT: Final = 5.0


@dataclass(eq=False, repr=False)
class ChunkReranker:
    """Ranks chunks by the best of their matched children, as a scorer or postprocessor sees them.

    Safe to use from several runs at once. When the postprocessor fails and when it gives a score
    outside 0 and 1, which no threshold could judge, another scorer takes its place. Without either,
    chunks are ranked by raw similarity, never by the fused score, whose top is always near 1.

    Attributes:
        postprocessor: Any, or what scores passages without one; None to keep the order of the
            search, with raw similarities as scores.
        profile: Thresholds for its scores, or for raw similarity when there is none.
        fallback: Scores what the postprocessor cannot; None keeps the order of the search.
        fallback_profile: Thresholds for the scores of the fallback, or for raw similarity.
        top_n: Chunks kept.
        missing: Why there is no postprocessor although one is wanted, a sentence for users.
    """

    postprocessor: "BaseNodePostprocessor | PassageScorer | None"
    profile: ScoreProfile
    _: KW_ONLY
    fallback: PassageScorer | None = None
    fallback_profile: ScoreProfile = SIMILARITY
    top_n: int = 20
    missing: str | None = None

    def __post_init__(self) -> None:
        remember_key(self.postprocessor)

    @property
    def takes_instruction(self) -> bool:
        """True where the postprocessor is told what the caller wants."""
        return "instruction" in getattr(type(self.postprocessor), "model_fields", ())

    async def rerank(
        self,
        query: str,
        result: RetrievalResult,
        *,
        instruction: str | None = None,
        top_n: int | None = None,
    ) -> tuple[tuple[RankedChunk, ...], str | None]:
        """The chunks best first, at most `top_n`, and a sentence when the scorer failed or lacks.

        With a sentence, the scores are those of `rank_by_fallback` and its profile's. Where the
        result was retrieved for other wordings of the question as well, each scores every chunk,
        and a chunk counts as `wordings_score` says. The instruction is for postprocessors with a
        field of that name; `top_n` takes the place of the number given at construction.
        """
        if self.postprocessor is None:
            return await self.rank_by_fallback(query, result, top_n=top_n), self.missing
        if result.is_empty:
            return (), None
        query = respelled(query, result.also_searched)
        try:
            tables, confidences = await self._scored(query, result, instruction)
        # Postprocessors are foreign classes; what their SDKs raise shares no base.
        except Exception as error:  # noqa: BLE001
            said = redacted_failure(f"{type(error).__name__}: {error}").rstrip(".: ")
            cause = f"failed ({said})"
        else:
            # Within the interval but for rounding; cut to it, logits lose their order.
            least, most = -_ROUNDING, 1.0 + _ROUNDING
            outside = [s for each in tables for s in each.values() if not least <= s <= most]
            if not outside:
                ranked = _ranked(result, tables, confidences)
                return ranked[: top_n or self.top_n], None
            cause = (
                f"gave a score of {outside[0]:g}, which is not between 0 and 1 (see ScaledScores)"
            )
        instead = "keep the order of the search"
        if self.fallback is not None:
            instead = "are ranked by the local reranker instead"
        note = f"The reranker {type(self.postprocessor).__name__} {cause}; passages {instead}."
        _log.warning("%s", note)
        return await self.rank_by_fallback(query, result, top_n=top_n), note

    async def _scored(
        self, query: str, result: RetrievalResult, instruction: str | None
    ) -> tuple[list[dict[str, float]], dict[str, float]]:
        """For each wording node id to score, and node id to the scorer's own confidence."""
        scorer = self.postprocessor
        if isinstance(scorer, PassageScorer):
            return await in_background(_scored_passages, scorer, query, result), {}
        from llama_index.core.schema import QueryBundle

        assert scorer is not None
        if instruction is not None and self.takes_instruction:
            scorer = scorer.model_copy(update={"instruction": instruction})
        texts = (query, *result.wordings)
        scored = await all_of(
            scorer.apostprocess_nodes(
                child_nodes(result, wording=place), query_bundle=QueryBundle(query_str=text)
            )
            for place, text in enumerate(texts)
        )
        scores = [
            {item.node.node_id: item.score for item in each if item.score is not None}
            for each in scored
        ]
        confidences = {
            item.node.node_id: float(found)
            for each in reversed(scored)
            for item in each
            if (found := item.node.metadata.get("confidence")) is not None
        }
        return scores, confidences

    async def rank_by_fallback(
        self, query: str, result: RetrievalResult, *, top_n: int | None = None
    ) -> tuple[RankedChunk, ...]:
        """The chunks as they are ranked when the scorer fails; scores for `fallback_profile`."""
        if result.is_empty:
            return ()
        query = respelled(query, result.also_searched)
        if self.fallback is None:
            ranked = self.passthrough(result)
        else:
            tables = await in_background(_scored_passages, self.fallback, query, result)
            ranked = _ranked(result, tables, {})
        return ranked[: top_n or self.top_n]

    def passthrough(self, result: RetrievalResult) -> tuple[RankedChunk, ...]:
        """The chunks in the order in which words and meaning together put them.

        Their scores are raw similarities, whose scale thresholds are made for, 0.0 where there is
        none: the first chunk gets the highest of them, and so on.
        """
        scores = {
            match.node_id: tuple(
                map(_unit, (match.similarity, *(each.similarity for each in match.wordings)))
            )
            for chunk in result.chunks
            for match in chunk.matches
            if result.wordings
        }
        found = [
            _rank_one(chunk, scores, {}, list(result.wordings))
            if scores
            else RankedChunk(chunk=chunk, reranked_score=_unit(chunk.raw_similarity or 0.0))
            for chunk in result.chunks
        ]
        found = _held(found, _under_question(found, scores)) if scores else found
        ordered = sorted(found, key=lambda item: -item.chunk.score)
        best = sorted((item.reranked_score for item in found), reverse=True)
        return tuple(
            item.model_copy(update={"reranked_score": score})
            for item, score in zip(ordered, best, strict=True)
        )


def _scored_passages(
    scorer: PassageScorer, query: str, result: RetrievalResult
) -> list[dict[str, float]]:
    """For the question and each other wording of it node id to score.

    The scorer is told what retrieval found under each.
    """
    found = [(chunk, match) for chunk in result.chunks for match in chunk.matches]
    matches = [match for _, match in found]
    passages = [
        Passage(match.text, chunk.title or "", match.heading_path or chunk.heading_path)
        for chunk, match in found
    ]
    told: list[Sequence[ChildMatch | WordingScores]] = [matches]
    told += zip(*(match.wordings for match in matches), strict=True)
    known = [(query, result.term_idf), *result.wordings.items()]
    wordings = [
        AskedWording(
            text, idf, [each.similarity for each in own], [each.page_lexical for each in own]
        )
        for (text, idf), own in zip(known, told, strict=True)
    ]
    tables = scorer.score_passages(passages, wordings)
    return [
        {match.node_id: score for match, score in zip(matches, scores, strict=True)}
        for scores in tables
    ]


def _ranked(
    result: RetrievalResult, tables: Sequence[Mapping[str, float]], confidences: Mapping[str, float]
) -> tuple[RankedChunk, ...]:
    """Every chunk with a score, best first; by tables for the question and each wording of it."""
    # Some rerankers keep the best only: what one leaves out fits its wording badly.
    scores = {
        node_id: tuple(_unit(table.get(node_id, 0.0)) for table in tables)
        for node_id in dict.fromkeys(key for table in tables for key in table)
    }
    ranked = [
        _rank_one(chunk, scores, confidences, list(result.wordings))
        for chunk in result.chunks
        if any(match.node_id in scores for match in chunk.matches)
    ]
    return _best(_held(ranked, _under_question(ranked, scores)) if result.wordings else ranked)


async def rank_parts(
    reranker: ChunkReranker,
    retrieved: Iterable[tuple[str, RetrievalResult]],
    *,
    instruction: str | None = None,
    top_n: int | None = None,
) -> tuple[list[tuple[RankedChunk, ...]], str | None]:
    """Every part's chunks, best first, and a sentence when the scorer failed for one of them.

    With a sentence, all are ranked by the fallback: scores of two scorers must not meet in one
    ranking. Each part comes with what was retrieved for it; the rest is as for
    `ChunkReranker.rerank`.
    """
    parts = list(retrieved)
    outcomes = await all_of(
        reranker.rerank(query, result, instruction=instruction, top_n=top_n)
        for query, result in parts
    )
    notes = [note for _, note in outcomes if note]
    if not notes:
        return [ranked for ranked, _ in outcomes], None
    ranked = await all_of(
        reranker.rank_by_fallback(query, result, top_n=top_n) for query, result in parts
    )
    return ranked, notes[0]


def _rank_one(
    chunk: RetrievedChunk,
    scores: Mapping[str, tuple[float, ...]],
    confidences: Mapping[str, float],
    wordings: Sequence[str],
) -> RankedChunk:
    """A chunk as good as its best child; one of its children at least has scores."""

    def order(match: ChildMatch) -> tuple[bool, float]:
        own = scores.get(match.node_id)
        return own is None, -(match.fused if own is None else wordings_score(own))

    matches = tuple(sorted(chunk.matches, key=order))
    best = scores[matches[0].node_id]
    place = best_wording(best)
    return RankedChunk(
        chunk=chunk if matches == chunk.matches else chunk.model_copy(update={"matches": matches}),
        reranked_score=wordings_score(best),
        confidence=confidences.get(matches[0].node_id),
        wording_scores=best if wordings else (),
        best_wording=wordings[place - 1] if place else None,
    )


def _held(
    ranked: Sequence[RankedChunk], own: Sequence[float], *, times: int = HELD_WITHIN
) -> list[RankedChunk]:
    """The chunks with scores under which none is far behind its place by scores of its own."""
    held = held_scores([item.reranked_score for item in ranked], own, times=times)
    return [
        item
        if score == item.reranked_score
        else item.model_copy(update={"reranked_score": _unit(score)})
        for item, score in zip(ranked, held, strict=True)
    ]


def _under_question(
    ranked: Iterable[RankedChunk], scores: Mapping[str, tuple[float, ...]]
) -> list[float]:
    """The best score of each chunk under the question alone."""
    return [
        max(scores[m.node_id][0] for m in item.chunk.matches if m.node_id in scores)
        for item in ranked
    ]


def child_nodes(result: RetrievalResult, *, wording: int = 0) -> "list[NodeWithScore]":
    """A result's matched children as nodes, with every number a reranker may want as metadata.

    Title and heading path are part of what a reranker reads; the other keys are excluded from
    every rendering of the text. The numbers are those of a wording of the result, 0 for the
    question's.
    """
    from llama_index.core.schema import NodeWithScore

    term_idf = [result.term_idf, *result.wordings.values()][wording]
    nodes = []
    for chunk in result.chunks:
        for match in chunk.matches:
            told = match.wordings[wording - 1] if wording else match
            nodes.append(NodeWithScore(node=_node(chunk, match, told, term_idf), score=told.fused))
    return nodes


def _node(
    chunk: RetrievedChunk,
    match: ChildMatch,
    told: ChildMatch | WordingScores,
    term_idf: dict[str, float],
) -> "TextNode":
    from llama_index.core.schema import TextNode

    metadata: dict[str, Any] = {
        "title": chunk.title or "",
        # As text: rerankers read the metadata as it prints.
        "heading_path": " > ".join(match.heading_path or chunk.heading_path),
        "source_url": chunk.source_url,
        "document_id": str(chunk.document_id),
        "depth": chunk.depth,
        "similarity": told.similarity,
        "lexical": told.lexical,
        "page_lexical": told.page_lexical,
        "term_idf": term_idf,
    }
    hidden = [key for key in metadata if key not in _SHOWN_KEYS]
    return TextNode(
        id_=match.node_id,
        text=match.text,
        metadata=metadata,
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=list(metadata),
        start_char_idx=match.char_start,
        end_char_idx=match.char_end,
    )


def _best(ranked: Iterable[RankedChunk]) -> tuple[RankedChunk, ...]:
    # Fused retrieval scores break ties, so that equal scores keep a meaningful order.
    return tuple(sorted(ranked, key=lambda item: (-item.reranked_score, -item.chunk.score)))


def _unit(score: float) -> float:
    return min(max(score, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged result.

    Attributes:
        chunks: Best first, without near-duplicates, within the token budget.
        redundant: Near-duplicates that were left out.
        trimmed: Chunks left out because the budget was full.
    """

    chunks: tuple[RankedChunk, ...] = ()
    redundant: int = 0
    trimmed: int = 0


def merge(
    results: Sequence[SubQueryResult],
    *,
    parts: Collection[str] = (),
    redundancy_ceiling: float,
    token_budget: int,
) -> Merged:
    """Union, near-duplicate removal and token budget, in that order.

    The result does not depend on the order of `results`. It is empty only when all are.

    Args:
        results: Ranked with the same scorer.
        parts: Queries that take turns: what one puts at place k is lifted, of two parts, to about
            place 2k.
        redundancy_ceiling: Jaccard similarity of word 3-shingles above which the lower-scored
            of two chunks is left out.
        token_budget: Tokens at most; the best chunk is kept even when it alone exceeds them.
    """
    found = _in_turn(union(results), [each for each in results if each.sub_query in parts])
    texts = [shingles(ranked.chunk.text) for ranked in found]
    distinct = choose_distinct([0.0] * len(texts), texts, ceiling=redundancy_ceiling)
    chunks = [found[place] for place in distinct]
    kept = within_budget((ranked.chunk.token_count for ranked in chunks), token_budget)
    return Merged(tuple(chunks[:kept]), len(found) - len(chunks), len(chunks) - kept)


def _in_turn(
    found: Sequence[RankedChunk], parts: Sequence[SubQueryResult]
) -> Sequence[RankedChunk]:
    """The chunks, best first, scored so that the best for each part are among the first."""
    for part in sorted(parts, key=lambda part: part.sub_query):
        own = {item.chunk.chunk_id: item.reranked_score for item in part.ranked}
        asked = [own.get(item.chunk.chunk_id, 0.0) for item in found]
        found = _held(found, asked, times=len(parts))
    return sorted(found, key=_order)


def in_order_of_units(
    ranked: Sequence[RankedChunk], units: Iterable[AnswerUnit]
) -> tuple[RankedChunk, ...]:
    """Order passages by what their best units and they themselves score.

    The scores of those with units are dealt out among them again, so that thresholds keep their
    meaning. None comes far behind the place that its own score gave it.
    """
    best: dict[UUID, float] = {}
    for unit in units:
        best[unit.chunk_id] = max(unit.score, best.get(unit.chunk_id, -math.inf))
    judged = [item for item in ranked if item.chunk.chunk_id in best]
    order = sorted(judged, key=lambda item: -best[item.chunk.chunk_id] - _worth(item))
    scores = sorted((item.reranked_score for item in judged), reverse=True)
    dealt = {item.chunk.chunk_id: score for item, score in zip(order, scores, strict=True)}
    moved = [
        item.model_copy(
            update={"reranked_score": dealt.get(item.chunk.chunk_id, item.reranked_score)}
        )
        for item in ranked
    ]
    own = [item.reranked_score for item in ranked]
    return tuple(sorted(_held(moved, own), key=_order))


def _worth(item: RankedChunk) -> float:
    kept = min(max(item.reranked_score, _LEAST_ODDS), 1 - _LEAST_ODDS)
    return _PASSAGE_WEIGHT * math.log(kept / (1 - kept))


def union(results: Sequence[SubQueryResult]) -> tuple[RankedChunk, ...]:
    """Every chunk once with its highest score, best first; ties keep page order."""
    found = [
        ranked.model_copy(update={"source_sub_query": result.sub_query})
        if len(results) > 1
        else ranked
        for result in sorted(results, key=lambda result: result.sub_query)
        for ranked in result.ranked
    ]
    best: dict[UUID, RankedChunk] = {}
    for ranked in sorted(found, key=lambda ranked: -ranked.reranked_score):
        best.setdefault(ranked.chunk.chunk_id, ranked)
    return tuple(sorted(best.values(), key=_order))


def _order(ranked: RankedChunk) -> tuple[float, str, int, str]:
    chunk = ranked.chunk
    return -ranked.reranked_score, chunk.source_url, chunk.chunk_index, str(chunk.chunk_id)
