"""Turns text into the terms BM25 counts, the same way for pages and for questions.

Knows nothing of scores or storage. No language has to be named: the script of each word decides
how it is stemmed.
"""

import re
import threading
import unicodedata
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
    """Give the `distinct_terms` of a question, without its function words in another language."""
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
    """Give a term's weight in BM25: 1.0, and more for a whole identifier than for its parts.

    Hyphenated words, numbers, abbreviations and stop words in capitals count 1.0.
    """
    return _IDENTIFIER_WEIGHT if _IDENTIFIER.match(term) else 1.0


def _words(text: str) -> list[str]:
    """Split at white space, which no term reaches across."""
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
    if word.isascii():
        return stemmer("english").stemWord(word) or word
    language = next((name for end, name in _LANGUAGES if ord(word[0]) < end), None)
    if language is None:
        return word
    if language == "english":  # people type Latin words without accents
        letters = unicodedata.normalize("NFD", word)
        word = "".join(char for char in letters if not unicodedata.combining(char)) or word
    return stemmer(language).stemWord(word) or word


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
