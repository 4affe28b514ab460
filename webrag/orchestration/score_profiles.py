"""Evaluator thresholds for each scorer; it does not choose which scorer is in use."""

from typing import Final

from webrag.orchestration.models import ScoreProfile

__all__ = ["LOCAL", "PROFILES", "SIMILARITY", "ZEROENTROPY", "profile_for"]

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
)

# The local reranker's sigmoid is fitted so that .5 separates relevant from irrelevant passages;
# its top score separates answered from unanswered questions well only in its upper fifth.
LOCAL: Final = ScoreProfile(name="local", answered_score=0.8)

# Cohere and Jina publish relevance in [0, 1] without calibration; .5 is a strict floor for both.
COHERE: Final = ScoreProfile(name="cohere", mediocre_score_floor=0.4, answered_score=0.85)
JINA: Final = ScoreProfile(name="jina", mediocre_score_floor=0.3, answered_score=0.75)

# A cross-encoder's logistic scores lie near 0 or 1; what answers the question is seldom below .9.
# Taken from how such models are trained, not measured here.
CROSS_ENCODER: Final = ScoreProfile(
    name="cross_encoder", mediocre_score_floor=0.3, answered_score=0.9
)

PROFILES: Final[dict[str, ScoreProfile]] = {
    "zeroentropy": ZEROENTROPY,
    "cohere": COHERE,
    "jina": JINA,
    "local": LOCAL,
    "cross_encoder": CROSS_ENCODER,
    "none": SIMILARITY,
}


def profile_for(provider: str) -> ScoreProfile:
    """Thresholds for a reranker provider; those of raw similarity for `none`.

    Raises:
        KeyError: The provider is not one of `PROFILES`.
    """
    return PROFILES[provider]
