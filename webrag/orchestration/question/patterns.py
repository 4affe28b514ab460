"""Splits questions, and tells their kind and the quantities they ask for, by patterns alone.

A wrong split hurts more than a missed one, so every pattern wants clear evidence of two needs.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from webrag.lexical.analysis import QUESTION_STOPWORDS, analyze
from webrag.pattern_file import PatternFile
from webrag.question import QueryType

_FILE: Final = PatternFile(__package__, "patterns.ini")
_RE: Final = _FILE.patterns
_FORMS: Final = {form: (_RE[f"asks_{form}"], _RE[form]) for form in ("price", "version", "memory")}
_BINOMIALS: Final = tuple(re.split(", ?", "".join(_FILE.texts("words"))))


def _two_sides(before: str, between: str) -> re.Pattern[str]:
    """The pattern of a comparison: its two sides, x and y, before and after the first `between`.

    Nothing is given back, so that its time does not grow with the product of the sides' lengths.
    """
    sides = rf"(?P<x>(?:(?!{between})[^,;:?]){{1,200}}+){between}(?P<y>[^,;:?]{{1,200}}+)$"
    return re.compile(before + sides, re.IGNORECASE)


_COMPARISONS: Final = tuple(
    _two_sides("".join(before), between) for *before, between in _FILE.lines("comparisons")
)
_PERSONAL: Final = frozenset({"it", "its", "they", "them", "their"})
_WORD: Final = re.compile(r"[\w@&$~^%]+(?:(?:::|[-./:_'+#])[\w]+)*(?:\+\+|#)?|--?[\w-]+|\.[\w]+")
_VAGUE: Final = frozenset(
    {"and", "or", "it", "them", "that", "this", "they", "each", "other", "i", "I", "we", "you"}
)
_MAX_SIDE_WORDS: Final = 7
_MIN_CLAUSE_WORDS: Final = 4
_MAX_PARTS: Final = 4
# Longer texts are reports or pasted pages.
_MAX_CHARS: Final = 1_000


def decompose(query: str) -> tuple[tuple[str, ...], QueryType | None]:
    """The separate needs of a question, at most four, and the kind a matching pattern implies.

    The question itself, alone and unchanged, and no kind when no pattern matches for certain.
    """
    text = " ".join(query.split()).rstrip(" ?.!")
    if len(text) > _MAX_CHARS:
        return (query,), None
    for pattern in _PATTERNS:
        found = pattern(text)
        if found is not None:
            parts, kind = found
            distinct = tuple(dict.fromkeys(parts))[:_MAX_PARTS]
            return (distinct, kind) if len(distinct) > 1 else ((query,), None)
    return (query,), None


def classify(query: str) -> QueryType:
    """The kind of a question, by the words it is put in; factual when nothing else shows."""
    text = " ".join(query.split())
    if _RE["comparison_words"].search(text):
        return "comparison"
    if _RE["how_to"].search(text):
        return "how_to"
    if _RE["exploratory"].search(text):
        return "exploratory"
    return "factual"


def content_words(query: str) -> tuple[str, ...]:
    """The distinct words of a question that carry its topic, as written and in order."""
    words: dict[str, str] = {}
    for word in _WORD.findall(query):
        if word.casefold() not in QUESTION_STOPWORDS and any(c.isalnum() for c in word):
            words.setdefault(word.casefold(), word)
    return tuple(words.values())


_Found = tuple[tuple[str, ...], QueryType | None] | None


def _pros_and_cons(text: str) -> _Found:
    match = _RE["pros_cons"].search(text)
    if match is None:
        return None
    topic = match["x"]
    return (f"advantages of {topic}", f"disadvantages of {topic}"), "comparison"


def _comparison(text: str) -> _Found:
    for pattern in _COMPARISONS:
        match = pattern.search(text)
        if match is None:
            continue
        left, right = _strip_lead_in(match["x"]), _RE["article"].sub("", match["y"].strip())
        if f"{left} and {right}".casefold().startswith(_BINOMIALS) or _RE["asks_with"].match(left):
            return None
        tail = (match.groupdict().get("t") or "").strip()
        right, tail = _split_tail(right) if not tail else (right, tail)
        sides = [left, *_RE["also_versus"].split(right)]
        if all(map(_is_side, sides)):
            return tuple(f"{side} {tail}".strip() for side in sides), "comparison"
    return None


def _work_and_when(text: str) -> _Found:
    match = _RE["work_and_when"].match(text)
    if match is None:
        return None
    return (f"how {match['x']} works", f"when to use {match['x']}"), "how_to"


def _several_sentences(text: str) -> _Found:
    sentences = [part.strip() for part in _RE["sentence_end"].split(text) if part.strip()]
    asked = [part for part in sentences if _RE["question_start"].match(part)]
    if len(sentences) < 2 or len(asked) != len(sentences):
        return None
    if any(len(part.split()) < _MIN_CLAUSE_WORDS for part in asked):
        return None
    first = asked[0].rstrip(" ?")
    return (first, *(_resolve(first, part.rstrip(" ?")) for part in asked[1:])), None


def _joined_questions(text: str) -> _Found:
    for match in _RE["joint"].finditer(text):
        first, second = text[: match.start()].rstrip(" ,?"), text[match.end() :]
        with_comma = bool(match["comma"] or match["stop"] or match["comma2"])
        if _are_two_questions(first, second, match["wh"] or match["wh2"], with_comma=with_comma):
            heads = [first, *_listed_before(first)]
            prefix = _RE["prefix"].match(first)
            if prefix:
                second = f"{prefix['prefix']} {second}"
            firsts = heads[1:] or heads
            return (*firsts, _resolve(firsts[0], second)), None
    return None


def _listed_before(first: str) -> list[str]:
    """The questions that a list begins with: "what is A, how long is B" before "and who is C"."""
    parts = _RE["further"].split(first)
    if len(parts) < 2 or _RE["prefix"].match(first) or any(len(part.split()) < 3 for part in parts):
        return []
    return [parts[0], *(_resolve(parts[0], part) for part in parts[1:])]


def _about_each(text: str) -> _Found:
    """Take "what is said about A and about B" apart by the preposition that comes twice."""
    match = _RE["and_again"].search(text)
    if match is None or _RE["comparison_words"].search(text):
        return None
    to, second = match["to"], match["y"]
    head, _, first = text[: match.start()].rpartition(f" {to} ")
    is_asked = _RE["asking_word"].match(_without_prefix(head))
    is_one = _RE["together"].search(f"{first} {second}") or _RE["anaphora"].search(second)
    if not is_asked or is_one or _RE["asking_word"].match(second):
        return None
    return (f"{head} {to} {first}", f"{head} {to} {second}"), None


def _topics_for(text: str) -> _Found:
    match = _RE["topics_for"].match(text)
    if match is None or _RE["question_start"].match(text) or " for " in match["z"]:
        return None
    pair = f"{match['x']} and {match['y']}".casefold()
    inner = {"and", "or", "to", "of", "in", "with"}
    words = {*match["x"].casefold().split(), *match["y"].casefold().split()}
    if pair in _BINOMIALS or words & inner or not words.isdisjoint({"i", "you", "we", "is", "are"}):
        return None
    return (f"{match['x']} for {match['z']}", f"{match['y']} for {match['z']}"), "exploratory"


def _both_do(text: str) -> _Found:
    """Take "how A and B handle C" apart into "how A handles C" and "how B handles C"."""
    match = _RE["both_do"].search(text)
    if match is None:
        return None
    sides = [_RE["article"].sub("", match[name]) for name in ("x", "y")]
    if " and ".join(sides).casefold() in _BINOMIALS or not _VAGUE.isdisjoint(sides):
        return None
    verb, rest = match["verb"], match["rest"]
    return tuple(f"how {side} {_verb_of(side, verb)}{rest}" for side in sides), None


def _verb_of(side: str, verb: str) -> str:
    if side.endswith("s") and side.islower() and not side.endswith(("ss", "us", "is")):
        return verb
    if verb.endswith("y") and verb[-2:] not in ("ay", "ey", "oy"):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("ch", "sh", "ss", "x")) else f"{verb}s"


def _compared_how(text: str) -> _Found:
    match = _RE["compared_how"].search(text)
    return None if match is None else ((match["x"], match["y"]), "comparison")


_PATTERNS: Final[tuple[Callable[[str], _Found], ...]] = (
    _pros_and_cons,
    _work_and_when,
    _both_do,
    _compared_how,
    _several_sentences,
    _joined_questions,
    _comparison,
    _about_each,
    _topics_for,
)


def _are_two_questions(first: str, second: str, wh: str, *, with_comma: bool) -> bool:
    is_elliptic = _RE["without_verb"].match(second) is not None
    clauses = (first,) if is_elliptic else (first, second)
    if any(len(clause.split()) < _MIN_CLAUSE_WORDS for clause in clauses):
        return False
    opening = _without_prefix(first)
    if not _RE["question_start"].match(opening):
        is_request = with_comma and wh.casefold() != "why" and not _RE["told"].match(first)
        return (
            is_request
            and bool(_RE["inverted"].match(second))
            and not _RE["anaphora"].search(second)
        )
    # "... which files are tracked and which are ignored" is one question about two things.
    asked = _RE["to_first"].sub("", opening)
    if is_elliptic and re.match(rf"{wh}\b", asked, re.IGNORECASE):
        return True
    if re.search(rf"\s{wh}\b", asked, re.IGNORECASE) and not _RE["further"].search(asked):
        return False
    # "Which ports are open and which are closed" asks for one thing, "Which ... and how ..." not.
    if _RE["elliptic"].match(second) and opening.casefold().startswith("which "):
        return False
    if _RE["inverted"].match(second) or _RE["aux_first"].match(second):
        return True
    if with_comma and wh.casefold() in {"what", "which"}:
        return True
    return with_comma and bool(_RE["direct"].match(opening) and _RE["after_comma"].match(second))


def _without_prefix(question: str) -> str:
    prefixed = _RE["prefix"].match(question)
    return prefixed["rest"] if prefixed else question


def _resolve(first: str, second: str) -> str:
    """Give the second question the topic of the first for its pronoun, or for its missing verb."""
    match = _RE["without_verb"].match(_without_prefix(second)) or _RE["anaphora"].search(second)
    if match is None:
        return second
    # In "how old must loose objects be for git gc to prune them" the clause names what it means.
    if match[0].casefold() in _PERSONAL and len(content_words(second[: match.start()])) > 2:
        return second
    known = {word.casefold() for word in content_words(second)}
    topic = [word for word in content_words(first) if word.casefold() not in known][:_MAX_PARTS]
    return f"{second} ({' '.join(topic)})" if topic else second


def _strip_lead_in(side: str) -> str:
    bare = _RE["lead_in"].sub("", side.strip(), count=1).strip() or side.strip()
    return _RE["article"].sub("", bare)


def _split_tail(side: str) -> tuple[str, str]:
    match = _RE["tail"].search(side)
    return (side[: match.start()].strip(), match[1]) if match else (side, "")


def _is_side(side: str) -> bool:
    words = side.casefold().split()
    names_something = bool(content_words(side))
    return names_something and len(words) <= _MAX_SIDE_WORDS and _VAGUE.isdisjoint(words)


def is_denial(constraint: str) -> bool:
    """Tell whether a constraint says what is not wanted, such as "without JavaScript"."""
    return bool(_RE["denied"].search(constraint))


# One to eight words measure alike; a number anywhere in the unit lets 14 and 22 of 105 questions
# without an answer be called medium or high, in place of 11 and 16 (benchmarks/fit_judge.py).
_WORDS_BEFORE: Final = 3
_WORDS_AFTER: Final = 5


class Quantity(NamedTuple):
    """The quantity that a question asks for in figures.

    Attributes:
        form: An amount of money, the version of a program, an amount of memory, or any number.
        counted: Index terms of what is counted, near which the number stands; empty where the
            question does not say.
        told: Numbers of the question, which are no answer.
    """

    form: str
    counted: frozenset[str]
    told: frozenset[str]

    def is_stated(self, text: str) -> bool:
        """Tell whether a text has such a figure."""
        if self.form in _FORMS:
            return _FORMS[self.form][1].search(text) is not None
        text = _RE["item_number"].sub("\n", text)
        found = [
            each for each in _RE["number"].finditer(text) if each[0].casefold() not in self.told
        ]
        if not found or not self.counted:
            return bool(found)
        if all(self.counted.isdisjoint(_terms_near(text, each)) for each in found):
            return False
        return not self.counted.isdisjoint(analyze(_RE["number"].sub(" ", text)))


def _terms_near(text: str, number: re.Match[str]) -> list[str]:
    before = text[: number.start()].split()[-_WORDS_BEFORE:]
    after = text[number.end() :].split(maxsplit=_WORDS_AFTER)[:_WORDS_AFTER]
    return analyze(" ".join([*before, *after]))


def quantity_asked(question: str) -> Quantity | None:
    """The quantity that would answer a question; None where it asks for none."""
    form = next((form for form, (asks, _) in _FORMS.items() if asks.search(question)), "number")
    if form == "number" and not _RE["asks_number"].search(question):
        return None
    counted = _RE["counted"].search(question)
    return Quantity(
        form,
        frozenset(analyze(counted[1]) if counted else ()),
        frozenset(number.casefold() for number in _RE["number"].findall(question)),
    )
