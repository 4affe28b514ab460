"""Finds sentences of different pages that say different things of the same subject; pure."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, Literal, NamedTuple

from webrag.answering.support import identifiers, is_negated, numbers
from webrag.answering.units import Unit
from webrag.indexing.lexical import analyze

__all__ = ["Disagreement", "find_conflicts"]

# Sentences must be nearly the same but for the value: release notes and manuals of two versions
# share phrases all the time without contradicting each other.
_MIN_SHARED_TERMS: Final = 3
_NUMBER_OVERLAP: Final = 0.6
_NEGATION_OVERLAP: Final = 0.75
_MIN_COVERAGE: Final = 0.3
_NEGATING_TERMS: Final = frozenset(
    analyze("not never no cannot none neither doesn't don't isn't won't can't")
)
_MAX: Final = 3


class Disagreement(NamedTuple):
    """Two units that disagree, the better one first."""

    kind: Literal["number", "negation"]
    left: Unit
    right: Unit


def find_conflicts(units: Sequence[Unit]) -> list[Disagreement]:
    """Pairs of sentences that contradict each other, the most relevant first, at most three.

    Two sentences of different pages conflict when their words agree but for one number, or when
    their words agree and only one of them denies.

    Args:
        units: Sentences of the passages; those with little to do with the question are ignored.
    """
    relevant = [unit for unit in units if unit.kind == "prose" and unit.coverage >= _MIN_COVERAGE]
    ordered = sorted(relevant, key=lambda unit: -unit.value)
    return list(_first(_disagreements(ordered), _MAX))


def _first(found: Iterator[Disagreement], limit: int) -> Iterator[Disagreement]:
    pages: set[frozenset[str]] = set()
    for each in found:
        pair = frozenset((_page(each.left), _page(each.right)))
        if pair not in pages:
            pages.add(pair)
            yield each
        if len(pages) == limit:
            return


def _disagreements(units: Sequence[Unit]) -> Iterator[Disagreement]:
    for left, right in combinations(units, 2):
        if _page(left) == _page(right):
            continue
        kind = _kind(left.text, right.text)
        if kind is not None:
            yield Disagreement(kind, left, right)


def _page(unit: Unit) -> str:
    return unit.evidence.chunk.source_url


def _kind(left: str, right: str) -> Literal["number", "negation"] | None:
    mine, theirs = numbers(left), numbers(right)
    overlap, shared = _overlap(left, right)
    if shared < _MIN_SHARED_TERMS:
        return None
    differ = len(mine - theirs) == 1 and len(theirs - mine) == 1
    named = identifiers(left) - _digits(left), identifiers(right) - _digits(right)
    if differ and overlap >= _NUMBER_OVERLAP and not named[0] ^ named[1]:
        return "number"
    if mine == theirs and overlap >= _NEGATION_OVERLAP and is_negated(left) != is_negated(right):
        return "negation"
    return None


def _digits(text: str) -> set[str]:
    """Identifiers that are a value with its unit, such as `30s` or `512mb`."""
    return {name for name in identifiers(text) if name[0].isdigit()}


def _overlap(left: str, right: str) -> tuple[float, int]:
    """Jaccard similarity of the words that are no values, and how many are shared."""
    one, other = _words(left), _words(right)
    shared = len(one & other)
    return shared / max(len(one | other), 1), shared


def _words(text: str) -> set[str]:
    values = numbers(text)
    terms = {term for term in analyze(text) if not term.startswith("=")}
    return {
        term for term in terms - _NEGATING_TERMS if term not in values and not term[0].isdigit()
    }
