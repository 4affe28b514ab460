"""Reads passages as sentences, code blocks and table rows, with what each is worth; pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from webrag.answering.evidence import Evidence, Gathered
from webrag.retrieval.quotes import quotable_units, term_coverage

__all__ = ["Similarity", "Unit", "read_units"]

# Weights found on 72 questions over four documentation sites, as the share of gold sentences
# within 120 words: .37, against .31 for one quotation from each of the best four passages. Halving
# or doubling one of them changes it by less than .03.
_PASSAGE_WEIGHT: Final = 2.0
_MEANING_WEIGHT: Final = 1.0
_NEIGHBOUR_WEIGHT: Final = 0.3
_PASSAGES: Final = 6
_LABEL_WORDS: Final = 5
_DEFINITION_CHARS: Final = 500
_LABEL_CHARS: Final = 80  # scripts without blanks put a whole sentence into one word
_MAX_UNIT_CHARS: Final = 1_200
# With these, answers to 16 how-to questions over four sites hold .38 of the gold sentences, with
# both at 0 .25, and .12 where only the best part of a section is read.
_ACTION_WEIGHT: Final = 0.3
_LEAD_WEIGHT: Final = 1.0
_LEAD_DECAY: Final = 0.8  # for each sentence in between
# What tells a reader to do something: the second person, a purpose, an imperative, or code to type.
_ACTION: Final = re.compile(
    r"`[^`\n]+`|\byou\s+(?:can|may|must|should|need|have\s+to)\b|\b[Tt]o\s+[a-z]+\b[^.,]{0,300},"
    r"|(?:^|[,;:]\s+|\b(?:then|and|by|simply|just|instead)\s+)"
    r"(?i:use|using|set|setting|run|running|pass|passing|call|calling|add|adding|specify"
    r"|specifying|enable|disable|install|create|type|choose|select|press|click|open|replace|enter"
    r"|make\s+sure|configure|write|put|remove|change|turn)\b"
)

Similarity = Callable[[str, str], float]
"""Cosine of a question and a text."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, code block or table row of a passage.

    Attributes:
        start: Offset in the page.
        end: Offset after it.
        place: Number within its passage.
        coverage: Share of the question's weighted terms it holds.
        value: What units are chosen by.
    """

    evidence: Evidence
    start: int
    end: int
    kind: str
    place: int
    coverage: float = 0.0
    value: float = 0.0

    @property
    def text(self) -> str:
        """Its markdown."""
        offset = self.evidence.chunk.char_start
        return self.evidence.chunk.text[self.start - offset : self.end - offset]


def read_units(
    query: str,
    gathered: Gathered,
    *,
    similarity: Similarity | None,
    passages: int = _PASSAGES,
    wants_steps: bool = False,
) -> list[Unit]:
    """The units of the best passages with their values, in page order within each.

    Args:
        query: The question.
        gathered: Ranked passages.
        similarity: Compares meanings; None to go by words alone.
        passages: Passages read at most.
        wants_steps: Whether the answer is likely a procedure. It seldom repeats the words of the
            question: it follows what states the problem, so that the whole section is read and
            what says what to do counts more.
    """
    return [
        unit
        for evidence in gathered.evidence[:passages]
        for unit in _valued(query, evidence, gathered, similarity, wants_steps)
    ]


def _valued(
    query: str,
    evidence: Evidence,
    gathered: Gathered,
    similarity: Similarity | None,
    wants_steps: bool,
) -> list[Unit]:
    units = []
    for unit in _units(evidence, whole=wants_steps):
        covered = term_coverage(unit.text, query, gathered.term_idf)
        meaning = similarity(query, unit.text) if similarity else 0.0
        value = _PASSAGE_WEIGHT * evidence.order + covered + _MEANING_WEIGHT * meaning
        units.append(replace(unit, coverage=covered, value=value))
    if wants_steps:
        units = list(_guided(units))
    beside = [0.0, *(unit.value for unit in units), 0.0]
    return [
        replace(unit, value=unit.value + _NEIGHBOUR_WEIGHT * max(left, right))
        for unit, left, right in zip(units, beside, beside[2:], strict=False)
    ]


def _guided(units: Sequence[Unit]) -> Iterator[Unit]:
    """With the worth of a step: what it says to do, and what it stands below."""
    lead = 0.0
    for unit in units:
        does = _ACTION_WEIGHT if _says_what_to_do(unit) else 0.0
        told = _LEAD_WEIGHT * lead if does else 0.0
        fit = unit.value - _PASSAGE_WEIGHT * unit.evidence.order
        lead = max(lead * _LEAD_DECAY, fit)
        yield replace(unit, value=unit.value + does + told)


def _says_what_to_do(unit: Unit) -> bool:
    return unit.kind == "code" or (unit.kind == "prose" and bool(_ACTION.search(unit.text)))


def _units(evidence: Evidence, *, whole: bool) -> Iterator[Unit]:
    chunk = evidence.chunk
    focus = None if whole else chunk.focus
    text, offset = (focus.text, focus.char_start) if focus else (chunk.text, chunk.char_start)
    for place, (first, last, kind) in enumerate(_with_labels(text)):
        start, end = offset + first, offset + last
        fits = last - first <= _MAX_UNIT_CHARS and evidence.is_quotable(start, end)
        if fits and kind != "heading":
            yield Unit(evidence, start, end, kind, place)


def _with_labels(text: str) -> Iterator[tuple[int, int, str]]:
    """Units, a short line that names a subject, such as a defined term, with its paragraph.

    A label without a sentence to go with says nothing and is left out.
    """
    label: int | None = None
    definition: tuple[int, int] | None = None
    for start, end, kind in quotable_units(text):
        if definition is not None:
            if kind == "prose" and _goes_on(text, definition, start, end):
                definition = (definition[0], end)
                continue
            yield *definition, "prose"
            definition = None
        if kind != "prose":
            label = None
            yield start, end, kind
        elif _is_label(text[start:end]):
            label = start if label is None else label
        elif label is not None:
            definition, label = (label, end), None
        else:
            yield start, end, kind
    if definition is not None:
        yield *definition, "prose"


def _goes_on(text: str, definition: tuple[int, int], start: int, end: int) -> bool:
    gap = text[definition[1] : start]
    is_same_paragraph = not gap.strip() and gap.count("\n") < 2
    return is_same_paragraph and end - definition[0] <= _DEFINITION_CHARS


def _is_label(text: str) -> bool:
    plain = text.rstrip("*_`\"')\u201d ")
    is_open = not plain.endswith((".", "!", "?", ":", "\u3002", "\uff01", "\uff1f"))
    return is_open and len(text.split()) <= _LABEL_WORDS and len(text) <= _LABEL_CHARS
