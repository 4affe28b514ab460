"""Finds sentences of different pages that say different things of the same subject; pure.

A false alarm costs an answer its confidence and its reader's trust, so that two sentences are
compared only where they are the same but for one value, or but for a denial.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, Literal, NamedTuple

from webrag.answering.english.support import denies, identifiers, numbers
from webrag.answering.units import Unit
from webrag.lexical.analysis import analyze
from webrag.lexical.stopwords import QUESTION_STOPWORDS

_MIN_COVERAGE: Final = 0.3
_MAX: Final = 3
_MIN_TERMS: Final = 3
# Every two are compared. Six passages of documentation hold up to 150 statements, of which some
# ten say the same of the same; a page of one statement with thousands of values holds thousands.
_MOST_COMPARED: Final = 400
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
_PREPOSITIONS: Final = ("by", "to", "from", "into", "on", "in", "at", "for")
# Dropped by `analyze`, but they tie a statement to a condition, a bound or a direction.
_JOINTS: Final = frozenset({"if", "or", "than", "with", *_PREPOSITIONS})
# "Raised by 10" and "raised to 60" are both true.
_BEFORE_VALUE: Final = re.compile(
    rf"\b({'|'.join(_PREPOSITIONS)})\s+(?:(?:all|the|one|a)\s+)?([\w.,%]+)", re.IGNORECASE
)
# "Open connections are ..." names its subject, "Open connections to ..." gives an order.
_NOUN_PHRASE: Final = (
    r"(?:open|write|call|type|enter|run|set|change|use)\s+"
    r"(?:(?!(?:an?|the|all|any|each|every|your|its?|this|these|that|which|who|when|where|if|so|and|or"
    r"|as|because|while|until|to|of|in|on|at|by|for|from|into|with|only|up|how|what)\b)[a-z][\w-]*\s+)"
    r"{1,3}(?:is|are|was|were|has|have|can|cannot|will|must|defaults?|ends?|expires?|takes?|lasts?)\b"
)
# Sentences that point at what stands elsewhere, guess, ask, advise, or are no statement of a page.
_DEPENDENT: Final = re.compile(
    rf"^\W*(?!{_NOUN_PHRASE})"
    r"(?:it|its|this|these|that|those|they|their|he|she|here|there|such"
    r"|both(?!\s+(?:the|[a-z]+s)\b)"
    r"|(?:each|either)\s+(?:[a-z]*[^\Wsui]s|of|can|may|will|must|could|should)"
    r"|see|use|set|run|pass|call|add|specify|enable|disable|install|create|type|choose|select"
    r"|press|click|open|enter|configure|write|put|remove|change|turn|try|make|note|consider"
    r"|suppose|assume|let)\b"
    r"|^\W*(?:(?:by|the)\s+)?defaults?\s+(?:is|are|to|value|setting)\b"
    r"|\b(?:(?-i:may)|might|maybe|perhaps|probably|sometimes|often|usually|typically|generally|normally"
    r"|some|(?<!\bfor )many|(?<!\bat )most|few|about|around|approximately"
    r"|roughly|almost|nearly|example|e\.g|copyright)\b"
    r"|^\W*for\s+many\b|\bfor\s+many\s+(?:\w+\s+){1,3}(?:is|are|was|were|has|have)\b"
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
# What follows a value, even where a word with a capital precedes it: "TTL 300 seconds".
_UNIT: Final = re.compile(
    r"\s+(?:(?:micro|milli|nano)?seconds?|minutes?|hours?|days?|weeks?|months?|years?|[mun]?s|min"
    r"|percent|(?:[KMGTkmgt]i?)?[Bb]|(?:kilo|mega|giga|tera)?bytes?|bits)\b|\s*%"
)
# Three digits and no year, for there are "Windows 11 nodes" and "TLS 1.3 connections".
_COUNT: Final = re.compile(r"(?!(?:19|20)\d\d$)\d{3,}")
_COUNTED: Final = re.compile(
    r"\s+(?:worker\s+|open\s+|client\s+|idle\s+)?"
    r"(?:connections|workers|threads|processes|replicas|retries|rows|entries|messages)\b"
)
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
        values: Its numbers with the prepositions before them, without those that name something.
    """

    unit: Unit
    frame: tuple[frozenset[str], ...]
    values: frozenset[tuple[str, str]]
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
    for left, right in combinations(_comparable(statements), 2):
        if left.page != right.page and left.frame == right.frame:
            kind = _kind(left, right)
            if kind is not None:
                yield Disagreement(kind, left.unit, right.unit)


def _comparable(statements: Sequence[_Statement]) -> list[_Statement]:
    """Those that another page may contradict, each once a page; of too many the most relevant."""
    pages: dict[object, set[str]] = {}
    for each in statements:
        pages.setdefault(each.frame, set()).add(each.page)
    once: dict[object, _Statement] = {}
    for each in statements:
        if len(pages[each.frame]) > 1:
            once.setdefault((each.frame, each.page, each.values, each.denies), each)
    return list(once.values())[:_MOST_COMPARED]


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
    before = _prepositions(text)
    values = {(before.get(number, ""), number) for number in numbers(text) - naming}
    bound = {preposition for preposition, _ in values}
    frame = tuple(map(frozenset, (words, names, naming, joints, bound)))
    return _Statement(unit, frame, frozenset(values), denies(text))


def _prepositions(text: str) -> dict[str, str]:
    """For each number that follows a preposition, which."""
    return {
        number: match[1].casefold()
        for match in _BEFORE_VALUE.finditer(text)
        for number in numbers(match[2])
    }


def _naming(text: str) -> set[str]:
    """The numbers that name something."""
    found: set[str] = set()
    for match in _NAMING.finditer(text):
        named = match["named"] or ""
        if named.casefold() not in _BEFORE_VALUES and not _is_counted(text, match):
            found |= numbers(match["number"] or match["issue"] or match["ordinal"])
    return found


def _is_counted(text: str, match: re.Match[str]) -> bool:
    """Whether a number after a word with a capital says how much, not which."""
    if not (match["named"] or "")[:1].isupper():
        return False
    is_count = _COUNT.fullmatch(match["number"].replace(",", ""))
    return bool(_UNIT.match(text, match.end()) or (is_count and _COUNTED.match(text, match.end())))


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
