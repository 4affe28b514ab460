"""Quantities that questions ask for and texts state, in the languages that questions come in."""

import re
from typing import Final, NamedTuple

from webrag.lexical.analysis import analyze

_ASKS_PRICE: Final = re.compile(
    r"\bhow much\b.{0,80}\b(?:costs?|pay|paid|payed|earns?)\b|\bhow expensive\b"
    r"|\bwhat (?:do|does|did|will|would)\b.{0,80}\bcosts?\b|\bcosts? (?:an?|per)\b"
    r"|\b(?:price|pricing|salary|fees?|(?:big|high|large) .{0,20}\bfine|kostet|kosten|teuer|preis"
    r"|prix|co[uû]te(?:nt)?|cuestan?|precio|quanto cost(?:a|ano|ato)|prezzo|quanto custam?"
    r"|preço|kosztuj[eą]|cena"
    r"|сто(?:ит|ят|имость)|цена)\b"
    r"|いくら|値段|料金|价格|多少钱|费用",
    re.IGNORECASE,
)
_ASKS_NUMBER: Final = re.compile(
    r"(?:^(?!(?:wh\w+|if) )(?:\w+ ){0,3}|[,;.:?!] (?:\w+ )?|\band (?:\w+ )?)how"
    r" (?:many|much|long|large|big|often|far|old|deep|wide|high|fast|tall|heavy|thick|cold|hot)\b"
    r"|\b(?:maximum|minimum|largest|smallest|max|min) (?:number|size|length|value|amount)\b"
    r"|\bwhat (?:number|percentage|share|port|size|age|year|temperature|time)\b"
    r"|\bdefault (?:value|number|size|port|timeout)\b"
    r"|\bwie (?:viele?|lange?|oft|gro(?:ß|ss)|hoch|schwer|alt|weit|schnell|tief|breit)\b"
    r"|\bcombien\b|\bcu[aá]nt[oa]s?\b|\bquant[oiae]s?\b|\bque horas\b|\bile\b"
    r"|\bсколько\b"
    r"|何[個人年分時日回歳]|どのくらい|どれくらい|いくつ"
    r"|多少|多[长大高久]|几[个年天次秒分]",
    re.IGNORECASE,
)
_PRICE: Final = re.compile(
    r"[$€£¥₽₹円元]"
    r"|\b(?:usd|eur|gbp|chf|dollars?|dólares|euros?|cents?|pence|pounds|francs?|franken"
    r"|zł(?:otych)?|руб(?:лей|ля)?|free|kostenlos|gratis|gratuit\w*)\b",
    re.IGNORECASE,
)
# Part of no name or version, as in IPv6, v0.10 and MPEG-2.
_NUMBER: Final = re.compile(
    r"(?<![\w.#])(?<![^\W\d_]-)\d+(?:[.,:]\d+)*"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|zero|half|twice|hundred"
    r"|thousand|million|none|unlimited|infinite|eins?|zwei|drei|vier|fünf|sechs|sieben|acht|neun"
    r"|zehn|deux|trois|quatre|cinq|sept|huit|dix|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez"
    r"|due|tre|quattro|cinque|dois|dwa|trzy|два|две|три|четыре|пять)\b"
    r"|[一二三四五六七八九十百千万]{1,6}[個人年分時日回歳つ个天次]",
    re.IGNORECASE,
)
_COUNTED: Final = re.compile(
    r"\b(?:how many|number of|wie viele|combien de|cu[aá]nt[oa]s|quant[iae]s?|ile"
    r"|сколько) ((?:[\w-]+ ?){1,3})",
    re.IGNORECASE,
)
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
