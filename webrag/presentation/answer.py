"""Gives what the answer manager returns: as text, and as a document for programs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from webrag.answering.manager import answer_text
from webrag.answering.models import (
    AnswerCitation,
    AnswerPart,
    FinalReason,
    ManagerResult,
)
from webrag.argument_checks import shown_moment
from webrag.frozen import FrozenModel, shared_fields
from webrag.presentation.brief.blocks import without_forged_lines
from webrag.presentation.brief.sections import also_searched, as_of_note
from webrag.presentation.results import (
    CommandLine,
    description_lines,
    look_on_the_web,
    page_name,
)
from webrag.presentation.untrusted import clean_block, one_line

_ENDINGS: dict[FinalReason, str] = {
    "confidence_high": "high: the sources very likely say so",
    "confidence_medium_caveated": "medium: check it in the sources",
    "confidence_low_partial": "low: this may answer in part only",
    "confidence_too_low_clarify": "too low to answer",
    "incoherent_query": "the question could not be understood",
    "guardrail_input": "the question was refused",
    "guardrail_retrieval": "what was found could not be used",
    "guardrail_output": "the answer was held back",
}

_MAX_QUOTE_CHARS = 400


def in_words(result: ManagerResult) -> str:
    """Say how far to trust the answer, or why there is none."""
    return _ENDINGS[result.final_reason]


def trust(result: ManagerResult) -> str:
    """The same as a sentence, for people; in one word where the answer has the others."""
    if result.final_reason == "confidence_too_low_clarify":
        return "No answer: the confidence is too low."
    if result.state != "success":
        return f"No answer: {in_words(result)}."
    band, _, _ = in_words(result).partition(":")
    return f"Confidence {band if result.notice else in_words(result)}."


def first_cited(result: ManagerResult, most: int) -> ManagerResult:
    """The result with what its first citations, so many at most, support."""
    if len(result.citations) <= most:
        return result
    citations = result.citations[:most]
    known = {each.number for each in citations}
    supported = [
        part.model_copy(update={"citations": tuple(n for n in part.citations if n in known)})
        for part in result.parts
    ]
    parts = tuple(part for part in supported if part.citations)
    is_first = result.answer.startswith(result.notice)
    notice = (result.notice, "") if is_first else ("", result.notice)
    answer = answer_text(parts, citations, *notice)
    return result.model_copy(update={"citations": citations, "parts": parts, "answer": answer})


def format_answer(result: ManagerResult, details: str | None = None) -> str:
    """The whole text of a result: the answer, then `details`, by default those in full."""
    details = format_details(result) if details is None else details
    return f"{clean_block(result.answer)}\n\n{details}".rstrip()


def format_details(result: ManagerResult) -> str:
    """Citations and notes, without the answer itself; for those who have seen it arrive."""
    sections = [_citations(result), _about(result)]
    return "\n\n".join(section for section in sections if section)


def format_brief_details(
    result: ManagerResult,
    command: CommandLine = CommandLine(),  # noqa: B008 - it cannot be changed
    place: str = "URL",
) -> str:
    """Place of each citation, and the confidence in words; `format_details` has the rest."""
    is_unanswered = result.final_reason == "confidence_too_low_clarify"
    described = description_lines(result)
    lines = [*described, *([""] if described else []), *_places(result.citations)]
    if result.retrieval and result.retrieval.documents:
        lines += ["", trust(result)] if lines else [trust(result)]
    if result.uncertainty_note and not is_unanswered:
        lines.append(f"Uncertain: {one_line(result.uncertainty_note, max_chars=300)}")
    lines += as_of_note(result.as_of)
    lines += _searched(result)
    lines += [f"Note: {one_line(each, max_chars=300)}" for each in result.degraded]
    if is_unanswered and result.as_of is None:
        lines.append(look_on_the_web(result.query, command, place))
    if result.citations:
        lines.append("The quotations in full: --full.")
    return "\n".join(lines)


def _searched(result: ManagerResult) -> list[str]:
    words = result.retrieval.also_searched if result.retrieval else {}
    return [also_searched(words)] if words else []


def _places(citations: Sequence[AnswerCitation]) -> list[str]:
    """Each place of a page once, with the numbers of all that stands there."""
    held: dict[tuple[str, str], list[AnswerCitation]] = {}
    for each in citations:
        name = page_name(each.title, each.section_heading, each.place, each.as_of)
        held.setdefault((name, each.source_url), []).append(each)
    return [
        line
        for (name, _), same in held.items()
        for line in (f"[{ranges([e.number for e in same])}] {name}", f"    {same[0].link}")
    ]


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers as people write them, `1, 3\u20135`."""
    runs: list[list[int]] = []
    for each in numbers:
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return ", ".join(
        f"{run[0]}\u2013{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )


def _citations(result: ManagerResult) -> str:
    if not result.citations:
        return ""
    lines = ["[CITATIONS]"]
    for citation in result.citations:
        title = one_line(citation.title or "", max_chars=120)
        as_of = f", as of {shown_moment(citation.as_of)}" if citation.as_of else ""
        lines += [
            f"[{citation.number}] {_quoted(citation.verbatim_text)}",
            f"    \u2014 {f'{title}, ' if title else ''}{citation.source_url}",
            f"    chars {citation.char_start}-{citation.char_end}{as_of}, passage: {citation.link}",
        ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A quotation in its marks, as the page holds it; what is left out is said behind them."""
    text = clean_block(text)
    span = without_forged_lines(text, 0)
    if span is None:
        return "(not shown: it imitates this list)"
    shown = text[slice(*span)]
    if len(shown) > _MAX_QUOTE_CHARS:
        shown = shown[: _MAX_QUOTE_CHARS + 1].rsplit(None, 1)[0][:_MAX_QUOTE_CHARS]
    left_out = "" if shown == text else f" ({len(shown):,} of {len(text):,} characters)"
    return f'"{shown}"{left_out}'


def _about(result: ManagerResult) -> str:
    lines = description_lines(result)
    if result.state == "success":
        lines.append(f"Confidence: {result.confidence:.2f} ({in_words(result)})")
    else:
        lines.append(f"Ended: {in_words(result)}")
    if result.applicability_note:
        lines.append(f"Applies: {one_line(result.applicability_note, max_chars=300)}")
    if result.uncertainty_note:
        lines.append(f"Uncertain: {one_line(result.uncertainty_note, max_chars=300)}")
    lines += as_of_note(result.as_of)
    lines += _searched(result)
    if result.diagnostics:
        lines.append(f"Diagnosis: {', '.join(result.diagnostics)}")
    lines += [f"Degraded: {one_line(each, max_chars=300)}" for each in result.degraded]
    return "\n".join(["[ABOUT THIS ANSWER]", *lines])


class CitationDocument(FrozenModel):
    """The place of a part of an answer."""

    number: int
    url: str
    title: str | None
    heading: str | None
    author: str | None = None
    site_name: str | None = None
    published_at: datetime | None
    char_start: int
    char_end: int
    text: str | None
    place: str | None
    link: str
    as_of: datetime | None = None


class AnswerDocument(FrozenModel):
    """The JSON that `ask` prints, each text once; docs/reference/command-line.md has it."""

    query: str
    as_of: datetime | None = None
    state: Literal["success", "fail"]
    final_reason: FinalReason
    confidence: float
    parts: tuple[AnswerPart, ...]
    notice: str
    citations: tuple[CitationDocument, ...]
    missing: tuple[str, ...]
    description: str
    also_searched: dict[str, str]
    applicability_note: str
    uncertainty_note: str
    diagnostics: tuple[str, ...]
    degraded: tuple[str, ...]
    synthesis: str
    total_ms: float


def answer_document(result: ManagerResult) -> AnswerDocument:
    """The result for programs."""
    said = {part.text for part in result.parts}
    return AnswerDocument(
        **shared_fields(AnswerDocument, result, "notice", "citations", "also_searched"),
        notice=result.notice or ("" if result.parts else result.answer),
        citations=tuple(_citation(each, said) for each in result.citations),
        also_searched=result.retrieval.also_searched if result.retrieval else {},
    )


def _citation(citation: AnswerCitation, said: set[str]) -> CitationDocument:
    return CitationDocument(
        **shared_fields(CitationDocument, citation),
        url=citation.source_url,
        heading=citation.section_heading,
        text=None if citation.verbatim_text in said else citation.verbatim_text,
    )
