"""Decides whether a quotation says what a sentence says; pure, conservative: doubt means no."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Final

from webrag.ingestion.characters import sentences
from webrag.lexical.analysis import analyze, distinct_terms
from webrag.orchestration.judge import Encode
from webrag.pattern_file import PatternFile

_CLAUSE: Final = re.compile(
    r"(?<=[.!?;:])\s++|,\s++|(?<!\s)\s++(?:[-\u2013\u2014]\s++|(?=(?:and|but|while|whereas"
    r"|although|though|or)\b))|\n+"
)
_TELLING_TERMS: Final = 2

Values = Callable[[str], set[str]]

"""Finds what a statement binds to its subject, such as its numbers."""


@lru_cache(maxsize=4_096)
def terms_of(text: str) -> frozenset[str]:
    """Distinct index terms; remembered, as every clause is compared with every other."""
    return frozenset(analyze(text))


def clauses(text: str) -> list[str]:
    """The clauses of a text, in order."""
    return [part for part in _CLAUSE.split(text) if part.strip()]


def nearest_clauses(claim: str, known: Sequence[str]) -> list[str]:
    """Give the clauses that share most words with a claim; of equal ones those with its subject.

    A claim's first word stands for its subject. None is near that shares less than two words:
    whatever a word alone is said of need not be the same.
    """
    terms = distinct_terms(claim)
    shared = [
        (len(set(terms) & there), bool(terms) and terms[0] in there, part)
        for part in known
        if (there := terms_of(part))
    ]
    most = max(((count, has_subject) for count, has_subject, _ in shared), default=(0, False))
    if most[0] < min(_TELLING_TERMS, len(terms)):
        return []
    return [part for count, has_subject, part in shared if (count, has_subject) == most]


def is_bound(sentence: str, support: str, values: Values) -> bool:
    """Tell whether every value of a sentence belongs to what it belongs to in the support.

    In "30 seconds for reads and 5 for writes" nobody said 5 for reads. A value is in the wrong
    place when another statement of the support, with a value of its own, is closer in words.
    """
    known = [(values(part), terms_of(part)) for part in _statements(support, values)]
    if len(known) < 2:
        return True
    for part in _statements(sentence, values):
        claimed = values(part)
        own = {term for value in claimed for term in analyze(value)}
        terms = [term for term in distinct_terms(part) if term not in own]
        # With several values, the subject of the first need not be that of the others.
        subject = set(terms[:1]) if len(claimed) == 1 else set()
        shared = [(len(words.intersection(terms)), subject <= words) for _, words in known]
        best = max(shared)
        for value in claimed:
            held = [n for n, (there, _) in zip(shared, known, strict=True) if value in there]
            if held and max(held) < best:
                return False
    return True


def _statements(text: str, values: Values) -> list[str]:
    """Clauses joined until each holds a value: "the leader and its replica use port 1" is one."""
    found: list[str] = []
    pending: list[str] = []
    for part in clauses(text):
        pending.append(part)
        if values(part):
            found.append(" ".join(pending))
            pending = []
    if pending and found and _follows(text, pending):
        found[-1] = " ".join((found[-1], *pending))
    return found


def _follows(text: str, pending: Sequence[str]) -> bool:
    """Tell whether the last clauses go on with the sentence before them."""
    before = text[: text.rfind(pending[0])].rstrip()
    return not before.endswith((".", "!", "?"))


_FILE: Final = PatternFile(__package__, "support.ini")
_RE: Final = _FILE.patterns
_WORD_NUMBERS: Final = dict(each.split() for each in _FILE.lines("numbers")[0])
_OPPOSITES: Final = tuple(each.split() for each in _FILE.lines("opposites")[0])
# Each name of a unit, with the number of its kind and the first of its names.
_UNITS: Final = {
    name: (kind, unit.split()[0])
    for kind, units in enumerate(_FILE.lines("units"))
    for unit in units
    for name in unit.split()
}
_MEASURE: Final = re.compile(r"(?<![\w.])(\d[\d,_]{0,40}+(?:\.\d{1,40}+)?)[\s-]?([a-z]++\b|%)")


def keeps_qualifiers(sentence: str, support: str) -> bool:
    """Tell whether a sentence says no more than its support: of all, of few, on no condition."""
    said, known = sentence.casefold(), support.casefold()
    for widening in (_RE["universal"], _RE["only"]):
        if widening.search(said) and not widening.search(known):
            return False
    return not (_RE["condition_word"].search(known) and not _RE["conditional"].search(said))


def keeps_units(sentence: str, support: str) -> bool:
    """Tell whether no quantity of a sentence has another unit of the same kind in the support."""
    known = _measures(support)
    for number, units in _measures(sentence).items():
        there = known.get(number, set())
        kinds = {kind for kind, _ in there}
        if any(unit not in there and unit[0] in kinds for unit in units):
            return False
    return True


def _measures(text: str) -> dict[str, set[tuple[int, str]]]:
    found: dict[str, set[tuple[int, str]]] = {}
    for match in _MEASURE.finditer(text.casefold()):
        if match[2] in _UNITS:
            found.setdefault(re.sub(r"[,_]", "", match[1]), set()).add(_UNITS[match[2]])
    return found


# Measured on the pairs of the test: at .5 no contradicted sentence passes on words alone.
_MIN_COVERAGE: Final = 0.5
# Fewer words in common are enough where the meanings are close.
_MIN_COVERAGE_WITH_MEANING: Final = 0.34
_MIN_SIMILARITY: Final = 0.6
_NUMBER: Final = re.compile(
    r"(?<![\w.])[-+]?\d[\d,_\u202f\u00a0]*(?:\.\d+)*(?:e[-+]?\d+)?", re.IGNORECASE
)
_IDENTIFIER: Final = re.compile(
    r"https?://[^\s)\]>\"']+"
    r"|`[^`\n]+`"
    r"|(?<![\w-])--?[A-Za-z][\w-]*"
    r"|\b\w+(?:(?:::|[._/])\w+)+\b"
    r"|\b[A-Za-z]*[a-z][A-Z]\w*"
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])\w+\b"
    r"|\b[A-Z]{2,}\b"
)
# Each clause of a sentence is compared with each of its support. Real ones have a tenth of these.
_MAX_CLAUSES: Final = 40
_MAX_SUPPORT_CLAUSES: Final = 400
_MAX_NAMES: Final = 100


def is_supported(
    sentence: str,
    quotes: Sequence[str],
    *,
    context: str = "",
    encode: Encode | None = None,
) -> bool:
    """Tell whether quotations, below titles and headings as context, together say a sentence.

    Every number of the sentence must be in them, with its unit and beside the same words, every
    identifier in them or in their context, most of its words must be theirs unless the cosine by
    `encode` is high, and it must not deny what they say, turn it round, widen it or leave its
    condition out. A sentence that is copied whole is supported; one of more clauses or identifiers
    than the limits here is not.
    """
    support = "\n".join(quotes)
    if not distinct_terms(sentence) or not support.strip():
        return False
    if _squeezed(sentence) in map(_squeezed, sentences(support, rule="statement")):
        return True
    if _is_endless(sentence, support):
        return False
    if not numbers(sentence) <= numbers(support):
        return False
    if not identifiers(sentence) <= _names(f"{support}\n{context}", identifiers(sentence)):
        return False
    if not (is_bound(sentence, support, numbers) and is_bound(sentence, support, identifiers)):
        return False
    if not (keeps_units(sentence, support) and keeps_qualifiers(sentence, support)):
        return False
    if _turns_round(sentence, support) or not _same_polarity(sentence, support):
        return False
    return _says_as_much(sentence, support, context, encode)


def _is_endless(sentence: str, support: str) -> bool:
    return (
        len(clauses(sentence)) > _MAX_CLAUSES
        or len(clauses(support)) > _MAX_SUPPORT_CLAUSES
        or len(identifiers(sentence)) > _MAX_NAMES
    )


def numbers(text: str) -> set[str]:
    """Numbers of a text in one spelling: `1,000`, `1_000` and `thousand` are alike."""
    plain = unicodedata.normalize("NFKC", text)
    found = {_one_spelling(match[0]) for match in _NUMBER.finditer(plain)}
    # "512MB" and "30s" hold their number too.
    found |= {_one_spelling(value) for value in re.findall(r"(?<![\w.])\d+(?=[a-z%])", plain, re.I)}
    words = re.findall(r"[a-z]+", plain.casefold())
    return found | {_WORD_NUMBERS[word] for word in words if word in _WORD_NUMBERS}


def identifiers(text: str) -> set[str]:
    """Names of code, flags, addresses and acronyms in a text, without marks around them."""
    found = (match[0].strip("`").rstrip(".,;:") for match in _IDENTIFIER.finditer(text))
    return {
        name.casefold() for name in found if len(name) > 1 and not name.replace(".", "").isdigit()
    }


def is_negated(text: str) -> bool:
    """Tell whether a text denies something; names of code in it do not count."""
    return bool(
        _RE["negation"].search(_IDENTIFIER.sub(" ", text.replace("\u2019", "'")).casefold())
    )


def denies(text: str) -> bool:
    """Tell whether a statement denies something, conditions such as "if it is not set" aside."""
    return is_negated(_RE["condition"].sub(" ", text))


def _one_spelling(number: str) -> str:
    digits = re.sub(r"[,_\u202f\u00a0]", "", number).lstrip("+")
    return re.sub(r"\.0+$", "", digits).rstrip(".") or digits


def _names(support: str, wanted: Iterable[str]) -> set[str]:
    folded = support.casefold()
    return {name for name in wanted if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded)}


def _turns_round(sentence: str, support: str) -> bool:
    said, known = terms_of(sentence), terms_of(support)
    return any(
        mine <= said and not mine <= known and theirs <= known for mine, theirs in _opposites()
    )


@cache
def _opposites() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """The terms of every pair, both ways; without those that the index leaves out."""
    pairs = [(terms_of(one), terms_of(other)) for one, other in _OPPOSITES]
    return tuple(
        each for one, other in pairs if one and other for each in ((one, other), (other, one))
    )


def _same_polarity(sentence: str, support: str) -> bool:
    """Tell whether both deny alike, as sentences and by each clause with those closest to it."""
    terms = set(distinct_terms(sentence))
    parts = sentences(support, rule="statement")
    shared = [len(terms & set(analyze(part))) for part in parts]
    most = max(shared, default=0)
    nearest = [part for part, count in zip(parts, shared, strict=True) if count == most]
    is_alike = any(denies(part) == denies(sentence) for part in nearest)
    known = clauses(support)
    closest = [(clause, nearest_clauses(clause, known)) for clause in clauses(sentence)]
    if not is_alike and not any(_holds_all(clause, found) for clause, found in closest):
        return False
    return all(
        any(denies(each) == denies(clause) and not _turns_round(clause, each)
            for each in found)
        for clause, found in closest
        if found
    )  # fmt: skip


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _holds_all(claim: str, found: Sequence[str]) -> bool:
    terms = set(distinct_terms(claim))
    return any(terms <= terms_of(clause) for clause in found)


def _says_as_much(
    sentence: str,
    support: str,
    context: str,
    encode: Encode | None,
) -> bool:
    terms = set(distinct_terms(sentence))
    known = set(analyze(f"{support}\n{context}"))
    covered = len(terms & known) / len(terms)
    if not terms & set(analyze(support)):
        return False
    if covered >= _MIN_COVERAGE:
        return True
    if encode is None or covered < _MIN_COVERAGE_WITH_MEANING:
        return False
    one, other = encode([sentence, support])
    return float(one @ other) >= _MIN_SIMILARITY
