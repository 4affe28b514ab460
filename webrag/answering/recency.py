"""Puts scores on a common scale and lifts recent pages a little; pure."""

from datetime import UTC, datetime
from typing import Final

from webrag.orchestration.confidence import quality
from webrag.orchestration.models import ScoreProfile

__all__ = ["boosted", "freshness"]

_YEAR_S: Final = 365.25 * 86_400


def freshness(published_at: datetime | None, *, window_years: int, now: datetime) -> float:
    """How recent a page is, from 1.0 now to 0.0 at the end of the window; 0.0 without a date.

    Dates in the future count as now.
    """
    if published_at is None:
        return 0.0
    dated = published_at if published_at.tzinfo else published_at.replace(tzinfo=UTC)
    age = max((now - dated).total_seconds() / _YEAR_S, 0.0)
    return max(0.0, 1.0 - age / window_years)


def boosted(score: float, fresh: float, *, profile: ScoreProfile, boost: float) -> float:
    """What passages are ordered by: the score normalised by its profile, plus the boost's share.

    Args:
        score: As the reranker gives it.
        fresh: From `freshness`.
        profile: Scale of `score`.
        boost: Added at a freshness of 1.
    """
    return quality(score, profile) + boost * fresh
