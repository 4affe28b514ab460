"""Turns what is known of an answer into its confidence and how the run ends; pure."""

from typing import Final, NamedTuple

from webrag.answering.models import CitationTally, Diagnosis, FinalReason, RetrieveStep

__all__ = [
    "HIGH",
    "LOW",
    "LOW_COVERAGE",
    "MEDIUM",
    "Band",
    "answer_confidence",
    "band_of",
    "diagnoses",
    "has_low_coverage",
    "without_answer",
]

# Internal on purpose: a threshold that can be set can be set until an answer looks certain.
HIGH: Final = 0.80
MEDIUM: Final = 0.70
LOW: Final = 0.50
LOW_COVERAGE: Final = 0.5

_RETRIEVAL_SHARE: Final = 0.6
_REFLECTION_SHARE: Final = 0.4
# An answer half of whose citations had to be removed was written by somebody who makes things up.
_REMOVED_COST: Final = 0.5
# Nothing that was only nearly found may pass for an answer.
_GIVEN_UP: Final = 0.45
_CONFLICT: Final = 0.79


class Band(NamedTuple):
    """How a coherent question ends.

    Attributes:
        notice: What the user is told beside the answer; "" when nothing.
        comes_first: Whether the notice stands before the answer.
    """

    reason: FinalReason
    notice: str
    comes_first: bool = False


_BANDS: Final = (
    (HIGH, Band("confidence_high", "")),
    (
        MEDIUM,
        Band(
            "confidence_medium_caveated",
            "Check the quoted passages before you rely on this: they fit the question well, but a"
            " detail may be missing.",
        ),
    ),
    (
        LOW,
        Band(
            "confidence_low_partial",
            "This answers the question only in part: the passages found touch its subject, and"
            " some of what was asked may stand elsewhere or not at all.",
        ),
    ),
)
_WHAT_HELPS: Final = (
    "It may help to name the product, version or page you mean, to use the words its documentation"
    " would use, or to give the address of a page to read."
)
_NOTHING_STORED: Final = (
    "Nothing is stored yet, so there was nothing to search. Give the address of a page to answer"
    " from (`--url`, in Python `url=`), or fetch pages first (`webrag ingest`, in Python"
    " `ingest`)."
)
_TOO_LOW: Final = Band(
    "confidence_too_low_clarify",
    # Reads well before the quotations and, where they were printed as they came, after them.
    "No passage was found that clearly answers this. What is quoted here is the nearest that is"
    f" stored; do not take it for an answer. {_WHAT_HELPS}",
    comes_first=True,
)


def band_of(confidence: float) -> Band:
    """The band of a confidence; each bound belongs to the band above it."""
    return next((band for bound, band in _BANDS if confidence >= bound), _TOO_LOW)


def without_answer(step: RetrieveStep, *, stored: int) -> Band:
    """The lowest band for a run that found nothing to quote, saying why as far as it is known.

    Args:
        step: What was searched and found.
        stored: Pages that are stored, searched or not.
    """
    if not stored:
        notice = _NOTHING_STORED
    elif step.candidates:
        notice = f"Nothing was found that comes near enough to this to be quoted. {_WHAT_HELPS}"
    elif step.requested_years:
        years = ", ".join(map(str, step.requested_years))
        notice = (
            f"Nothing was found in stored pages published in {years}. Pages that do not say when"
            " they were published are left out as well; ask without a year to search them, too."
        )
    else:
        searched = "1 page was" if step.documents == 1 else f"{step.documents:,} pages were"
        notice = f"{searched} searched, and nothing there has to do with this. {_WHAT_HELPS}"
    return _TOO_LOW._replace(notice=notice)


def answer_confidence(
    retrieval: float,
    reflection: float,
    tally: CitationTally,
    *,
    gave_up: bool = False,
    has_conflict: bool = False,
) -> float:
    """How far an answer may be trusted, [0, 1]; 0 without citations.

    Args:
        retrieval: Confidence that the passages hold the answer.
        reflection: The reflection's weighted score.
        tally: What became of the citations.
        gave_up: The writer said that the passages do not answer the question.
        has_conflict: Sources disagree.
    """
    if not tally.kept:
        return 0.0
    value = _RETRIEVAL_SHARE * retrieval + _REFLECTION_SHARE * reflection
    wrong = tally.removed + tally.unsupported
    value *= 1 - _REMOVED_COST * wrong / (wrong + tally.kept)
    if gave_up:
        value = min(value, _GIVEN_UP)
    if has_conflict:
        value = min(value, _CONFLICT)
    return min(max(value, 0.0), 1.0)


def has_low_coverage(coverage: float) -> bool:
    """Whether the passages hold too few of the question's words; a diagnosis, not a decision."""
    return coverage < LOW_COVERAGE


def diagnoses(step: RetrieveStep, *, stored: int) -> tuple[Diagnosis, ...]:
    """What is to be said of a retrieval that decides nothing.

    Args:
        step: What was searched and found.
        stored: Pages that are stored, searched or not.
    """
    if not stored:
        return ("empty_corpus",)
    return ("low_coverage",) if has_low_coverage(step.coverage) else ()
