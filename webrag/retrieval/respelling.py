"""Looks up what words that a corpus lacks may stand for; which of them, `webrag.lexical` says."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from webrag.lexical.analysis import analyze, content_words
from webrag.lexical.spelling import Respelling, doubtful_words, word_pairs
from webrag.postgres.execution import Connection
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
        absent: Words of any kind, names and numbers too, of which no chunk holds anything.
    """

    words: Mapping[str, str]
    pairs: Sequence[str]
    absent: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.words or self.pairs)


async def find_doubts(connection: Connection, queries: Queries, text: str) -> Doubts:
    """What of a question the pages in scope lack; one statement, nearly always without a find."""
    words, pairs = doubtful_words(text), word_pairs(text)
    content = content_words(text)
    terms = sorted({*words.values(), *pairs.values(), *chain.from_iterable(content.values())})
    rows = await queries.held_terms(terms).fetch(connection) if terms else []
    held = {term for (term,) in rows}
    absent = [(word, term) for word, term in words.items() if term not in held]
    joined = [pair for pair, term in pairs.items() if term in held]
    nowhere = [word for word, terms in content.items() if not held.intersection(terms)]
    return Doubts(dict(absent[:_MOST_WORDS]), joined[:_MOST_WORDS], nowhere)


def respellings(doubts: Doubts) -> list[Respelling]:
    """The ways to spell each of the absent words; takes milliseconds for each."""
    return [Respelling(word, term) for word, term in doubts.words.items()]


def likely_spellings(
    words: Sequence[Respelling], chunks: Mapping[str, int], is_common: IsCommon
) -> dict[str, str]:
    """Give the spelling of each word that has a likely one; `is_common` may block."""
    found = {each.word: each.best(chunks, is_common) for each in words}
    return {word: text for word, text in found.items() if text is not None}


async def find_spellings(
    connection: Connection, queries: Queries, words: Sequence[Respelling]
) -> dict[str, int]:
    """How many chunks hold each term of the spellings; counting ends at some hundreds."""
    terms = sorted(set(chain.from_iterable(each.terms for each in words)))
    return dict(await queries.bounded_counts(terms).fetch(connection)) if terms else {}


async def find_compounds(
    connection: Connection,
    queries: Queries,
    words: Sequence[Respelling],
    pairs: Sequence[str],
    chunks: Mapping[str, int],
) -> dict[str, str]:
    """Compounds that the pages write otherwise: in two words, or two words as one.

    Gives what the question has, and what the pages have in its place.
    """
    found: dict[str, str] = {}
    for each in words:
        for first, second in each.splits(chunks):
            if await _is_phrase(connection, queries, first, second):
                found[each.word] = f"{first} {second}"
                break
    for pair in pairs:
        first, second = re.split("[ -]", pair.lower())
        if not await _is_phrase(connection, queries, first, second):
            found[pair] = f"{first}{second}"
    return found


async def _is_phrase(connection: Connection, queries: Queries, first: str, second: str) -> bool:
    terms = [*analyze(first), *analyze(second)]
    return bool(await queries.phrase(terms, rf"\m{first}[\s_-]+{second}").fetch(connection))
