"""Plans how a question is answered: what is searched for, and whether it can be; no search."""

import re
from collections.abc import Sequence
from typing import Final

from webrag.answering.coherence import incoherence
from webrag.answering.models import ExecutionPlan
from webrag.orchestration.query_analyzer import QueryAnalyzer

__all__ = ["Planner", "revised", "wants_steps"]

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

_STEPS: Final = re.compile(
    r"\bhow\s+(?:do|can|could|should|would|must|to)\b"
    r"|\bwhat\s+(?:must|should|can|do|shall)\s+(?:i|we|one)\s+(?:do|run|set|use|type|change|add)\b"
    r"|\bwhat\s+(?:has|needs|is|have)\s+to\s+be\s+(?:done|set|run|changed|configured|installed)\b"
    r"|\bwhich\s+(?:commands?|steps|settings?\s+must|(?:\w+\s+){0,2}lines)\b",
    re.IGNORECASE,
)


class Planner:
    """Makes complete plans; safe to use from several tasks at once.

    Args:
        analyzer: Splits questions that hold several; None leaves every question whole.
    """

    def __init__(self, analyzer: QueryAnalyzer | None = None) -> None:
        self._analyzer = analyzer

    async def plan(
        self, query: str, requested_years: Sequence[int] = ()
    ) -> tuple[ExecutionPlan, str | None]:
        """The plan, and a sentence naming what did not work, or None.

        An incoherent question is not analysed any further: its plan costs no request.
        """
        text = revised(query)
        reason = incoherence(query, requested_years)
        plan = ExecutionPlan(
            original_query=query,
            revised_query=text,
            coherence="coherent" if reason is None else "incoherent",
            coherence_reason=reason,
            sub_queries=(text,),
        )
        if reason is not None or self._analyzer is None:
            return plan, None
        analysis, degraded = await self._analyzer.analyze(text)
        update = {"sub_queries": analysis.sub_queries or (text,), "query_type": analysis.query_type}
        return plan.model_copy(update=update), degraded


def wants_steps(plan: ExecutionPlan) -> bool:
    """Whether somebody wants to be told what to do, however it is asked."""
    return plan.query_type == "how_to" or bool(_STEPS.search(plan.revised_query))


def revised(query: str) -> str:
    """The question without greetings, requests and thanks; unchanged where nothing else is left."""
    text = " ".join(query.split())
    shorter = _CLOSING.sub("", _REQUEST.sub("", _GREETING.sub("", text)))
    if not any(char.isalnum() for char in shorter):
        return text
    return shorter + "?" if text.endswith("?") and not shorter.endswith("?") else shorter
