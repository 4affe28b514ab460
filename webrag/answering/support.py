"""Decides whether a quotation says what a sentence says; pure, conservative: doubt means no."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Final

from webrag.ingestion.characters import sentences
from webrag.lexical.analysis import analyze, distinct_terms
from webrag.orchestration.judge import Encode
from webrag.pattern_file import PatternFile

_CLAUSE: Final = re.compile(
    r"(?<=[.!?;:])\s++|,\s++|(?<!\s)\s++(?:[-\u2013\u2014]\s++|(?=(?:and|but|while|whereas"
    r"|although|though|or)\b))|\n+"
)
_FILE: Final = PatternFile(__package__, "support.ini")
_CONDITION: Final = _FILE.pattern("condition")
_NEGATION: Final = _FILE.pattern("negation")
_WORD_NUMBERS: Final = dict(each.split() for each in _FILE.lines("numbers")[0])
_UNITS: Final = {
    name: names.split()[0] for names in _FILE.lines("units")[0] for name in names.split()
}
_MEASURE: Final = re.compile(r"(?<![\w.])(\d[\d,_]{0,40}+(?:\.\d{1,40}+)?)[\s-]?([a-z]++\b|%)")
_OPPOSITES: Final = tuple(each.split() for each in _FILE.lines("opposites")[0])
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
_MAX_NAMES: Final = 100

Values = Callable[[str], set[str]]
"""Finds what a statement binds to its subject, such as its numbers."""


def is_supported(
    sentence: str,
    quotes: Sequence[str],
    *,
    context: str = "",
    encode: Encode | None = None,
) -> bool:
    """Tell whether quotations, below titles and headings as context, together say a sentence.

    Every number of the sentence must be in them with its unit, every identifier in them or in their
    context, both beside the same words. Most of its words must be theirs unless the cosine by
    `encode` is high, and it must neither deny what they say nor turn it round. A sentence that
    is copied whole is supported; one of more clauses or identifiers than the limits here is not.
    """
    support = "\n".join(quotes)
    if not distinct_terms(sentence) or not support.strip():
        return False
    if _squeezed(sentence) in map(_squeezed, sentences(support, rule="statement")):
        return True
    names = identifiers(sentence)
    if len(clauses(sentence)) > _MAX_CLAUSES or len(names) > _MAX_NAMES:
        return False
    if not numbers(sentence) <= numbers(support):
        return False
    folded = f"{support}\n{context}".casefold()
    if not all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) for name in names):
        return False
    if not (is_bound(sentence, support, numbers) and is_bound(sentence, support, identifiers)):
        return False
    if not keeps_units(sentence, support):
        return False
    if _turns_round(sentence, support) or not _same_polarity(sentence, support):
        return False
    return _says_as_much(sentence, support, context, encode)


@lru_cache(maxsize=4_096)
def terms_of(text: str) -> frozenset[str]:
    """Distinct index terms; remembered, as every clause is compared with every other."""
    return frozenset(analyze(text))


def clauses(text: str) -> list[str]:
    """The clauses of a text, in order."""
    return [part for part in _CLAUSE.split(text) if part.strip()]


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
    if pending and found:
        found[-1] = " ".join((found[-1], *pending))
    return found


def keeps_units(sentence: str, support: str) -> bool:
    """Tell whether a number that has units in both has one of those of the support."""
    known = _measures(support)
    return all(
        not known.get(number) or units & known[number]
        for number, units in _measures(sentence).items()
    )


def _measures(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for match in _MEASURE.finditer(text.casefold()):
        if match[2] in _UNITS:
            found.setdefault(_one_spelling(match[1]), set()).add(_UNITS[match[2]])
    return found


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
    return bool(_NEGATION.search(_IDENTIFIER.sub(" ", text.replace("\u2019", "'")).casefold()))


def denies(text: str) -> bool:
    """Tell whether a statement denies something, conditions such as "if it is not set" aside."""
    return is_negated(_CONDITION.sub(" ", text))


def _one_spelling(number: str) -> str:
    digits = re.sub(r"[,_\u202f\u00a0]", "", number).lstrip("+")
    return re.sub(r"\.0+$", "", digits).rstrip(".") or digits


def _turns_round(sentence: str, support: str) -> bool:
    """Tell whether a sentence says "enabled" where its support says only "disabled"."""
    said, known = terms_of(sentence), terms_of(support)
    return any(
        mine <= said and not mine <= known and theirs <= known
        for pair in _OPPOSITES
        for mine, theirs in permutations(map(terms_of, pair))
    )


def _same_polarity(sentence: str, support: str) -> bool:
    """Tell whether a sentence denies as one of those does that share most words with it."""
    terms = set(distinct_terms(sentence))
    parts = sentences(support, rule="statement")
    shared = [len(terms & terms_of(part)) for part in parts]
    return any(
        denies(part) == denies(sentence)
        for part, count in zip(parts, shared, strict=True)
        if count == max(shared)
    )


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _says_as_much(
    sentence: str,
    support: str,
    context: str,
    encode: Encode | None,
) -> bool:
    terms = set(distinct_terms(sentence))
    if not terms & terms_of(support):
        return False
    covered = len(terms & terms_of(f"{support}\n{context}")) / len(terms)
    if covered >= _MIN_COVERAGE or encode is None:
        return covered >= _MIN_COVERAGE
    one, other = encode([sentence, support])
    return covered >= _MIN_COVERAGE_WITH_MEANING and float(one @ other) >= _MIN_SIMILARITY
