"""Checks what the answer manager is asked and plans how it is answered; no search."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from webrag.answering.models import ExecutionPlan
from webrag.answering.page_summary import asks_for_summary
from webrag.argument_checks import checked_count
from webrag.errors import InputError
from webrag.lexical.analysis import INDEX_STOPWORDS, QUESTION_STOPWORDS
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.pattern_file import PatternFile
from webrag.question import Question

_WORD: Final = re.compile(r"[^\W\d_]+")
_TOKEN: Final = re.compile(r"\S+")
# Whatever mixes letters with digits or punctuation is likely a name: E0502, x86_64, --no-ff, a::b.
_IDENTIFIER: Final = re.compile(r"(?=.*[^\W_])(?=.*[\d_\-:./+#@$%\\(\[<=*~^&])\S+")
_VOWEL: Final = re.compile(r"[aeiouy]")
# English has up to six consonants in a row ("catchphrase"), German seven ("Rechtsschutz").
_CONSONANT_RUN: Final = re.compile(r"[bcdfghjklmnpqrstvwxz]{8,}")
_KEYBOARD_RUNS: Final = ("asdf", "sdfg", "dfgh", "fghj", "ghjk", "hjkl", "qwer", "wert", "uiop",
                         "zxcv", "xcvb", "cvbn", "vbnm", "jkl;")  # fmt: skip
_REPEATED: Final = re.compile(r"(.)\1{4,}")
_REPEATED_PAIR: Final = re.compile(r"(\w{2,4}?)\1{3,}\w?")
_MIN_GIBBERISH_WORDS: Final = 2
_REPEATED_WORDS: Final = 4
# Alone these ask for nothing; other common words may be the name of a command or a keyword.
_ALONE: Final = INDEX_STOPWORDS | {
    "hello", "hi", "hey", "please", "thanks", "thank", "what", "how", "why", "who", "when",
    "where", "which", "ok", "okay", "hmm", "um", "er", "lol", "yes", "tell", "explain", "help",
    "same", "maybe", "something", "anything", "everything", "really",
}  # fmt: skip
# A question made of these alone asks for nothing, also where the index would count them.
_EMPTY_WORDS: Final = QUESTION_STOPWORDS | frozenset(
    {"hello", "ok", "okay", "hmm", "um", "er", "lol"}
)
_RE: Final = PatternFile(__package__, "questions.ini").patterns
_FIRST_YEAR: Final = 1000


def incoherence(query: str) -> str | None:
    """Say in a sentence why a question cannot be answered; None when it can."""
    text = unicodedata.normalize("NFKC", query).strip()
    if not text:
        return "The question is empty."
    if not any(char.isalnum() for char in text):
        return _without_words(text)
    # Of letters beyond Latin no rule here knows anything.
    if any(char.isalpha() and ord(char) > 0x24F for char in text):
        return None
    return _says_nothing(text) or _is_gibberish(text)


def _without_words(text: str) -> str | None:
    # Operators are asked about: `::`, `??=`, `<=>`, `*args` without its name.
    symbols = {char for char in text if char.isascii() and char in "!#$%&*+-/:<=>?@\\^|~()[]{}_`"}
    if len(symbols - {"?", "!"}) and len(text) <= 8 and text.isascii() and "..." not in text:
        return None
    return "The question holds no word, only signs."


def _says_nothing(text: str) -> str | None:
    tokens = _TOKEN.findall(text)
    if any(_is_name(token) for token in tokens):
        return None
    words = [word.casefold() for word in _WORD.findall(text.replace("\u2019", "'"))]
    contractions = re.sub(r"(?<=\w)'(?=\w)", "", text.casefold()).split()
    bare = {re.sub(r"\W", "", word) for word in _EMPTY_WORDS}
    said = [word.strip(".,;:?!\"'()") for word in contractions]
    if len(said) == 1 and said[0] not in _ALONE:
        return None
    if words and all(word in _EMPTY_WORDS or word in bare or not word for word in said):
        return "The question holds only words that could be about anything."
    return None


def _is_gibberish(text: str) -> str | None:
    if len(set(re.sub(r"\W", "", text.casefold()))) == 1 and len(re.sub(r"\W", "", text)) > 4:
        return "The question repeats one sign."
    words = [word.casefold() for word in _WORD.findall(text)]
    if len(words) >= _REPEATED_WORDS and len(set(words)) == 1:
        return "The question repeats one word."
    plain = [t for t in _TOKEN.findall(text) if not _is_name(t.strip(".,;?!\"'()"))]
    judged = [word for t in plain for word in _WORD.findall(t.casefold()) if len(word) > 3]
    if not judged or len(plain) < len(_TOKEN.findall(text)):
        return None
    senseless = [word for word in judged if _is_senseless(word)]
    is_all = len(senseless) == len(judged)
    if is_all and (len(judged) >= _MIN_GIBBERISH_WORDS or len(judged[0]) >= 8):
        return "The question does not consist of words."
    return None


def _is_senseless(word: str) -> bool:
    if word in _KEYBOARD_RUNS or _REPEATED.search(word) or _REPEATED_PAIR.fullmatch(word):
        return True
    if _CONSONANT_RUN.search(word):
        return True
    runs = sum(word.count(run) for run in _KEYBOARD_RUNS)
    # "wert" stands in "advert", so that one run in a longer word proves nothing.
    if runs >= 2 or (runs == 1 and len(word) <= 6 and not _VOWEL.search(word)):
        return True
    return len(word) >= 6 and not _VOWEL.search(word)


def _is_name(token: str) -> bool:
    """Code, a path, a version, an acronym or CamelCase."""
    bare = token.strip("\"'?!,;()")
    if not bare:
        return False
    return bool(
        (_IDENTIFIER.fullmatch(bare.rstrip(".:")) and len(set(bare)) > 2)
        or token.startswith("`")
        or (bare.isupper() and len(bare) <= 8 and len(set(bare)) > 1)
        or re.search(r"[a-z][A-Z]", bare)
    )


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes complete plans, with questions split if there is an analyzer; safe to share."""

    analyzer: QueryAnalyzer | None = None

    async def plan(self, question: Question) -> tuple[ExecutionPlan, str | None]:
        """Give the plan, and a sentence naming what did not work, or None.

        Plans of incoherent questions, and of those about a page as a whole, cost no request.
        """
        query, wordings = question.text, question.wordings
        text = revised(query)
        is_about_a_page = asks_for_summary(text)
        reason = None if is_about_a_page else incoherence(query)
        plan = ExecutionPlan(
            original_query=query,
            revised_query=text,
            coherence="coherent" if reason is None else "incoherent",
            coherence_reason=reason,
            sub_queries=(text,),
            wordings=wordings,
        )
        if reason is not None or is_about_a_page or self.analyzer is None:
            return plan, None
        analysis, degraded = await self.analyzer.analyze(question.model_copy(update={"text": text}))
        update = {
            "sub_queries": analysis.sub_queries or (text,),
            "query_type": analysis.query_type,
            "wordings": (*wordings, *analysis.wordings),
        }
        return plan.model_copy(update=update), degraded


def revised(query: str) -> str:
    """The question without greetings, requests and thanks; unchanged where nothing else is left."""
    text = " ".join(query.split())
    shorter = _RE["closing"].sub("", _RE["request"].sub("", _RE["greeting"].sub("", text)))
    if not any(char.isalnum() for char in shorter):
        return text
    return shorter + "?" if text.endswith("?") and not shorter.endswith("?") else shorter


def check_answerable(question: Question) -> None:
    """Refuse with InputError what says nothing about an answer in sentences.

    The text itself is left to the guardrails and the planner, which answer politely.
    """
    if question.is_deep and question.is_search:
        raise InputError("deep follows the links of a page: give a URL to start from.")
    if question.expansion_budget is not None:
        checked_count("expansion_budget", question.expansion_budget, minimum=1)
        if not question.is_deep:
            raise InputError("expansion_budget limits rounds of link following: it needs deep.")
    latest = datetime.now(UTC).year + 1
    for year in question.years or ():
        if not _FIRST_YEAR <= year <= latest:
            raise InputError(f"The year {year} cannot be used; give years up to {latest}.")
