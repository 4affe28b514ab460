"""Checks what the answer manager is asked; it answers nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from webrag.answering.models import AnswerRequest
from webrag.errors import InputError, check_text, shown_value
from webrag.ingestion.links import canonical_url

__all__ = ["answer_request"]

_FIRST_YEAR: Final = 1000
_MAX_URLS: Final = 20


def answer_request(
    question: str,
    *,
    url: str | Sequence[str] = (),
    years: int | Sequence[int] = (),
    deep: bool = False,
) -> AnswerRequest:
    """The request, with canonical addresses, and with each year once, in order.

    The question itself is left to the guardrails and the planner, which answer politely.

    Raises:
        InputError: The question is no text, an address or a year cannot be used, or `deep` has no
            page to start from.
    """
    check_text("The question", question)
    named = [url] if isinstance(url, str) else list(url)
    urls = tuple(dict.fromkeys(canonical_url(each) for each in named))
    if len(urls) > _MAX_URLS:
        raise InputError(f"{len(urls)} URLs were given; at most {_MAX_URLS} are allowed.")
    if deep and not urls:
        raise InputError("deep follows the links of a page: give a URL to start from.")
    wanted = [years] if isinstance(years, int) else list(years)
    latest = datetime.now(UTC).year + 1
    for year in wanted:
        if isinstance(year, bool) or not isinstance(year, int) or not _FIRST_YEAR <= year <= latest:
            raise InputError(
                f"The year {shown_value(year)} cannot be used; give years up to {latest}."
            )
    return AnswerRequest(
        query=question, urls=urls, requested_years=tuple(sorted(set(wanted))), deep=deep
    )
