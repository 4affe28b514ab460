"""Quantities that questions ask for and texts state, in the languages that questions come in."""

import re
from typing import Final, NamedTuple

from webrag.lexical.analysis import analyze
from webrag.pattern_file import PatternFile

_FILE: Final = PatternFile(__package__, "patterns.ini")
_ASKS_PRICE: Final = _FILE.pattern("asks_price")
_ASKS_NUMBER: Final = _FILE.pattern("asks_number")
_PRICE: Final = _FILE.pattern("price")
_NUMBER: Final = _FILE.pattern("number")
_COUNTED: Final = _FILE.pattern("counted")
# One to eight words measure alike; a number anywhere in the unit lets 14 and 22 of 105 questions
# without an answer be called medium or high, in place of 11 and 16 (benchmarks/fit_judge.py).
_WORDS_BEFORE: Final = 3
_WORDS_AFTER: Final = 5


class Quantity(NamedTuple):
    """The quantity that a question asks for in figures.

    Attributes:
        is_price: An amount of money; else any number.
        counted: Index terms of what is counted, near which the number stands; empty where the
            question does not say.
        told: Numbers of the question, which are no answer.
    """

    is_price: bool
    counted: frozenset[str]
    told: frozenset[str]

    def is_stated(self, text: str) -> bool:
        """Tell whether a text has such a figure."""
        if self.is_price:
            return _PRICE.search(text) is not None
        found = [each for each in _NUMBER.finditer(text) if each[0].casefold() not in self.told]
        if not found or not self.counted:
            return bool(found)
        if self.counted.isdisjoint(analyze(_NUMBER.sub(" ", text))):
            return False
        return any(not self.counted.isdisjoint(_terms_near(text, each)) for each in found)


def _terms_near(text: str, number: re.Match[str]) -> list[str]:
    before = text[: number.start()].split()[-_WORDS_BEFORE:]
    after = text[number.end() :].split(maxsplit=_WORDS_AFTER)[:_WORDS_AFTER]
    return analyze(" ".join([*before, *after]))


def quantity_asked(question: str) -> Quantity | None:
    """The quantity that would answer a question; None where it asks for none."""
    is_price = _ASKS_PRICE.search(question) is not None
    if not is_price and not _ASKS_NUMBER.search(question):
        return None
    counted = _COUNTED.search(question)
    return Quantity(
        is_price,
        frozenset(analyze(counted[1]) if counted else ()),
        frozenset(number.casefold() for number in _NUMBER.findall(question)),
    )
