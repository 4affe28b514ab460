"""Judges an answer against the question, and turns that into its confidence and band."""

import logging
import re
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from webrag.answering.citation_desk import CitationDesk
from webrag.answering.evidence import IN_PART, Gathered
from webrag.answering.guardrails import holds_secret, is_instruction
from webrag.answering.language_model import (
    JudgedAnswer,
    ask,
    attempt,
    one_line,
    parse_judgement,
    reflection_messages,
    with_temperature,
)
from webrag.answering.models import (
    AnswerCitation,
    AnswerConfig,
    CitationTally,
    Diagnosis,
    ExecutionPlan,
    FinalReason,
    Reflection,
    RetrieveStep,
)
from webrag.answering.support import identifiers, numbers
from webrag.orchestration.confidence import HIGH, LOW, MEDIUM, in_hundredths

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

LOW_COVERAGE: Final = 0.5

_RETRIEVAL_SHARE: Final = 0.6
_REFLECTION_SHARE: Final = 0.4
# An answer half of whose citations had to be removed was written by somebody who makes things up.
_REMOVED_COST: Final = 0.5
# Nothing that was only nearly found may pass for an answer.
_GIVEN_UP: Final = 0.45


class Band(NamedTuple):
    """The end of a coherent question, and the notice the user gets before or after the answer."""

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
    " from, or add pages first."
)
_TOO_LOW: Final = Band(
    "confidence_too_low_clarify",
    # Reads well before the quotation and, where it was printed as it came, after it.
    "Nothing stored clearly answers this. What is quoted here is the closest found; do not take it"
    f" for an answer. {_WHAT_HELPS}",
    comes_first=True,
)


def band_of(confidence: float) -> Band:
    """The band of a confidence; each bound belongs to the band above it."""
    return next((band for bound, band in _BANDS if confidence >= bound), _TOO_LOW)


def with_missing(band: Band, missing: Sequence[str]) -> Band:
    """The band with a notice that names the parts of the question nothing was found about."""
    if not missing or band is _TOO_LOW:
        return band
    named = "; ".join(f'"{one_line(each, max_chars=80)}"' for each in missing)
    return band._replace(notice=f"{band.notice} Not found: {named}.".lstrip())


def without_answer(step: RetrieveStep, *, stored: int) -> Band:
    """Give the lowest band for a run that found nothing to quote, saying why where it is known."""
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
    is_in_part: bool = False,
) -> float:
    """Rate how far an answer may be trusted, [0, 1] with two decimals; 0 without citations.

    `retrieval` is the confidence that the units found answer the question; `gave_up` that the
    writer said they do not.
    """
    if not tally.kept:
        return 0.0
    value = _RETRIEVAL_SHARE * retrieval + _REFLECTION_SHARE * reflection
    wrong = tally.removed + tally.unsupported
    value *= 1 - _REMOVED_COST * wrong / (wrong + tally.kept)
    if gave_up:
        value = min(value, _GIVEN_UP)
    return in_hundredths(min(max(value, 0.0), IN_PART if is_in_part else 1.0))


def diagnoses(step: RetrieveStep, *, stored: int) -> tuple[Diagnosis, ...]:
    """Give the observations of a retrieval that decide nothing; `stored` counts all pages."""
    if not stored:
        return ("empty_corpus",)
    return ("low_coverage",) if step.coverage < LOW_COVERAGE else ()


_log = logging.getLogger(__name__)

ORIGINAL_WEIGHT: Final = 0.7

REVISED_WEIGHT: Final = 0.3

_MAX_NOTE_CHARS: Final = 240
_MAX_NAMED_PAGES: Final = 3


