"""One ranked list out of several sub-queries' results; it neither retrieves nor scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llama_index.postprocessor.webrag.selection import choose_distinct, shingles, within_budget

from webrag.orchestration.models import RankedChunk, SubQueryResult


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
    results: Sequence[SubQueryResult], *, redundancy_ceiling: float, token_budget: int
) -> Merged:
    """Union, near-duplicate removal and token budget, in that order.

    The result does not depend on the order of `results`. It is empty only when all are.

    Args:
        results: Ranked with the same scorer.
        redundancy_ceiling: Jaccard similarity of word 3-shingles above which the lower-scored
            of two chunks is left out.
        token_budget: Tokens at most; the best chunk is kept even when it alone exceeds them.
    """
    distinct, redundant = drop_redundant(union(results), redundancy_ceiling)
    kept = trim_to_budget(distinct, token_budget)
    return Merged(kept, redundant, len(distinct) - len(kept))


def union(results: Sequence[SubQueryResult]) -> tuple[RankedChunk, ...]:
    """Every chunk once with its highest score, best first; ties keep page order."""
    named = len(results) > 1
    best: dict[str, RankedChunk] = {}
    for result in results:
        for ranked in result.ranked:
            if named:
                ranked = ranked.model_copy(update={"source_sub_query": result.sub_query})
            key = str(ranked.chunk.chunk_id)
            if key not in best or _precedes(ranked, best[key]):
                best[key] = ranked
    return tuple(sorted(best.values(), key=_order))


def drop_redundant(
    chunks: Sequence[RankedChunk], ceiling: float
) -> tuple[tuple[RankedChunk, ...], int]:
    """The chunks that repeat no earlier one, and how many were dropped."""
    sets = [shingles(ranked.chunk.text) for ranked in chunks]
    kept = choose_distinct([0.0] * len(sets), sets, ceiling=ceiling)
    return tuple(chunks[place] for place in kept), len(chunks) - len(kept)


def trim_to_budget(chunks: Sequence[RankedChunk], token_budget: int) -> tuple[RankedChunk, ...]:
    """The longest head of `chunks` within the budget, never empty when `chunks` is not."""
    kept = within_budget((ranked.chunk.token_count for ranked in chunks), token_budget)
    return tuple(chunks[:kept])


def _order(ranked: RankedChunk) -> tuple[float, str, int, str]:
    chunk = ranked.chunk
    return -ranked.reranked_score, chunk.source_url, chunk.chunk_index, str(chunk.chunk_id)


def _precedes(left: RankedChunk, right: RankedChunk) -> bool:
    return _sub_query_order(left) < _sub_query_order(right)


def _sub_query_order(ranked: RankedChunk) -> tuple[float, str]:
    return -ranked.reranked_score, ranked.source_sub_query or ""


def documents_in(chunks: Iterable[RankedChunk]) -> tuple[str, ...]:
    """URLs that contributed a matched chunk, in order of first appearance."""
    matched = (item.chunk.source_url for item in chunks if not item.is_locality_expanded)
    return tuple(dict.fromkeys(matched))
