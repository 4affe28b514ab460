"""Judges an answer against the question as asked and as searched for."""

import asyncio
import logging
import re
import secrets
from collections.abc import Sequence
from typing import Final

from llama_index.core.llms import LLM

from webrag.answering.bands import has_low_coverage
from webrag.answering.citations import CitationDesk
from webrag.answering.evidence import Gathered
from webrag.answering.language_model import as_clause, ask, with_temperature
from webrag.answering.models import AnswerCitation, AnswerConfig, ExecutionPlan, Reflection
from webrag.answering.prompts import one_line, reflection_messages
from webrag.answering.replies import Judgement, parse_judgement
from webrag.answering.screening import holds_secret, is_instruction
from webrag.answering.support import identifiers, numbers
from webrag.errors import ProviderError
from webrag.retrieval.quotes import term_coverage

__all__ = ["ORIGINAL_WEIGHT", "REVISED_WEIGHT", "Reflector", "reflect_by_rules", "weighted"]

_log = logging.getLogger(__name__)

ORIGINAL_WEIGHT: Final = 0.7
REVISED_WEIGHT: Final = 0.3
_MAX_NOTE_CHARS: Final = 240
_MAX_NAMED_PAGES: Final = 3


class Reflector:
    """Judges by a model when there is one, else by rules; safe to share between tasks.

    Args:
        llm: Any; None for rules alone.
        config: Temperature and time.
    """

    def __init__(self, llm: LLM | None, config: AnswerConfig) -> None:
        self._llm = None if llm is None else with_temperature(llm, config.reflection_temperature)
        self._timeout_s = config.reflection_timeout_s

    async def reflect(
        self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk
    ) -> tuple[Reflection, str | None]:
        """The judgement, and a sentence naming what did not work, or None.

        A reply that is not what was asked for is asked for once more; then rules judge.
        """
        by_rules = reflect_by_rules(plan, gathered, desk)
        if self._llm is None or not desk.parts:
            return by_rules, None
        try:
            async with asyncio.timeout(self._timeout_s):
                judgement = await self._two_tries(self._llm, plan, desk)
        except TimeoutError:
            problem = f"the language model did not finish within {self._timeout_s:g} s"
        except ProviderError as error:
            problem = as_clause(error)
        else:
            if judgement is not None:
                return _merged(judgement, by_rules, plan, desk), None
            problem = "the language model did not reply in the form it was asked for"
        note = f"The answer was judged by rules: {problem}."
        _log.warning("%s", note)
        return by_rules, note

    async def _two_tries(
        self, llm: LLM, plan: ExecutionPlan, desk: CitationDesk
    ) -> Judgement | None:
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


def reflect_by_rules(plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk) -> Reflection:
    """The judgement by the question's words: the share of their weight that the answer holds.

    Titles and headings above the quotations count: they name the subject that sentences leave out.
    """
    said = [part.text for part in desk.parts]
    named = [f"{each.title or ''} {each.section_heading or ''}" for each in desk.citations]
    text = "\n".join([*said, *named]) if said else ""
    original = term_coverage(text, plan.original_query, gathered.term_idf)
    revised = term_coverage(text, plan.revised_query, gathered.term_idf)
    return Reflection(
        original_score=original,
        revised_score=revised,
        score=weighted(original, revised),
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
    elif len({each.source_url for each in desk.citations}) == 1:
        notes.append("It rests on a single page.")
    if desk.parts and has_low_coverage(gathered.step.coverage):
        notes.append("The passages hold few of the words of the question.")
    if desk.tally.removed or desk.tally.unsupported:
        notes.append("Statements that no source supports were left out.")
    return " ".join(notes)


def _merged(
    judgement: Judgement, by_rules: Reflection, plan: ExecutionPlan, desk: CitationDesk
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