class Reflector:
    """Judges by a model when there is one, else by rules; safe to share between tasks."""

    def __init__(self, llm: "LLM | None", config: AnswerConfig) -> None:
        self._llm = None if llm is None else with_temperature(llm, config.reflection_temperature)
        self._timeout_s = config.reflection_timeout_s

    async def reflect(
        self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk
    ) -> tuple[Reflection, str | None]:
        """Give the judgement, and a sentence naming what did not work, or None.

        A reply that is not what was asked for is asked for once more; then rules judge.
        """
        by_rules = reflect_by_rules(gathered, desk)
        if self._llm is None or not desk.parts:
            return by_rules, None
        work = self._two_tries(self._llm, plan, desk)
        judgement, problem = await attempt(work, self._timeout_s)
        if judgement is not None:
            return _merged(judgement, by_rules, plan, desk), None
        problem = problem or "the language model did not reply in the form it was asked for"
        note = f"The answer was judged by rules: {problem}."
        _log.warning("%s", note)
        return by_rules, note

    async def _two_tries(
        self, llm: "LLM", plan: ExecutionPlan, desk: CitationDesk
    ) -> JudgedAnswer | None:
        problem: str | None = None
        for _ in range(2):
            messages = reflection_messages(
                plan, desk.parts, nonce=secrets.token_hex(8), problem=problem
            )
            judgement = parse_judgement(await ask(llm, messages))
            if judgement is not None:
                return judgement
            problem = "it is not the JSON object that was asked for."
        return None


def weighted(original: float, revised: float) -> float:
    """70 % for the question as asked, 30 % for the question as searched for."""
    return ORIGINAL_WEIGHT * original + REVISED_WEIGHT * revised


def reflect_by_rules(gathered: Gathered, desk: CitationDesk) -> Reflection:
    """The judgement without a model: the chance that what was found answers the question."""
    chance = gathered.step.confidence if desk.parts else 0.0
    return Reflection(
        original_score=chance,
        revised_score=chance,
        score=chance,
        applicability_note=_applicability(desk.citations),
        uncertainty_note=_uncertainty(gathered, desk),
        method="rules",
    )


def _applicability(citations: Sequence[AnswerCitation]) -> str:
    shown = ("" if is_instruction(each.title or "") else each.title for each in citations)
    pages = zip(shown, citations, strict=True)
    titles = list(dict.fromkeys(title or each.source_url for title, each in pages))
    if not titles:
        return ""
    named = "; ".join(one_line(title, max_chars=80) for title in titles[:_MAX_NAMED_PAGES])
    years = sorted({each.published_at.year for each in citations if each.published_at})
    dated = (
        f" (published {years[0]}{f' to {years[-1]}' if len(years) > 1 else ''})" if years else ""
    )
    return f"As stated by {named}{dated}."


def _uncertainty(gathered: Gathered, desk: CitationDesk) -> str:
    notes = []
    if not gathered.evidence:
        notes.append("Nothing was found.")
    elif not desk.parts:
        notes.append("Nothing that was found could be quoted.")
    elif gathered.step.confidence < HIGH:
        if len({each.source_url for each in desk.citations}) == 1:
            notes.append("It rests on a single page.")
        if gathered.step.coverage < LOW_COVERAGE:
            notes.append("The passages lack words of the question.")
    if desk.tally.removed or desk.tally.unsupported:
        notes.append("Statements that no source supports were left out.")
    return " ".join(notes)


def _merged(
    judgement: JudgedAnswer, by_rules: Reflection, plan: ExecutionPlan, desk: CitationDesk
) -> Reflection:
    known = " ".join(
        [plan.original_query, *(part.text for part in desk.parts), by_rules.applicability_note]
    )
    return Reflection(
        original_score=judgement.original_query_score,
        revised_score=judgement.revised_query_score,
        score=weighted(judgement.original_query_score, judgement.revised_query_score),
        applicability_note=_safe_note(judgement.applicability_note, known)
        or by_rules.applicability_note,
        uncertainty_note=_safe_note(judgement.uncertainty_note, known) or by_rules.uncertainty_note,
        method="llm",
    )


def _safe_note(text: str, known: str) -> str:
    """A model's note if it brings in no address, number or name of its own, else nothing."""
    note = one_line(text, max_chars=_MAX_NOTE_CHARS)
    if holds_secret(note) or is_instruction(note) or re.search(r"https?:|www\.", note):
        return ""
    is_known = numbers(note) <= numbers(known) and all(
        name in known.casefold() for name in identifiers(note)
    )
    return note if is_known else ""
