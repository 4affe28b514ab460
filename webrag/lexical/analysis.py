"""Turns text into the terms BM25 counts, the same way for pages and for questions.

Knows nothing of scores or storage. No language has to be named: the script of each word decides
how it is stemmed. Also says what a word that a corpus lacks may stand for there: typing errors of
one letter, British and American spelling, and compounds. No word list is needed for that: the
caller says which of the spellings its corpus holds.
"""

import math
import re
import string
import threading
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import Stemmer

from webrag.lexical.function_words import without_function_words

_COMMON = """
a an and are as at be been being but by for from had has have having he her hers him his i if
in into is it its me my of on or our ours she so such than that the their theirs them then
there these they this those to too us was we were will with you your yours
"""
_SMALL_TALK = """
about actually again all also am another any anyone anything around ask asked away because best
can cannot can't could couldn't did didn't different do does doesn't doing don't done each else
ever every everything exactly example explain find get gets getting give gives given go goes
going gonna got happen happens has hasn't haven't help hey hi how how's however i'd i'll i'm
i've instead isn't it's just kind know let let's like likes look looking lot made make makes
making many may maybe me mean means might mine more most much must need needed needs no not now
one only onto other others ought out over please possible question quite really right same say
says see seem seems shall should show someone something somehow sort still suppose supposed sure
tell thank thanks that's thing things think those though through trying try tries up use used
uses using very want wanted wants wasn't way ways well what what's whatever when where whether
which while who who's whom whose why won't work works would wouldn't yes yet you'd you'll you're
"""

INDEX_STOPWORDS = frozenset(_COMMON.split())
"""Left out of the index, so that a chunk's length counts words that carry meaning."""

QUESTION_STOPWORDS = INDEX_STOPWORDS | frozenset(_SMALL_TALK.split())
"""Left out of a question, whose small talk would otherwise outweigh its subject."""


_WHOLE = "="  # no word contains it, so a whole identifier never equals a stem
# A term repeated at will weighs up to 2.2 times one that occurs once. At 2, a passage that repeats
# the parts of `std::vector` three times still came before the one that holds it; at 3 it does not.
_IDENTIFIER_WEIGHT = 3.0
_LONGEST_REMEMBERED = 40  # characters; longer are URLs, data and scripts without spaces
_MAX_TERM_CHARS = 64  # an index tuple must hold the longest term beside its postings

# `\w` leaves out the vowel signs that Indic, Thai and Burmese words are written with.
_MARKS = "".join(
    chr(code)
    for start, end in ((0x300, 0x1C00), (0x20D0, 0x2100), (0xA600, 0xAC00), (0xFE20, 0xFE30))
    for code in range(start, end)
    if unicodedata.category(chr(code)) in {"Mn", "Mc"}
)
_CHAR = rf"[\w{_MARKS}]"
_TOKEN = re.compile(
    rf"(?:(?<![\w-])-{{1,2}}(?=[^\W\d_])|(?<!\w)[@$](?=[^\W\d]))?"
    rf"\w{_CHAR}*(?:(?:::|[-.'])\w{_CHAR}*)*(?:\+\+|\#(?!\w))?"
)
_PIECE = re.compile(rf"[^\W_](?:[^\W_]|[{_MARKS}])*(?:'(?:s|t|re|ve|ll|d|m)(?!\w))?", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ACRONYM_PLURAL = re.compile(r"[A-Z]+s")
# What most words are, and what the rules above make one stem of.
_PLAIN = re.compile(r"[(\[\"]*([A-Z]?[a-z]+)[.,;:!?)\]\"]*")
# Wholes other than hyphenated words, numbers, abbreviations (U.S.) and stop words in capitals.
_IDENTIFIER = re.compile(rf"{_WHOLE}(?=.*[^\W\d])(?:.*[_:+#]|[-@$]|(?=.*\.).*[^\W\d]{{3}})")
# Written without spaces between words: Thai, Lao, Burmese, Khmer, Han, kana, and Hangul, whose
# particles are glued to the word.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u30ff\u3100-\u318f"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_LANGUAGES = (
    (0x0250, "english"),
    (0x0370, None),
    (0x0400, "greek"),
    (0x0530, "russian"),
    (0x0590, "armenian"),
    (0x0600, None),
    (0x0780, "arabic"),
    (0x0900, None),
    (0x0980, "hindi"),
    (0x0B80, None),
    (0x0C00, "tamil"),
    (0x1E00, None),
    (0x1F00, "english"),
    (0x2000, "greek"),
)
# Spellings of one word: marks for the apostrophe, and joiners, which nobody types.
_APOSTROPHE = re.compile("[\u2018\u2019\u02bc]")
_JOINER = re.compile("[\u200c\u200d\ufe0e\ufe0f]")

_local = threading.local()


