"""Says what a word that a corpus lacks may stand for there.

Typing errors of one letter, British and American spelling, and compounds. No word list is needed:
the caller says which of the spellings its corpus holds.
"""

import math
import re
import string
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain

from webrag.lexical.analysis import QUESTION_STOPWORDS, analyze, without_function_words

# Shorter words have so many neighbours that the nearest says little.
_LEAST_LETTERS = 4
# Each letter has fifty edits; nobody types a longer word wrong in one letter only.
_MOST_LETTERS = 30
_LEAST_PART = 3
# A spelling that stands in one chunk only may be a typing error of the corpus itself.
_LEAST_CHUNKS = 2

# Words of letters alone: what stands in an identifier, an address or code is meant as it is.
_WORD = re.compile(r"(?<![\w'`/.:@$=-])[A-Za-z][a-z]+(?![\w'`/:@$=(-]|\.\w)")

# "Cuesta" asks for a price, and is no "cuenta" mistyped, however often a page has that.
_NO_CONTENT = QUESTION_STOPWORDS | {
    *("costa", "costano", "coute", "coutent", "cuesta", "cuestan", "custa", "custam"),
    *("kosten", "kostet", "kosztuje"),
}

# British to American and back.
_SPELLINGS = tuple(
    (re.compile(pattern), other)
    for pattern, other in (
        (r"is(?=(?:e|es|ed|er|ers|ing|ation|ations)$)", "iz"),
        (r"iz(?=(?:e|es|ed|er|ers|ing|ation|ations)$)", "is"),
        (r"ys(?=(?:e|es|ed|er|ers|ing)$)", "yz"),
        (r"yz(?=(?:e|es|ed|er|ers|ing)$)", "ys"),
        (r"our(?=(?:|s|ed|ing|ful|ite|ites|able)$)", "or"),
        (r"or(?=(?:|s|ed|ing|ful|ite|ites|able)$)", "our"),
        (r"(?<=[tbh])re(?=s?$)", "er"),
        (r"(?<=[tbh])er(?=s?$)", "re"),
        (r"ogue(?=s?$)", "og"),
        (r"og(?=s?$)", "ogue"),
        (r"ence(?=s?$)", "ense"),
        (r"ense(?=s?$)", "ence"),
        (r"ae|oe", "e"),
        (r"ll(?=(?:ed|ing|er|ers)$)", "l"),
        (r"l(?=(?:ed|ing|er|ers)$)", "ll"),
        (r"mme(?=s?$)", "m"),
        (r"^grey", "gray"),
        (r"^gray", "grey"),
    )
)

# How likely one thing is typed for another. Neighbours change places and letters are doubled or
# not doubled more often than one is lost, and the first letter of a word is seldom wrong.
_SAME_WORD = 2.0
_SLIP = 1.5
_LOST_OR_ADDED = 1.0
_CHANGED = 0.6
_FIRST_LETTER = 0.3
# A word of the language is likelier meant than a name that the corpus holds as well.
_COMMON_WORD = 2.0


def doubtful_words(text: str) -> dict[str, str]:
    """Give lower-case words of prose that may be misspelt, and the index term of each."""
    told = without_function_words(text)
    words = (match[0] for match in _WORD.finditer(told))
    found = {
        word: analyze(word)
        for word in words
        if _LEAST_LETTERS <= len(word) <= _MOST_LETTERS and not _is_without_content(word.lower())
    }
    return {word: terms[0] for word, terms in found.items() if len(terms) == 1}


def _is_without_content(word: str) -> bool:
    """Tell words such as "costs", and "theres" for "there's"."""
    return not _NO_CONTENT.isdisjoint((word, word.removesuffix("s")))


def respelled(text: str, replacements: Mapping[str, str]) -> str:
    """The text with words replaced; one that is replaced nowhere stays as it is."""
    if not replacements:
        return text
    longest_first = sorted(map(re.escape, replacements), key=len, reverse=True)
    whole = re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])")
    return whole.sub(lambda match: replacements[match[0]], text)


class Respelling:
    """The ways to spell one word that a corpus lacks; fewer where the word is a common one."""

    def __init__(self, word: str, term: str, is_common: Callable[[str], bool]) -> None:
        self.word = word
        self._is_common = is_common
        # A common word is meant, but for letters in the wrong order or a letter doubled.
        least = _SLIP if is_common(word.lower()) else 0.0
        likely: dict[str, float] = {}
        for text, likelihood in _edits(word.lower()):
            likely[text] = max(likely.get(text, 0.0), likelihood)
        stopwords = QUESTION_STOPWORDS.intersection(likely)
        # "Insted" is "instead" mistyped, whatever names the corpus holds.
        self._may_be_stopword = any(likely[text] >= _LOST_OR_ADDED for text in stopwords)
        self._spellings = [
            (text, terms[0], likelihood)
            for text, likelihood in likely.items()
            if likelihood >= least and text not in stopwords and len(text) >= _LEAST_PART
            for terms in [analyze(text)]
            if len(terms) == 1 and terms[0] != term
        ]
        whole = word.lower()
        cuts = range(_LEAST_PART, len(whole) - _LEAST_PART + 1)
        self._splits = {
            halves: (analyze(halves[0])[0], analyze(halves[1])[0])
            for halves in ((whole[:at], whole[at:]) for at in cuts)
            if not QUESTION_STOPWORDS.intersection(halves)
        }

    @property
    def terms(self) -> frozenset[str]:
        """Index terms of the spellings, whose numbers of chunks `best` and `splits` need."""
        parts = chain.from_iterable(self._splits.values())
        return frozenset([*(term for _, term, _ in self._spellings), *parts])

    def best(self, chunks: Mapping[str, int]) -> str | None:
        """Give the spelling that is likeliest meant, by how many chunks hold each term, if any."""
        ranked = [
            (likelihood * math.log1p(chunks[term]) * factor, text)
            for text, term, likelihood in self._spellings
            if chunks.get(term, 0) >= _LEAST_CHUNKS
            if not self._may_be_stopword or self._is_common(text)
            for factor in [_COMMON_WORD if self._is_common(text) else 1.0]
        ]
        return max(ranked, default=(0.0, None))[1]

    def splits(self, chunks: Mapping[str, int]) -> list[tuple[str, str]]:
        """The word as two that chunks hold, likeliest first."""
        counts = {
            halves: min(chunks.get(term, 0) for term in terms)
            for halves, terms in self._splits.items()
        }
        held = [halves for halves, count in counts.items() if count]
        return sorted(held, key=lambda halves: -counts[halves])


def _edits(word: str) -> Iterator[tuple[str, float]]:
    for pattern, other in _SPELLINGS:
        text, count = pattern.subn(other, word)
        if count:
            yield text, _SAME_WORD
    for at in range(len(word) + 1):
        first = 1.0 if at else _FIRST_LETTER
        yield from ((text, likelihood * first) for text, likelihood in _edits_at(word, at))


def _edits_at(word: str, at: int) -> Iterator[tuple[str, float]]:
    head, tail = word[:at], word[at:]
    around: Collection[str] = head[-1:] + tail[:1]
    if tail:
        is_doubled = head[-1:] == tail[0]
        yield head + tail[1:], _SLIP if is_doubled else _LOST_OR_ADDED
        yield head + tail[1:2] + tail[0] + tail[2:], _SLIP
    for letter in string.ascii_lowercase:
        yield head + letter + tail, _SLIP if letter in around else _LOST_OR_ADDED
        if tail:
            yield head + letter + tail[1:], _CHANGED
