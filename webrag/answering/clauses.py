"""Reads statements clause by clause and tells which clauses speak of the same; pure."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from webrag.indexing.lexical import analyze, query_terms

__all__ = ["clauses", "is_bound", "nearest_clauses", "terms_of"]

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
    """The clauses that share most words with a claim; of equal ones those with its subject.

    A claim's first word stands for its subject. None when no clause shares two words: whatever a
    word alone is said of need not be the same.
    """
    terms = query_terms(claim)
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
    """Whether every value of a sentence belongs to what it belongs to in the support.

    In "30 seconds for reads and 5 for writes" nobody said 5 for reads. A value is in the wrong
    place when another statement of the support, with a value of its own, is closer in words.

    Args:
        sentence: What is claimed.
        support: What was quoted.
        values: Numbers, or names, as the caller compares them.
    """
    known = [(values(part), terms_of(part)) for part in _statements(support, values)]
    if len(known) < 2:
        return True
    for part in _statements(sentence, values):
        claimed = values(part)
        own = {term for value in claimed for term in analyze(value)}
        terms = [term for term in query_terms(part) if term not in own]
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
    """Whether the last clauses go on with the sentence before them."""
    before = text[: text.rfind(pending[0])].rstrip()
    return not before.endswith((".", "!", "?"))
