"""How far evidence may be trusted, and each scorer's thresholds; it does not stop the loop."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from llama_index.postprocessor.webrag.wordings import wordings_score

from webrag.lexical.analysis import analyze, term_weight
from webrag.orchestration.models import ConfidenceBand, RankedChunk, ScoreProfile

# Shares of questions whose evidence was among the five best passages, 80 questions over four
# documentation sites, links followed from one page: .88 from .8 on, .64 from .5, .37 from .3, .14
# below; five of the eight unanswerable questions lie below .3, all below .5.
HIGH: Final = 0.8

MEDIUM: Final = 0.5

LOW: Final = 0.3

# The fit: logit P = .6 logit(quality of the best score) + 1.0 coverage. An intercept and further
# signals changed nothing beyond its error.
_QUALITY_SLOPE: Final = 0.6

_COVERAGE_SLOPE: Final = 1.0

# The same curve where other wordings of the question were given: what scores well under all of
# them is far more often right. On 80 questions over four whole sites, each judged by the others:
# AUC .90; .97 answered in the band `high`, .62 in `medium`, .67 of three in `low`, .17 in `none`.
_WORDINGS_QUALITY_SLOPE: Final = 1.5

_WORDINGS_COVERAGE_SLOPE: Final = 1.8

# Stands in where a question has no weighted terms; the mean over the questions of the fit.
_NEUTRAL_COVERAGE: Final = 0.7

# The passages a reader looks at first; the measurements looked at as many.
_PASSAGES: Final = 5

# What never names what was asked for by its name speaks of something else.
OF_ANOTHER: Final = 0.45

_EDGE: Final = 1e-3

_FLOAT_ERROR: Final = 1e-9  # .29 * 100 lies a little below 29

_BELOW_HIGH: Final = HIGH - 0.01


def confidence(
    chunks: Iterable[RankedChunk],
    *,
    top_score: float,
    term_idf: Mapping[str, float],
    profile: ScoreProfile,
    wordings: Sequence[Mapping[str, float]] = (),
) -> float:
    """Probability-like number in [0, 1] that the evidence answers the question.

    It has two decimals, so that its band is that of the number people see. It grows with the best
    score, read on the scale of its scorer, and with the share of the question's weighted terms that
    the best five passages cover together. 0.0 without evidence, and at most 0.45 where the question
    names identifiers and these passages hold none of them.

    Args:
        chunks: Best first; adjacent context is ignored.
        top_score: Best score, of the weakest part when the question has several.
        term_idf: Weights of the question's index terms.
        profile: Scale of `top_score`.
        wordings: Weights of the terms of each other wording, when `top_score` was made under them;
            the share covered is then the mean of all, the question counting double.
    """
    matched = [ranked for ranked in chunks if not ranked.is_locality_expanded][:_PASSAGES]
    if not matched:
        return 0.0
    found = _terms(map(_passage, matched))
    covered = wordings_score([_share(weights, found) for weights in (term_idf, *wordings)])
    told = confidence_of(quality(top_score, profile), covered, with_wordings=bool(wordings))
    # A wording may guess names, right ones and wrong ones: they help, and are not asked for.
    asks_by_name = any(map(_is_name, term_idf))
    is_named = any(
        _is_name(term) and term in found for weights in (term_idf, *wordings) for term in weights
    )
    return in_hundredths(min(told, OF_ANOTHER) if asks_by_name and not is_named else told)


def _is_name(term: str) -> bool:
    return term_weight(term) > 1


def confidence_of(best_quality: float, covered: float, *, with_wordings: bool = False) -> float:
    """The fitted curve over the best passage's quality and the coverage, both in [0, 1].

    Args:
        best_quality: On the common scale of `quality`.
        covered: From `coverage`, of all wordings where there are several.
        with_wordings: Whether both were found under other wordings of the question as well.
    """
    slopes = (_QUALITY_SLOPE, _COVERAGE_SLOPE)
    if with_wordings:
        slopes = (_WORDINGS_QUALITY_SLOPE, _WORDINGS_COVERAGE_SLOPE)
    logit = slopes[0] * log_odds(best_quality) + slopes[1] * covered
    return 1 / (1 + math.exp(-logit))


def below_high(found: float) -> float:
    """A confidence that is not high, but otherwise what was found.

    Where one of several wordings is met by no passage, or what scores well only lists links, there
    is reason to look on, and none to call the answer missing.
    """
    return min(found, _BELOW_HIGH)


def is_list_of_links(text: str, start: int, links: Iterable[tuple[int, int]]) -> bool:
    """Whether more than half of a passage's letters and digits are words of links.

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
    told = [bool(mark) for mark, char in zip(linked, text, strict=True) if char.isalnum()]
    return sum(told) > len(told) / 2


def coverage(term_idf: Mapping[str, float], passages: Iterable[str]) -> float:
    """Share of the summed idf whose terms occur in any passage; neutral without terms."""
    return _share(term_idf, _terms(passages) if term_idf else frozenset())


def _terms(passages: Iterable[str]) -> frozenset[str]:
    return frozenset(term for passage in passages for term in analyze(passage))


def _share(term_idf: Mapping[str, float], found: frozenset[str]) -> float:
    total = sum(term_idf.values())
    if total <= 0:
        return _NEUTRAL_COVERAGE
    return sum(weight for term, weight in term_idf.items() if term in found) / total


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
    return [(0.0, 0.0), (floor, MEDIUM), (answered, HIGH), (1.0, 1.0)]


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


def log_odds(probability: float) -> float:
    """The log-odds of a probability, which is kept a little away from 0 and 1."""
    bounded = min(max(probability, _EDGE), 1 - _EDGE)
    return math.log(bounded / (1 - bounded))


def _passage(ranked: RankedChunk) -> str:
    chunk = ranked.chunk
    text = chunk.focus.text if chunk.focus else chunk.text
    return " ".join((chunk.title or "", *chunk.heading_path, text))


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
