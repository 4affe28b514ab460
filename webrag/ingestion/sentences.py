"""Where sentences end, in pages, questions and answers; it knows no blocks of markup."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, Literal

SentenceRule = Literal["prose", "line", "typed", "statement"]

_RULES: Final[Mapping[SentenceRule, re.Pattern[str]]] = {
    "prose": re.compile(
        r"""(?:[.!?\u2026\u061f\u0964]["'\u2019\u201d)\]*_]*"""
        r"""(?=\s+["'\u2018\u201c(\[*_`]*[^\W\d_a-z])"""
        r"""|[\u3002\uff01\uff1f]["\u201d\u300d\u300f\uff09]*)"""
    ),
    # The rules of `prose` would change 6 of 891 sentences around links of documentation pages, and
    # with them what their links score.
    "line": re.compile(r"[.!?][\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9`*])|[\u3002\uff01\uff1f]|\n"),
    "typed": re.compile(r"(?<=[.?!])\s+"),
    "statement": re.compile(r"(?<=[.!?;:])\s+|\n+"),
}
_LONGEST_ABBREVIATION = 10  # characters, with the one before it
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|e\.g|i\.e|etc|cf|vs|al|resp|approx|No|Fig|Eq|Dr|Mr|Mrs|Ms|St|ver)\.$"
)


def sentence_ends(
    text: str, start: int = 0, end: int | None = None, *, rule: SentenceRule
) -> Iterator[int]:
    """Offsets between `start` and `end` at which a sentence is over, ascending.

    Args:
        text: What holds the sentences.
        start: Where to begin.
        end: Where to stop; None for the end of the text.
        rule: `prose`, for markdown that is quoted: after the mark and what closes with it, before a
            blank and something that can begin a sentence, not after an abbreviation; in scripts
            without blanks after the mark alone. `line`, for what stands around a link: behind the
            blank, and lines end sentences too. `typed`, for questions, whose sentences begin with
            small letters as well: behind any blank after a mark. `statement`, for what is compared
            with a claim: as `typed`, and at semicolons, colons and lines.
    """
    for mark in _RULES[rule].finditer(text, start, len(text) if end is None else end):
        cut = mark.end()
        near = max(start, cut - _LONGEST_ABBREVIATION)
        if rule != "prose" or not _ABBREVIATION.search(text, near, cut):
            yield cut


def sentences(text: str, *, rule: SentenceRule) -> list[str]:
    """The sentences of a text without white space around them; blank ones are left out."""
    cuts = [0, *sentence_ends(text, rule=rule), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(cuts))
    return [part for part in parts if part]
