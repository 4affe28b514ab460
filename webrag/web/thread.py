"""Questions that go on from earlier ones: what they are about, and all of them as Markdown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webrag.lexical.analysis import query_terms
from webrag.presentation.untrusted import clean_block, one_line

if TYPE_CHECKING:
    from webrag.answering.models import AnswerCitation, ManagerResult

_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|this|these|those|that(?=\W*\Z))\b", re.IGNORECASE
)
_GOES_ON = re.compile(r"(?:and|but|or|also|then|so|what about|how about)\b[\s,]*", re.IGNORECASE)
_JOINED = re.compile(r"(?:and|but|or|also|then|so)\b[\s,]*", re.IGNORECASE)
_WORD = re.compile(r"[\w`][\w.+#:/-]*")
_MOST_TERMS = 6
_FEW = 2


@dataclass(frozen=True)
class Turn:
    """A question of a thread and what came of it.

    Attributes:
        question: As it was typed.
        result: None when it failed.
    """

    question: str
    result: "ManagerResult | None"


def goes_on(question: str) -> bool:
    """Whether a question cannot be understood without the one before."""
    if _GOES_ON.match(question) or len(query_terms(question)) < _FEW:
        return True
    points = _POINTS_BACK.search(question)
    # What has been named before the pronoun is what it stands for.
    return points is not None and len(query_terms(question[: points.start()])) < _FEW


def in_thread(question: str, earlier: Sequence[Turn]) -> str:
    """Give a question that says what it is about, by the terms of the thread.

    Args:
        question: As typed.
        earlier: The turns before it, oldest first.
    """
    about = next((turn for turn in reversed(earlier) if not goes_on(turn.question)), None)
    if about is None or not goes_on(question):
        return question
    words = _subject(about)
    rest = _JOINED.sub("", question, count=1) if _JOINED.match(question) else question
    rest = rest[:1].upper() + rest[1:]
    if _POINTS_BACK.search(rest):
        has_article = (
            re.search(rf"\b(?:the|an?)\s+{re.escape(words[0])}", about.question) if words else None
        )
        subject = " ".join(["the", *words] if has_article else words)
        return _POINTS_BACK.sub(lambda _: subject, rest, count=1)
    said = rest.rstrip(" ?.!")
    return f"{said} {' '.join(words)}{rest[len(said) :].strip()}"


def _subject(turn: Turn) -> list[str]:
    """What a question is about: its words that name the pages cited, else all that count."""
    wanted = set(query_terms(turn.question))
    words = [word for word in _WORD.findall(turn.question) if wanted & set(query_terms(word))]
    cited = turn.result.citations if turn.result else ()
    for named in ({each.title for each in cited}, {each.section_heading for each in cited}):
        terms = {term for text in named if text for term in query_terms(text)}
        if found := [word for word in words if terms & set(query_terms(word))]:
            return found[:_MOST_TERMS]
    return words[:_MOST_TERMS]


def thread_markdown(turns: Sequence[Turn]) -> str:
    """Give a thread as Markdown: each question, its answer, and the quotations with their links."""
    return "\n\n".join(map(_turn_markdown, turns)) + "\n"


def _turn_markdown(turn: Turn) -> str:
    title = f"## {one_line(turn.question, max_chars=300)}"
    if turn.result is None:
        return f"{title}\n\nNo answer."
    answer = clean_block(turn.result.answer)
    return "\n\n".join([title, answer, "\n".join(map(_source, turn.result.citations))]).rstrip()


def _source(cited: "AnswerCitation") -> str:
    quoted = one_line(cited.verbatim_text, max_chars=400)
    name = one_line(cited.title or cited.source_url, max_chars=120)
    name = name.replace("[", "\\[").replace("]", "\\]")
    return f"- [{cited.number}] \u201c{quoted}\u201d \u2014 [{name}](<{cited.link}>)"
