"""One score of a passage out of its scores under several wordings of a question; pure, no I/O."""

import math
from collections.abc import Sequence
from typing import Final

__all__ = ["HELD_WITHIN", "QUESTION_WEIGHT", "best_wording", "held_scores", "wordings_score"]

QUESTION_WEIGHT: Final = 2.0
"""How many times as much as another wording the question itself counts."""


HELD_WITHIN: Final = 3
"""A passage comes at most at so many times its place under the question alone."""


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


def held_scores(
    scores: Sequence[float], question_scores: Sequence[float], *, times: int = HELD_WITHIN
) -> list[float]:
    """Scores under which no passage falls far behind its place under the question alone.

    The passage that the question alone puts at place k comes, by the scores returned, at place
    `times` * k or before, wherever the wordings would put it. Nothing is lowered, and the best
    stays the best unless `times` is 1.

    Args:
        scores: Of each passage, under all wordings.
        question_scores: Of the same passages, under the question.
        times: At least 1.
    """
    held = list(scores)
    order = sorted(range(len(held)), key=lambda at: -question_scores[at])
    for place, at in enumerate(order, start=1):
        # Nothing comes behind the last place.
        if times * place >= len(held):
            break
        bar = sorted(held, reverse=True)[times * place - 1]
        if held[at] <= bar:
            held[at] = math.nextafter(bar, math.inf)
    return held
