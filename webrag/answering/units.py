"""Reads passages as sentences, code blocks and table rows, with what each is worth; pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from webrag.answering.evidence import Evidence, Gathered
from webrag.retrieval.quotes import quotable_units, term_coverage

_PASSAGE_WEIGHT: Final = 2.0
_PASSAGES: Final = 6
_LABEL_WORDS: Final = 5
_DEFINITION_CHARS: Final = 500
_LABEL_CHARS: Final = 80  # scripts without blanks put a whole sentence into one word
_MAX_UNIT_CHARS: Final = 1_200


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, code block or table row of a passage.

    Attributes:
        start: Offset in the page.
        end: Offset after it.
        coverage: Share of the question's weighted terms it holds.
        value: How near it is to what is asked; better passages come first.
    """

    evidence: Evidence
    start: int
    end: int
    kind: str
    coverage: float = 0.0
    value: float = 0.0

    @property
    def text(self) -> str:
        """Its markdown."""
        offset = self.evidence.chunk.char_start
        return self.evidence.chunk.text[self.start - offset : self.end - offset]


def read_units(query: str, gathered: Gathered) -> list[Unit]:
    """The units of the best passages with their values, in page order within each.

    Args:
        query: The question.
        gathered: Ranked passages.
    """
    return [
        replace(unit, coverage=covered, value=_PASSAGE_WEIGHT * evidence.order + covered)
        for evidence in gathered.evidence[:_PASSAGES]
        for unit in _units(evidence)
        for covered in (term_coverage(unit.text, query, gathered.term_idf),)
    ]


def _units(evidence: Evidence) -> Iterator[Unit]:
    chunk = evidence.chunk
    focus = chunk.focus
    text, offset = (focus.text, focus.char_start) if focus else (chunk.text, chunk.char_start)
    for first, last, kind in _with_labels(text):
        start, end = offset + first, offset + last
        fits = last - first <= _MAX_UNIT_CHARS and evidence.is_quotable(start, end)
        if fits and kind != "heading":
            yield Unit(evidence, start, end, kind)


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
