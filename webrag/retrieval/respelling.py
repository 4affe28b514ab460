"""Looks up what words that a corpus lacks may stand for; which of them, `webrag.lexical` says."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from webrag.lexical.analysis import analyze
from webrag.lexical.spelling import Respelling, doubtful_words, word_pairs
from webrag.postgres.steps import Steps, alone
from webrag.retrieval.statements import Queries

IsCommon = Callable[[str], bool]
"""Tells whether a word, in lower case, is a common one of the language; may block."""

# The first of a question; each is some five hundred look-ups in an index.
_MOST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Doubts:
    """What of a question the searched pages do not have as the question has it.

    Attributes:
        words: Words that no chunk holds, and their index terms.
        pairs: Neighbouring words that chunks hold as one word.
    """

    words: Mapping[str, str]
    pairs: Sequence[str]

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.words or self.pairs)


def find_doubts(queries: Queries, text: str) -> Steps[Doubts]:
    """What of a question the pages in scope lack; one statement, nearly always without a find."""
    words, pairs = doubtful_words(text), word_pairs(text)
    terms = sorted({*words.values(), *pairs.values()})
    held = {row[0] for row in (yield from alone(queries.held_terms(terms)))} if terms else set()
    absent = [(word, term) for word, term in words.items() if term not in held]
    joined = [pair for pair, term in pairs.items() if term in held]
    return Doubts(dict(absent[:_MOST_WORDS]), joined[:_MOST_WORDS])


def respellings(doubts: Doubts) -> list[Respelling]:
    """The ways to spell each of the absent words; takes milliseconds for each."""
    return [Respelling(word, term) for word, term in doubts.words.items()]


def find_spellings(queries: Queries, words: Sequence[Respelling]) -> Steps[dict[str, int]]:
    """How many chunks hold each term of the spellings; counting ends at some hundreds."""
    terms = sorted(set(chain.from_iterable(each.terms for each in words)))
    return dict((yield from alone(queries.bounded_counts(terms)))) if terms else {}


def find_compounds(
    queries: Queries,
    words: Sequence[Respelling],
    pairs: Sequence[str],
    chunks: Mapping[str, int],
) -> Steps[dict[str, str]]:
    """Compounds that the pages write otherwise: in two words, or two words as one.

    Args:
        queries: Statements for the scope.
        words: Those without a likely spelling.
        pairs: From `find_doubts`.
        chunks: From `find_spellings`.

    Returns:
        What the question has, and what the pages have in its place.
    """
    found: dict[str, str] = {}
    for each in words:
        for first, second in each.splits(chunks):
            if (yield from _is_phrase(queries, first, second)):
                found[each.word] = f"{first} {second}"
                break
    for pair in pairs:
        first, second = re.split("[ -]", pair.lower())
        if not (yield from _is_phrase(queries, first, second)):
            found[pair] = f"{first}{second}"
    return found


def _is_phrase(queries: Queries, first: str, second: str) -> Steps[bool]:
    terms = [*analyze(first), *analyze(second)]
    rows = yield from alone(queries.phrase(terms, rf"\m{first}[\s_-]+{second}"))
    return bool(rows)