def analyze(text: str) -> list[str]:
    """Give the index terms of a text, in order, with repetitions.

    Words are NFKC-normalised, case-folded and stemmed by script; scripts written without spaces
    become bigrams. Identifiers (`--no-ff`, `Vec::new`, `max_connections`, `C++`) give their parts
    and, marked by a leading "=", the whole. Ordinary English stop words are left out, unless they
    are written as code or in capitals. The same text always gives the same terms.
    """
    words = _words(text)
    is_long = max(map(len, words), default=0) > _LONGEST_REMEMBERED
    return list(chain.from_iterable(map(_any_terms if is_long else _indexed_terms, words)))


def query_terms(text: str) -> list[str]:
    """Give the distinct terms a question is searched by, in order of first appearance.

    Those of `distinct_terms`, without the function words of a question in another language.
    """
    return distinct_terms(without_function_words(text, QUESTION_STOPWORDS))


def distinct_terms(text: str) -> list[str]:
    """Give the distinct terms of a text, in order of first appearance.

    Made like `analyze`, without the words questions are put in ("how do I ..."). When nothing
    else is left, those words count after all; empty only when the text holds no word.
    """
    words = _words(text)
    for stopwords in (QUESTION_STOPWORDS, INDEX_STOPWORDS, frozenset[str]()):
        found = dict.fromkeys(term for word in words for term in _word_terms(word, stopwords))
        if found:
            return list(found)
    return []


def content_words(text: str) -> dict[str, list[str]]:
    """Give the words of a question that are none of those it is put in, each with its terms."""
    shortened = {word.replace("'", "") for word in QUESTION_STOPWORDS}  # "dont", as many type it
    words = _words(without_function_words(text, QUESTION_STOPWORDS))
    found = {word: [*_word_terms(word, QUESTION_STOPWORDS)] for word in words}
    bare = {word.strip("?!.,;:()\"'"): terms for word, terms in found.items() if terms}
    return {word: terms for word, terms in bare.items() if word.lower() not in shortened}


def term_weight(term: str) -> float:
    """How much a term counts in BM25: 1.0, and more for a whole identifier than for its parts.

    What asks for `Vec::new` is thus answered by a passage that holds it, not by one that says "new"
    and "vec" over and over. Hyphenated words, numbers, abbreviations and stop words in capitals
    count 1.0.
    """
    return _IDENTIFIER_WEIGHT if _IDENTIFIER.match(term) else 1.0


def _words(text: str) -> list[str]:
    """What stands between white space, which no term reaches across."""
    if not text.isascii():
        text = _APOSTROPHE.sub("'", _JOINER.sub("", unicodedata.normalize("NFKC", text)))
    return text.split()


def _word_terms(word: str, stopwords: frozenset[str] = INDEX_STOPWORDS) -> tuple[str, ...]:
    if plain := _PLAIN.fullmatch(word):
        folded = plain[1].lower()
        return () if folded in stopwords else (_stem(folded),)
    terms: list[str] = []
    for match in _TOKEN.finditer(word):
        is_code = match.start() > 0 and word[match.start() - 1] == "`"
        terms += _token_terms(match[0], is_code, stopwords)
    return tuple(terms)


@lru_cache(maxsize=65_536)
def _indexed_terms(word: str) -> tuple[str, ...]:
    """Texts repeat their words: remembering them makes `analyze` several times as fast."""
    return _word_terms(word)


def _any_terms(word: str) -> tuple[str, ...]:
    return (_indexed_terms if len(word) <= _LONGEST_REMEMBERED else _word_terms)(word)


def _token_terms(token: str, is_code: bool, stopwords: frozenset[str]) -> list[str]:
    terms = _whole_terms(token, is_code)
    for piece in _PIECE.findall(token):
        terms += _piece_terms(piece, stopwords)
        subwords = () if _ACRONYM_PLURAL.fullmatch(piece) else _CAMEL.split(piece)
        if len(subwords) > 1:
            for subword in subwords:
                if len(subword) > 1:
                    terms += _piece_terms(subword, stopwords)
    return terms


def _whole_terms(token: str, is_code: bool) -> list[str]:
    """Mark what must be found exactly: compounds, flags, sigils, keywords that are stop words."""
    folded = token.casefold()
    name = folded.lstrip("-@$")
    dunder = name.startswith("__") and name.endswith("__")
    bare = name if dunder else name.strip("_")
    if _PIECE.fullmatch(bare):
        emphasised = is_code or (token.isupper() and len(token) > 1)
        wholes = [bare] if emphasised and bare in QUESTION_STOPWORDS else []
    else:
        wholes = [bare] if bare else []
    if name != folded:
        wholes.append(folded.rstrip("_"))
    return [_WHOLE + whole[:_MAX_TERM_CHARS] for whole in wholes]


def _piece_terms(piece: str, stopwords: frozenset[str]) -> list[str]:
    word = piece.casefold()
    if word in stopwords:
        return []
    if not _UNSPACED.search(word):
        return [_stem(word)]
    terms: list[str] = []
    end = 0
    for match in _UNSPACED.finditer(word):
        terms.extend(_stem(part) for part in [word[end : match.start()]] if part)
        run = match[0]
        terms.extend([run[at : at + 2] for at in range(len(run) - 1)] or [run])
        end = match.end()
    terms.extend(_stem(part) for part in [word[end:]] if part)
    return terms


