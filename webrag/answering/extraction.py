"""Chooses the sentences that answer a question best, with where they stand; pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from webrag.answering.evidence import Evidence, Gathered
from webrag.answering.models import PartKind
from webrag.indexing.lexical import analyze
from webrag.retrieval.quotes import quotable_units, term_coverage

__all__ = ["Excerpt", "Unit", "choose_excerpts", "read_units"]

# Weights found on 72 questions over four documentation sites, as the share of gold sentences
# within 120 words: .40, against .31 for one quotation from each of the best four passages. Halving
# or doubling one of them changes it by less than .03.
_PASSAGE_WEIGHT: Final = 2.0
_MEANING_WEIGHT: Final = 1.0
_NEIGHBOUR_WEIGHT: Final = 0.3
_WORDS: Final = 120
_MORE_WORDS: Final = 180  # steps and code take more room than a fact
_PASSAGES: Final = 6
_LEAST_SHARE: Final = 0.6  # of the best value; what is far below it only fills the room
_REPEATED: Final = 0.8  # Jaccard of terms from which a sentence says the same again
_MAX_BLOCK_CHARS: Final = 900  # of code or a list that is shown whole
_LABEL_WORDS: Final = 5
_DEFINITION_CHARS: Final = 500
_LABEL_CHARS: Final = 80  # scripts without blanks put a whole sentence into one word
_MAX_UNIT_CHARS: Final = 1_200
_MARKER: Final = re.compile(r"(?:^|\n)[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+$")
_ITEM_LINE: Final = re.compile(r"\n[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")

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


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Neighbouring units of one page as one part of an answer.

    Attributes:
        text: `markdown[start:end]` of the page.
    """

    evidence: Evidence
    start: int
    end: int
    kind: PartKind
    text: str


def choose_excerpts(
    query: str,
    gathered: Gathered,
    *,
    similarity: Similarity | None,
    wants_steps: bool = False,
    max_excerpts: int = 4,
) -> list[Excerpt]:
    """The sentences that answer a question best, those of the best passage first.

    Sentences of one passage keep their order and are joined when they are neighbours; one that
    announces a list or code is followed by it. Nothing barred is chosen, nothing twice.

    Args:
        query: The question.
        gathered: Ranked passages.
        similarity: Compares meanings; None to go by words alone.
        wants_steps: Whether the answer is likely a procedure.
        max_excerpts: Excerpts at most.
    """
    units = read_units(query, gathered, similarity=similarity)
    chosen = _within_budget(units, _MORE_WORDS if wants_steps else _WORDS)
    chosen = _completed(chosen, units)
    groups = list(_groups(sorted(chosen, key=lambda unit: (unit.evidence.number, unit.start))))
    best = sorted(groups, key=_worth, reverse=True)[:max_excerpts]
    # Passage by passage, the one with the best sentence first; in page order within a passage.
    leading: dict[int, float] = {}
    for group in best:
        number = group[0].evidence.number
        leading[number] = max(leading.get(number, 0.0), _worth(group))
    best.sort(key=lambda group: (-leading[group[0].evidence.number], group[0].start))
    return [_excerpt(group) for group in best]


def read_units(
    query: str, gathered: Gathered, *, similarity: Similarity | None, passages: int = _PASSAGES
) -> list[Unit]:
    """The units of the best passages with their values, in page order within each."""
    return [
        unit
        for evidence in gathered.evidence[:passages]
        for unit in _valued(query, evidence, gathered, similarity)
    ]


def _valued(
    query: str, evidence: Evidence, gathered: Gathered, similarity: Similarity | None
) -> list[Unit]:
    units = []
    for unit in _units(evidence):
        covered = term_coverage(unit.text, query, gathered.term_idf)
        meaning = similarity(query, unit.text) if similarity else 0.0
        value = _PASSAGE_WEIGHT * evidence.order + covered + _MEANING_WEIGHT * meaning
        units.append(replace(unit, coverage=covered, value=value))
    beside = [0.0, *(unit.value for unit in units), 0.0]
    return [
        replace(unit, value=unit.value + _NEIGHBOUR_WEIGHT * max(left, right))
        for unit, left, right in zip(units, beside, beside[2:], strict=False)
    ]


