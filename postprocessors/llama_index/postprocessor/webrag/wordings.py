"""One score of a passage out of its scores under several wordings of a question; pure, no I/O."""

from collections.abc import Sequence
from typing import Final

__all__ = ["QUESTION_WEIGHT", "best_wording", "wordings_score"]

QUESTION_WEIGHT: Final = 2.0
"""How many times as much as another wording the question itself counts."""


def wordings_score(scores: Sequence[float], *, question_weight: float = QUESTION_WEIGHT) -> float:
    """Weighted mean of a passage's scores; with one score, that score.

    Args:
        scores: Under the question, then under each other wording of it; at least one.
        question_weight: Weight of the first; the others weigh 1.
    """
    if len(scores) == 1:
        return scores[0]
    total = question_weight * scores[0] + sum(scores[1:])
    return total / (question_weight + len(scores) - 1)


def best_wording(scores: Sequence[float]) -> int:
    """Place of the wording that liked a passage best; the question's, 0, where several did."""
    return max(range(len(scores)), key=lambda place: (scores[place], -place))
