"""Turns chances into bands, and holds each scorer's thresholds; it does not stop the loop."""

import math
from collections.abc import Iterable
from itertools import compress, pairwise
from typing import Final

from webrag.orchestration.models import ConfidenceBand, ScoreProfile

# Of the specification. The confidence is the chance that one of the first three units answers.
HIGH: Final = 0.8
MEDIUM: Final = 0.7
LOW: Final = 0.5

# What scores of `mediocre_score_floor` and `answered_score` are on the common scale.
_MEDIOCRE: Final = 0.5
_ANSWERED: Final = 0.8

_EDGE: Final = 1e-3

_FLOAT_ERROR: Final = 1e-9  # .29 * 100 lies a little below 29


def below_high(found: float) -> float:
    """A confidence that is not high, but otherwise what was found.

    Where what scores well only lists links there is reason to look on, and none to call the answer
    missing.
    """
    return min(found, HIGH - 0.01)


def is_list_of_links(text: str, start: int, links: Iterable[tuple[int, int]]) -> bool:
    """Tell whether more than half of a passage's letters and digits are words of links.

    Args:
        text: The passage.
        start: Where it begins on its page.
        links: Start and end of the page's links, in the same count.
    """
    linked = bytearray(len(text))
    for first, last in links:
        left, right = max(first - start, 0), min(last - start, len(text))
        if left < right:
            linked[left:right] = b"\x01" * (right - left)
    return sum(map(str.isalnum, compress(text, linked))) * 2 > sum(map(str.isalnum, text))


def quality(score: float, profile: ScoreProfile) -> float:
    """A score on a common scale: the mediocre floor becomes .5, the answered score .8."""
    return _interpolated(score, _scale(profile))


def score_of(value: float, profile: ScoreProfile) -> float:
    """The score whose `quality` is a value in [0, 1]."""
    return _interpolated(value, [(good, score) for score, good in _scale(profile)])


def _scale(profile: ScoreProfile) -> list[tuple[float, float]]:
    """Scores of a profile and how good they are; both rise."""
    floor = min(max(profile.mediocre_score_floor, _EDGE), 1 - 2 * _EDGE)
    answered = min(max(profile.answered_score, floor + _EDGE), 1 - _EDGE)
    return [(0.0, 0.0), (floor, _MEDIOCRE), (answered, _ANSWERED), (1.0, 1.0)]


def _interpolated(value: float, knots: Iterable[tuple[float, float]]) -> float:
    at = min(max(value, 0.0), 1.0)
    for (left, low), (right, high) in pairwise(knots):
        if at <= right:
            return low + (high - low) * (at - left) / (right - left)
    return 1.0


def band(value: float) -> ConfidenceBand:
    """Band of a confidence; `none` means that the corpus seems not to hold the answer."""
    if value >= HIGH:
        return "high"
    if value >= MEDIUM:
        return "medium"
    return "low" if value >= LOW else "none"


def in_hundredths(value: float) -> float:
    """A confidence rounded down to two decimals, so that the number people see is in its band."""
    return math.floor(value * 100 + _FLOAT_ERROR) / 100


# The specification's numbers: calibrated scores, .8 means about 80 % relevance.
ZEROENTROPY: Final = ScoreProfile(name="zeroentropy")

# Cosines of a static embedding crowd together: unrelated passages already reach .2 to .3, good
# ones seldom pass .7. The floor is the one the specification names for raw similarity.
SIMILARITY: Final = ScoreProfile(
    name="similarity",
    mediocre_score_floor=0.35,
    plateau_variance_threshold=0.005,
    near_top_delta=0.08,
    answered_score=0.65,
    irrelevant_score=0.2,
)

# The local reranker's sigmoid is fitted so that .5 separates relevant from irrelevant passages;
# its top score separates answered from unanswered questions well only in its upper fifth.
LOCAL: Final = ScoreProfile(name="local")

# Cohere and Jina publish relevance in [0, 1] without calibration; .5 is a strict floor for both.
COHERE: Final = ScoreProfile(name="cohere", mediocre_score_floor=0.4, answered_score=0.85)

JINA: Final = ScoreProfile(name="jina", mediocre_score_floor=0.3, answered_score=0.75)

# A cross-encoder's logistic scores lie near 0 or 1; what answers the question is seldom below .9.
# Taken from how such models are trained, not measured here.
CROSS_ENCODER: Final = ScoreProfile(
    name="cross_encoder", mediocre_score_floor=0.3, answered_score=0.9
)

PROFILES: Final[dict[str, ScoreProfile]] = {
    **{each.name: each for each in (ZEROENTROPY, COHERE, JINA, LOCAL, CROSS_ENCODER)},
    "none": SIMILARITY,
}
