"""Puts the final text of an answer together; pure."""

from collections.abc import Sequence

from webrag.answering.bands import Band
from webrag.answering.models import AnswerCitation, AnswerPart, Conflict

__all__ = ["answer_text", "incoherent_reply", "part_text", "side_by_side"]

_INCOHERENT = (
    "Sorry, I cannot make out what is asked, so nothing was searched. {reason} Please put it in"
    " a few words that name what you want to know."
)


def incoherent_reply(reason: str | None) -> str:
    """What somebody is told whose question cannot be searched for."""
    return " ".join(_INCOHERENT.format(reason=reason or "").split())


def part_text(part: AnswerPart) -> str:
    """A sentence with the numbers of its citations; code in a fence, rows with their frame."""
    marks = "".join(f"[{number}]" for number in part.citations)
    if part.kind == "code":
        fence = "`" * max(3, _longest_run(part.text, "`") + 1)
        return f"{fence}\n{part.text}\n{fence}\n{marks}"
    if part.kind == "table":
        rows = (line.strip().strip("|").strip() for line in part.text.splitlines())
        return "\n".join(f"| {row} |" for row in rows) + f"\n{marks}"
    return f"{part.text} {marks}"


def answer_text(
    parts: Sequence[AnswerPart],
    citations: Sequence[AnswerCitation],
    conflicts: Sequence[Conflict],
    band: Band,
) -> str:
    """The whole answer: its sentences, what sources disagree on, and the band's notice."""
    blocks = [part_text(part) for part in parts]
    blocks += [text] if (text := side_by_side(citations, conflicts)) else []
    notice = [band.notice] if band.notice else []
    ordered = [*notice, *blocks] if band.comes_first else [*blocks, *notice]
    return "\n\n".join(ordered)


def side_by_side(citations: Sequence[AnswerCitation], conflicts: Sequence[Conflict]) -> str:
    """What sources disagree on, each with its own words; "" when they do not."""
    if not conflicts:
        return ""
    by_number = {citation.number: citation for citation in citations}
    lines = ["The sources disagree:"]
    for conflict in conflicts:
        lines += [_quoted(by_number[number]) for number in conflict.citations]
    return "\n".join(dict.fromkeys(lines))


def _quoted(citation: AnswerCitation) -> str:
    dated = f", {citation.published_at:%Y-%m-%d}" if citation.published_at else ""
    place = f"{citation.title or citation.source_url}{dated}"
    return f'- "{citation.verbatim_text}" ({place}) [{citation.number}]'


def _longest_run(text: str, char: str) -> int:
    longest = run = 0
    for each in text:
        run = run + 1 if each == char else 0
        longest = max(longest, run)
    return longest
