"""Computes the signals of a ranking; pure functions over scores, they decide nothing."""

from collections.abc import Sequence
from statistics import fmean, pvariance
from typing import Final

from webrag.orchestration.config import OrchestrationConfig
from webrag.orchestration.models import EvaluationSignals, RankedChunk, ScoreProfile

__all__ = ["compute_signals", "recall_gain"]

_PLATEAU_SCORES: Final = 3


def compute_signals(
    chunks: Sequence[RankedChunk],
    *,
    redundant: int,
    truncated: bool,
    profile: ScoreProfile,
    config: OrchestrationConfig,
) -> EvaluationSignals:
    """Signals of a merged ranking.

    Adjacent context and chunks of full-context mode are left out: their scores say nothing.

    Args:
        chunks: Without near-duplicates, all scored by the scorer of `profile`.
        redundant: Near-duplicates that were left out of `chunks`.
        truncated: The retrieval was cut by the child limit or the token budget.
        profile: Thresholds of the scorer.
        config: Budget and sample sizes.
    """
    judged = [item for item in chunks if _is_judged(item)]
    scores = sorted((item.reranked_score for item in judged), reverse=True)
    top = scores[0] if scores else 0.0
    at_k = scores[min(config.score_cliff_rank_k, len(scores)) - 1] if scores else 0.0
    head = scores[: config.plateau_top_n] or [0.0]
    mean, variance = fmean(head), pvariance(head)
    plateau = len(scores) >= _PLATEAU_SCORES and variance < profile.plateau_variance_threshold
    fill = sum(item.chunk.token_count for item in judged) / config.context_budget
    repeated = redundant / (len(judged) + redundant) if redundant else 0.0
    return EvaluationSignals(
        top_score=top,
        score_at_k=at_k,
        score_cliff=top - at_k,
        score_variance=variance,
        score_mean=mean,
        chunks_above_threshold=sum(s >= top - profile.near_top_delta for s in scores),
        token_fill_ratio=fill,
        redundancy_ratio=repeated,
        source_document_count=len({item.chunk.source_url for item in judged}),
        avg_confidence=_mean_confidence(judged, config.plateau_top_n),
        is_plateau=plateau,
        is_cliff=top - at_k > profile.score_cliff_threshold,
        is_saturated=fill > config.token_budget_saturation_ratio,
        is_mediocre_plateau=plateau and mean < profile.mediocre_score_floor,
        has_high_redundancy=repeated >= config.high_redundancy_ratio,
        is_truncated=truncated,
    )


def recall_gain(now: EvaluationSignals, before: EvaluationSignals) -> float:
    """Relative growth of the number of chunks near the top; negative when it shrank."""
    base = before.chunks_above_threshold
    return (now.chunks_above_threshold - base) / max(base, 1)


def _is_judged(item: RankedChunk) -> bool:
    return not item.is_locality_expanded and item.chunk.raw_similarity is not None


def _mean_confidence(judged: Sequence[RankedChunk], top_n: int) -> float | None:
    ranked = sorted(judged, key=lambda item: item.reranked_score, reverse=True)[:top_n]
    given = [item.confidence for item in ranked if item.confidence is not None]
    return fmean(given) if given else None
