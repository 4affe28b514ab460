"""Checks what the answer manager is asked and plans how it is answered; no search."""

import re
from datetime import UTC, datetime
from typing import Final

from webrag.answering.english.coherence import incoherence
from webrag.answering.models import ExecutionPlan
from webrag.argument_checks import checked_count
from webrag.errors import InputError
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.question import Question

_GREETING: Final = re.compile(
    r"^(?:(?:hi|hello|hey|dear|good\s+(?:morning|afternoon|evening))\b(?:\s+(?:all|there|everyone"
    r"|team|folks))?[\s,.!:-]+)+",
    re.IGNORECASE,
)

_REQUEST: Final = re.compile(
    r"^(?:please[\s,]+)?(?:(?:can|could|would|will)\s+(?:you|anyone|someone|somebody)\s+(?:please\s+)?"
    r"(?:(?:tell|show|explain\s+to|help)\s+(?:me|us)|explain|describe)"
    r"|(?:i(?:'d|\s+would)\s+like|i\s+want|i\s+need)\s+to\s+(?:know|understand|find\s+out|learn)"
    r"|(?:do|does)\s+(?:you|anyone|anybody)\s+know|i(?:'m|\s+am)\s+wondering|i\s+wonder)"
    r"(?:\s+(?:about|if|whether))?[\s,:]+",
    re.IGNORECASE,
)

_CLOSING: Final = re.compile(
    r"(?<![\s,.!])[\s,.!]*+(?:\b(?:please|thanks?(?:\s+(?:you|a\s+lot|in\s+advance|so\s+much))?|thx|cheers)\b"
    r"[\s,.!]*+){1,20}+$",
    re.IGNORECASE,
)


class Planner:
    """Makes complete plans; safe to use from several tasks at once.

    Args:
        analyzer: Splits questions that hold several; None leaves every question whole.
    """

    def __init__(self, analyzer: QueryAnalyzer | None = None) -> None:
        self._analyzer = analyzer

    async def plan(self, question: Question) -> tuple[ExecutionPlan, str | None]:
        """The plan, and a sentence naming what did not work, or None.

        An incoherent question is not analysed any further: its plan costs no request.
        """
        query, wordings = question.text, question.wordings
        text = revised(query)
        reason = incoherence(query, question.years or ())
        plan = ExecutionPlan(
            original_query=query,
            revised_query=text,
            coherence="coherent" if reason is None else "incoherent",
            coherence_reason=reason,
            sub_queries=(text,),
            wordings=wordings,
        )
        if reason is not None or self._analyzer is None:
            return plan, None
        analysis, degraded = await self._analyzer.analyze(
            question.model_copy(update={"text": text})
        )
        update = {
            "sub_queries": analysis.sub_queries or (text,),
            "query_type": analysis.query_type,
            "wordings": (*wordings, *analysis.wordings),
        }
        return plan.model_copy(update=update), degraded


def revised(query: str) -> str:
    """The question without greetings, requests and thanks; unchanged where nothing else is left."""
    text = " ".join(query.split())
    shorter = _CLOSING.sub("", _REQUEST.sub("", _GREETING.sub("", text)))
    if not any(char.isalnum() for char in shorter):
        return text
    return shorter + "?" if text.endswith("?") and not shorter.endswith("?") else shorter


_FIRST_YEAR: Final = 1000


def check_answerable(question: Question) -> None:
    """Refuse what says nothing about an answer in sentences.

    The text itself is left to the guardrails and the planner, which answer politely.

    Raises:
        InputError: A year cannot be one of publication, links are to be followed from no page, or
            rounds of it are given without it.
    """
    if question.is_deep and question.is_search:
        raise InputError("deep follows the links of a page: give a URL to start from.")
    if question.expansion_budget is not None:
        checked_count("expansion_budget", question.expansion_budget, minimum=1)
        if not question.is_deep:
            raise InputError("expansion_budget limits rounds of link following: it needs deep.")
    latest = datetime.now(UTC).year + 1
    for year in question.years or ():
        if not _FIRST_YEAR <= year <= latest:
            raise InputError(f"The year {year} cannot be used; give years up to {latest}.")
