"""Finds sentences of different pages that say different things of the same subject; pure.

A false alarm costs an answer its confidence and its reader's trust, so that two sentences are
compared only where they are the same but for one value, or but for a denial.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, Literal, NamedTuple

from webrag.answering.support import denies, identifiers, numbers
from webrag.answering.units import Unit
from webrag.indexing.lexical import analyze
from webrag.indexing.stopwords import QUESTION_STOPWORDS

__all__ = ["Disagreement", "find_conflicts"]

_MIN_COVERAGE: Final = 0.3
_MAX: Final = 3
_MIN_TERMS: Final = 3
# "The default value is 10 bytes" says of what only in the heading above it.
_MIN_TELLING_TERMS: Final = 2
_TELLING_NOTHING: Final = frozenset(
    analyze(
        "default value number amount count size length limit maximum minimum time timeout year"
        " month week day hour minute second millisecond byte kilobyte megabyte gigabyte percent"
        " option parameter argument setting return set use allow enable support available"
    )
)
_NEGATING_TERMS: Final = frozenset(
    analyze("not never no cannot none neither do does did doesn't don't isn't won't can't")
)
# Dropped by `analyze`, but they tie a statement to a condition or to a bound.
_JOINTS: Final = frozenset({"if", "or", "than", "with"})
# Sentences that point at what stands elsewhere, guess, ask, advise, or are no statement of a page.
_DEPENDENT: Final = re.compile(
    r"^\W*(?:it|its|this|these|that|those|they|their|he|she|here|there|such|both|either|each"
    r"|see|use|set|run|pass|call|add|specify|enable|disable|install|create|type|choose|select"
    r"|press|click|open|enter|configure|write|put|remove|change|turn|try|make|note|consider"
    r"|suppose|assume|let)\b"
    r"|^\W*(?:(?:by|the)\s+)?defaults?\s+(?:is|are|to|value|setting)\b"
    r"|\b(?:(?-i:may)|might|maybe|perhaps|probably|sometimes|often|usually|typically|generally|normally"
    r"|some|many|most|few|about|around|approximately|roughly|almost|nearly|example|e\.g|copyright)\b"
    r"|^\W*\[\d+\]|\bdefault\s*="
    r"|[\u00a9?]",
    re.IGNORECASE,
)
# Numbers that name something, as in "Chapter 3", "Python 3.12", "status 404" and "the 2nd one".
_NAMING: Final = re.compile(
    r"\b(?P<named>version|release|chapter|section|table|figure|step|stage|phase|level|type|status"
    r"|code|error|issue|bug|item|line|page|since|[A-Z]\w*)s?\s+[#v]?(?P<number>\d[\d.,_]*)(?!\w)"
    r"|#(?P<issue>\d+)|\b(?P<ordinal>\d+)(?:st|nd|rd|th)\b"
)
# Written with a capital before a value, too: at the beginning of a sentence, in dates and prices.
_BEFORE_VALUES: Final = QUESTION_STOPWORDS | {
    "after", "before", "below", "between", "above", "under", "until", "up", "within",
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december", "usd", "eur", "gbp",
}  # fmt: skip
_WORD: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"\d[\d.,_]*(?P<unit>[a-z%]*)")


class Disagreement(NamedTuple):
    """Two units that disagree, the better one first."""

    kind: Literal["number", "negation"]
    left: Unit
    right: Unit


class _Statement(NamedTuple):
    """A sentence taken apart.

    Attributes:
        frame: Everything it holds but its values and its denial.
        values: Its numbers, without those that name something.
    """

    unit: Unit
    frame: tuple[frozenset[str], ...]
    values: frozenset[str]
    denies: bool

    @property
    def page(self) -> str:
        return self.unit.evidence.chunk.source_url


def find_conflicts(units: Sequence[Unit]) -> list[Disagreement]:
    """Pairs of sentences that contradict each other, the most relevant first, at most three.

    Two sentences of different pages conflict when they hold the same words, names and conditions,
    and either differ in one value or only one of them denies. Sentences that need others to be
    understood, questions, advice and guesses contradict nothing.

    Args:
        units: Sentences of the passages; those with little to do with the question are ignored.
    """
    relevant = [unit for unit in units if unit.kind == "prose" and unit.coverage >= _MIN_COVERAGE]
    ordered = sorted(relevant, key=lambda unit: -unit.value)
    statements = [read for unit in ordered if (read := _read(unit)) is not None]
    return list(_first(_disagreements(statements), _MAX))


def _first(found: Iterator[Disagreement], limit: int) -> Iterator[Disagreement]:
    pages: set[frozenset[str]] = set()
    for each in found:
        pair = frozenset(unit.evidence.chunk.source_url for unit in (each.left, each.right))
        if pair not in pages:
            pages.add(pair)
            yield each
        if len(pages) == limit:
            return


def _disagreements(statements: Sequence[_Statement]) -> Iterator[Disagreement]:
    for left, right in combinations(statements, 2):
        if left.page != right.page and left.frame == right.frame:
            kind = _kind(left, right)
            if kind is not None:
                yield Disagreement(kind, left.unit, right.unit)


def _kind(left: _Statement, right: _Statement) -> Literal["number", "negation"] | None:
    if left.values == right.values:
        return "negation" if left.denies != right.denies else None
    differs = len(left.values - right.values) == 1 == len(right.values - left.values)
    return "number" if differs and left.denies == right.denies else None


def _read(unit: Unit) -> _Statement | None:
    """The statement a unit makes; None when it cannot be compared with others."""
    text = unit.text
    if _DEPENDENT.search(text):
        return None
    naming, words = _naming(text), _words(text)
    if len(words) < _MIN_TERMS or len(words - _TELLING_NOTHING) < _MIN_TELLING_TERMS:
        return None
    names = {name for name in identifiers(text) if not name[0].isdigit()}
    joints = _JOINTS & set(re.findall(r"[a-z]+", text.casefold()))
    frame = (frozenset(words), frozenset(names), frozenset(naming), frozenset(joints))
    return _Statement(unit, frame, frozenset(numbers(text) - naming), denies(text))


def _naming(text: str) -> set[str]:
    """The numbers that name something."""
    found: set[str] = set()
    for match in _NAMING.finditer(text):
        if (match["named"] or "").casefold() not in _BEFORE_VALUES:
            found |= numbers(match["number"] or match["issue"] or match["ordinal"])
    return found


def _words(text: str) -> set[str]:
    """Terms without values and denials; of a value such as `30s` its unit stays."""
    plain = _WORD.sub(lambda word: "" if numbers(word[0]) else word[0], text)
    words = set()
    for term in analyze(plain):
        value = _VALUE.match(term)
        if value is None and term[0] != "=":
            words.add(term)
        elif value is not None and value["unit"]:
            words.add(value["unit"])
    return words - _NEGATING_TERMS