def _stem(word: str) -> str:
    word = word[:_MAX_TERM_CHARS]
    language: str | None = "english"
    if not word.isascii():
        language = next((name for end, name in _LANGUAGES if ord(word[0]) < end), None)
    if language is None:
        return word
    if language == "english" and not word.isascii():  # people type Latin words without accents
        letters = unicodedata.normalize("NFD", word)
        word = "".join(char for char in letters if not unicodedata.combining(char)) or word
    stemmed: str = stemmer(language).stemWord(word)
    return stemmed or word


@lru_cache(maxsize=65_536)
def stem_in(language: str, term: str) -> str:
    """Stem an index term, which is stemmed by its script alone, as its language has it."""
    return stemmer(language).stemWord(term) or term


def stemmer(language: str) -> Stemmer.Stemmer:
    """Give this thread's: they are not thread-safe. Their own cache costs more than it saves."""
    stemmers: dict[str, Stemmer.Stemmer] | None = getattr(_local, "stemmers", None)
    if stemmers is None:
        stemmers = _local.stemmers = {}
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language, 0)
    return stemmers[language]


# Shorter words have so many neighbours that the nearest says little.
_LEAST_LETTERS = 4
# Each letter has fifty edits; nobody types a longer word wrong in one letter only.
_MOST_LETTERS = 30
_LEAST_PART = 3
# A spelling that stands in one chunk only may be a typing error of the corpus itself.
_LEAST_CHUNKS = 2

# Words of letters alone: what stands in an identifier, an address or code is meant as it is.
_WORD = re.compile(r"(?<![\w'`/.:@$=-])[A-Za-z][a-z]+(?![\w'`/:@$=(-]|\.\w)")
_PAIR = re.compile(r"(?<![\w'`/.:@$=-])(?=([A-Za-z][a-z]+)[ -]([a-z]+)(?![\w'`/:@$=(-]|\.\w))")

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
    told = without_function_words(text, QUESTION_STOPWORDS)
    words = (match[0] for match in _WORD.finditer(told))
    found = {
        word: analyze(word)
        for word in words
        if _LEAST_LETTERS <= len(word) <= _MOST_LETTERS and word.lower() not in _NO_CONTENT
    }
    return {word: terms[0] for word, terms in found.items() if len(terms) == 1}


def word_pairs(text: str) -> dict[str, str]:
    """Neighbouring words of a question as they stand there, and the term of both in one word."""
    found = {}
    for match in _PAIR.finditer(text):
        first, second = match[1], match[2]
        is_worth_it = min(len(first), len(second)) >= _LEAST_PART
        if is_worth_it and not {first.lower(), second} & QUESTION_STOPWORDS:
            pair = text[match.start(1) : match.end(2)]
            terms = analyze(first + second)
            if terms:  # "hav ing" is a stop word in one
                found[pair] = terms[0]
    return found


def respelled(text: str, replacements: Mapping[str, str]) -> str:
    """The text with words replaced; one that is replaced nowhere stays as it is."""
    if not replacements:
        return text
    longest_first = sorted(map(re.escape, replacements), key=len, reverse=True)
    whole = re.compile(rf"(?<![\w-])(?:{'|'.join(longest_first)})(?![\w-])")
    return whole.sub(lambda match: replacements[match[0]], text)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One way to spell a word: how likely it is meant, and its index term."""

    text: str
    term: str
    likelihood: float


class Respelling:
    """The ways to spell one word that a corpus lacks."""

    def __init__(self, word: str, term: str) -> None:
        self.word = word
        likely: dict[str, float] = {}
        for text, likelihood in _edits(word.lower()):
            likely[text] = max(likely.get(text, 0.0), likelihood)
        self._spellings = [
            _Spelling(text, terms[0], likelihood)
            for text, likelihood in likely.items()
            if text not in QUESTION_STOPWORDS and len(text) >= _LEAST_PART
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
        return frozenset([*(each.term for each in self._spellings), *parts])

    def best(self, chunks: Mapping[str, int], is_common: Callable[[str], bool]) -> str | None:
        """The spelling that is likeliest meant, by how many chunks hold each term; None for none.

        A common word of the language is not taken for another word, only for another spelling of
        itself, letters in the wrong order, or a letter that is doubled.
        """
        held = [each for each in self._spellings if chunks.get(each.term, 0) >= _LEAST_CHUNKS]
        least = _SLIP if is_common(self.word.lower()) else 0.0
        ranked = [
            (each.likelihood * math.log1p(chunks[each.term]) * factor, each.text)
            for each in held
            if each.likelihood >= least
            for factor in [_COMMON_WORD if is_common(each.text) else 1.0]
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
    """Other spellings of a word and how likely each is, some of them more than once."""
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
