"""Compares the words that widen, narrow and measure statements; pure."""

import re
from typing import Final

__all__ = ["keeps_qualifiers", "keeps_units"]

_UNIVERSAL: Final = re.compile(
    r"\b(?:all|every(?:one|thing|where)?|each|any(?:one|thing|where)?|always|whole|entire(?:ly)?"
    r"|both|never|none?|nothing|nobody)\b"
)
_ONLY: Final = re.compile(
    r"\b(?:only|sole(?:ly)?|exclusive(?:ly)?|alone|just|merely|except|unless|restricted|limited)\b"
)
_CONDITION: Final = re.compile(r"\bonly\s+(?:if|when|where|after|once|with|for|by|on|in)\b")
_CONDITIONAL: Final = re.compile(
    r"\b(?:only|if|when|where|after|once|unless|until|with|for|by|on|in)\b"
)
_FAMILIES: Final = (
    {"ns": "ns nanosecond nanoseconds", "us": "us microsecond microseconds",
     "ms": "ms msec millisecond milliseconds", "s": "s sec secs second seconds",
     "min": "min mins minute minutes", "h": "h hr hrs hour hours", "d": "d day days",
     "w": "week weeks", "mo": "month months", "y": "year years"},
    {"bit": "bit bits", "b": "byte bytes", "kb": "kb kib kilobyte kilobytes",
     "mb": "mb mib megabyte megabytes", "gb": "gb gib gigabyte gigabytes",
     "tb": "tb tib terabyte terabytes"},
    {"usd": "dollar dollars usd", "eur": "euro euros eur", "gbp": "pounds gbp",
     "%": "percent %"},
    {"mm": "mm millimetres millimeters", "cm": "cm centimetres centimeters",
     "m": "metre metres meter meters", "km": "km kilometres kilometers", "mi": "mile miles"},
)  # fmt: skip
_UNITS: Final = {
    word: (number, unit)
    for number, family in enumerate(_FAMILIES)
    for unit, words in family.items()
    for word in words.split()
}
_MEASURE: Final = re.compile(r"(?<![\w.])(\d[\d,_]{0,40}+(?:\.\d{1,40}+)?)[\s-]?([a-z]++\b|%)")


def keeps_qualifiers(sentence: str, support: str) -> bool:
    """Whether a sentence says no more than its support: of all, of these only, on no condition."""
    said, known = sentence.casefold(), support.casefold()
    for widening in (_UNIVERSAL, _ONLY):
        if widening.search(said) and not widening.search(known):
            return False
    return not (_CONDITION.search(known) and not _CONDITIONAL.search(said))


def keeps_units(sentence: str, support: str) -> bool:
    """Whether no quantity of a sentence has another unit of the same kind in the support."""
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
