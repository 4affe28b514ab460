"""Checks what the answer manager is asked and plans how it is answered; no search."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from webrag.answering.english.coherence import incoherence
from webrag.answering.models import AnswerRequest, ExecutionPlan
from webrag.argument_checks import (
    check_text,
    checked_count,
    checked_moment,
    checked_wordings,
    shown_value,
)
from webrag.errors import InputError
from webrag.ingestion.addresses import page_address
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.orchestration.request import check_no_research
from webrag.retrieval.filters import SearchFilters

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

    async def plan(
        self, query: str, requested_years: Sequence[int] = (), wordings: Sequence[str] = ()
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
            wordings=tuple(wordings),
        )
        if reason is not None or self._analyzer is None:
            return plan, None
        analysis, degraded = await self._analyzer.analyze(text, wordings=wordings)
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

_MAX_URLS: Final = 20


def answer_request(
    question: str,
    *,
    wordings: str | Sequence[str] | None = None,
    url: str | Sequence[str] = (),
    sites: str | Sequence[str] = (),
    years: int | Sequence[int] = (),
    deep: bool = False,
    expansion_budget: int | None = None,
    stored: Sequence[str] = (),
    as_of: datetime | None = None,
) -> AnswerRequest:
    """The request, with canonical addresses, and with each year once, in order.

    The question itself is left to the guardrails and the planner, which answer politely.

    Raises:
        InputError: The question is no text, a wording, an address, a year or a moment cannot be
            used, or `deep` has no page to start from or a moment, or rounds are given without it.
    """
    check_text("The question", question)
    named = [url] if isinstance(url, str) else list(url)
    urls = tuple(dict.fromkeys(page_address(each) for each in named))
    if len(urls) > _MAX_URLS:
        raise InputError(f"{len(urls)} URLs were given; at most {_MAX_URLS} are allowed.")
    if deep and not (urls or stored):
        raise InputError("deep follows the links of a page: give a URL to start from.")
    if expansion_budget is not None:
        checked_count("expansion_budget", expansion_budget, minimum=1)
        if not deep:
            raise InputError("expansion_budget limits rounds of link following: it needs deep.")
    if as_of is not None:
        as_of = checked_moment(as_of)
        check_no_research(deep)
    wanted = [years] if isinstance(years, int) else list(years)
    latest = datetime.now(UTC).year + 1
    for year in wanted:
        if isinstance(year, bool) or not isinstance(year, int) or not _FIRST_YEAR <= year <= latest:
            raise InputError(
                f"The year {shown_value(year)} cannot be used; give years up to {latest}."
            )
    return AnswerRequest(
        query=question,
        wordings=checked_wordings(question, wordings),
        urls=urls,
        stored=tuple(stored),
        sites=SearchFilters.of(sites=sites or None).sites or (),
        requested_years=tuple(sorted(set(wanted))),
        deep=deep,
        expansion_budget=expansion_budget,
        as_of=as_of,
    )