def _units(evidence: Evidence) -> Iterator[Unit]:
    chunk = evidence.chunk
    focus = chunk.focus
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


def _within_budget(units: Sequence[Unit], words: int) -> list[Unit]:
    chosen: list[Unit] = []
    left = words
    ordered = sorted(units, key=lambda each: -each.value)
    for unit in ordered:
        size = len(unit.text.split())
        if chosen and unit.value < _LEAST_SHARE * ordered[0].value:
            break
        if (chosen and size > left) or _says_again(unit, chosen):
            continue
        chosen.append(unit)
        left -= size
        if left <= 0:
            break
    return chosen


def _says_again(unit: Unit, chosen: Sequence[Unit]) -> bool:
    terms = set(analyze(unit.text))
    for other in chosen:
        known = set(analyze(other.text))
        if terms and len(terms & known) >= _REPEATED * len(terms | known):
            return True
    return False


def _completed(chosen: Sequence[Unit], units: Sequence[Unit]) -> list[Unit]:
    """With what an announcing sentence announces, and the sentence that announces chosen code."""
    kept = {(unit.start, unit.evidence.number): unit for unit in chosen}
    for left, right in pairwise(units):
        if left.evidence is not right.evidence or right.place != left.place + 1:
            continue
        announced = _announces(left)
        if announced and right in chosen and right.kind == "code":
            kept.setdefault((left.start, left.evidence.number), left)
        if announced and left in chosen:
            for unit in _announced(units, right):
                kept.setdefault((unit.start, unit.evidence.number), unit)
    return list(kept.values())


def _announces(unit: Unit) -> bool:
    return unit.kind == "prose" and unit.text.rstrip("*_` ").endswith(":")


def _announced(units: Sequence[Unit], first: Unit) -> Iterator[Unit]:
    """The code block, or the list items, that stand where `first` does."""
    if first.kind == "code":
        yield first
        return
    at = units.index(first)
    previous: Unit | None = None
    for unit in units[at:]:
        if unit.evidence is not first.evidence or unit.end - first.start > _MAX_BLOCK_CHARS:
            return
        if unit.kind != "prose" or (previous is None and not _is_item(unit)):
            return
        if previous is not None and not (_is_item(unit) or _joins(previous, unit)):
            return
        yield unit
        previous = unit


def _is_item(unit: Unit) -> bool:
    return bool(_MARKER.search(_before(unit)))


def _before(unit: Unit) -> str:
    chunk = unit.evidence.chunk
    return chunk.text[max(0, unit.start - chunk.char_start - 60) : unit.start - chunk.char_start]


def _joins(left: Unit, right: Unit) -> bool:
    """Whether nothing but white space within one paragraph separates two sentences."""
    return not _gap(left, right).strip() and _gap(left, right).count("\n") < 2


def _gap(left: Unit, right: Unit) -> str:
    offset = left.evidence.chunk.char_start
    return left.evidence.chunk.text[left.end - offset : right.start - offset]


def _groups(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    group: list[Unit] = []
    for unit in units:
        if group and not _belongs(group[-1], unit):
            yield group
            group = []
        group.append(unit)
    if group:
        yield group


def _worth(group: Sequence[Unit]) -> float:
    return max(unit.value for unit in group)


def _belongs(left: Unit, right: Unit) -> bool:
    if left.evidence is not right.evidence or right.place != left.place + 1:
        return False
    if left.kind != right.kind:
        return False
    if right.kind == "row":
        return True
    both_items = _is_item(right) and (_is_item(left) or _gap(left, right).count("\n") < 2)
    return right.kind == "prose" and (_joins(left, right) or both_items)


def _excerpt(group: Sequence[Unit]) -> Excerpt:
    first, last = group[0], group[-1]
    start, end = first.start, last.end
    offset = first.evidence.chunk.char_start
    text = first.evidence.chunk.text
    kind: PartKind = {"code": "code", "row": "table"}.get(first.kind, "prose")  # type: ignore[assignment]
    if kind == "prose" and _ITEM_LINE.search(text[start - offset : end - offset]):
        kind = "list"
        marker = _MARKER.search(_before(first))
        if marker:
            start -= len(marker[0].lstrip())
    return Excerpt(first.evidence, start, end, kind, text[start - offset : end - offset])
