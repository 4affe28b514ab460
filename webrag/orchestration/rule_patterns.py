"""Splits questions and names their kind with patterns; it asks no model.

A wrong split hurts more than a missed one, so every pattern wants clear evidence of two needs.
"""

import re
from collections.abc import Callable
from typing import Final

from webrag.indexing.stopwords import QUESTION_STOPWORDS
from webrag.orchestration.models import QueryType

__all__ = ["classify", "content_words", "decompose"]

_AUX: Final = (
    r"(?:is|are|was|were|am|do|does|did|can|could|should|must|will|would|may|might|has|have|had"
    r"|shall)"
)
_WH: Final = r"(?:how|what|which|when|where|why|who)"
_LEAD_IN: Final = re.compile(
    r"^(?:please\s+)?(?:(?:can|could)\s+you\s+)?(?:tell\s+me|explain|describe|show\s+me|list|give\s+me"
    r"|summari[sz]e|discuss)?\s*(?:(?:about|me|us)\s+)?"
    rf"(?:{_WH}\s+{_AUX}\s+)?(?:the\s+)?",
    re.IGNORECASE,
)
_ARTICLE: Final = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_TAIL: Final = re.compile(r"\s+((?:in|for|on|when|under|within)\s+.+)$", re.IGNORECASE)
_SIDE: Final = r"[^,;:?]+?"
_COMPARISONS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:difference|differences|distinction|trade-?offs?)\s+between\s+(?P<x>{_SIDE})"
        rf"\s+and\s+(?P<y>{_SIDE})$",
        rf"\bhow\s+(?:does|do|is|are)\s+(?P<x>{_SIDE})\s+(?:differ|different)\s+from\s+(?P<y>{_SIDE})$",
        rf"\bhow\s+(?:does|do)\s+(?P<x>{_SIDE})\s+compare\s+(?:to|with|against)\s+(?P<y>{_SIDE})$",
        rf"^(?:please\s+)?compare\s+(?P<x>{_SIDE})\s+(?:to|with|and|against)\s+(?P<y>{_SIDE})$",
        rf"^(?P<x>{_SIDE})\s+(?:as\s+)?compared\s+(?:to|with)\s+(?P<y>{_SIDE})$",
        rf"^(?P<x>{_SIDE})\s+(?:vs\.?|versus)\s+(?P<y>{_SIDE})$",
        rf"^(?:a\s+)?comparison\s+(?:of|between)\s+(?P<x>{_SIDE})\s+(?:and|with|to)\s+(?P<y>{_SIDE})$",
        rf"^is\s+(?P<x>{_SIDE})\s+(?:better|faster|safer|cheaper)\s+than\s+(?P<y>{_SIDE})$",
        rf"^(?:what|which)(?:\s+one)?\s+is\s+(?:better|faster|safer|cheaper|best)(?P<t>\s+for\s+{_SIDE})?"
        rf"\s*[,:]\s*(?P<x>{_SIDE})\s+or\s+(?P<y>{_SIDE})$",
        rf"^should\s+(?:i|we|one)\s+(?:use|choose|pick|prefer)\s+(?P<x>{_SIDE})\s+or\s+(?P<y>{_SIDE})$",
    )
)
_PROS_CONS: Final = re.compile(
    r"\b(?:(?:pros?\s*(?:and|&|/)\s*cons?)|(?:advantages?\s+and\s+(?:disadvantages?|drawbacks?))"
    r"|(?:benefits?\s+and\s+(?:drawbacks?|downsides?|costs?))|(?:strengths?\s+and\s+weaknesses))"
    r"\s+(?:of|to|for|in)\s+(?P<x>.+)$",
    re.IGNORECASE,
)
_WORK_AND_WHEN: Final = re.compile(
    r"^how\s+(?:does|do)\s+(?P<x>.+?)\s+work,?\s+and\s+when\s+(?:should|do|would|can)\s+(?:i|we|you|one)"
    r"\s+use\s+(?:it|them|this|that)$",
    re.IGNORECASE,
)
_TOPICS_FOR: Final = re.compile(
    r"^(?P<x>[\w.+#-]+(?:\s+[\w.+#-]+){0,2})\s+and\s+(?P<y>[\w.+#-]+(?:\s+[\w.+#-]+){0,2})"
    r"\s+for\s+(?P<z>[\w.+#-]+(?:\s+[\w.+#-]+){0,5})$",
    re.IGNORECASE,
)
_BINOMIALS: Final = frozenset(
    {
        "back and forth", "black and white", "command and control", "copy and paste",
        "cut and paste", "drag and drop", "dos and don'ts", "dos and donts",
        "errors and warnings", "find and replace", "input and output", "key and value",
        "more and more", "name and email", "username and password", "user and password",
        "plug and play", "publish and subscribe", "read and write", "request and response",
        "search and replace", "start and end", "start and stop", "terms and conditions",
        "tips and tricks", "trial and error", "divide and conquer", "map and reduce",
    }
)  # fmt: skip
_JOINT: Final = re.compile(rf"(?P<comma>,)?\s+and\s+(?:also\s+)?(?=(?P<wh>{_WH})\b)", re.IGNORECASE)
_INVERTED: Final = re.compile(
    rf"^(?:(?:when|where|why|how|who|what|which)\s+{_AUX}\b"
    rf"|how\s+(?:many|much|old|often|long|far|large|big|fast|deep|high|well)\b(?:\s+[\w-]+){{0,3}}?\s+{_AUX}\b"
    rf"|(?:what|which)(?:\s+[\w.-]+){{1,3}}?\s+{_AUX}\b)",
    re.IGNORECASE,
)
# Only after a comma and a direct question: "how heavy is", "how many frames fit in", "who pays".
_AFTER_COMMA: Final = re.compile(
    rf"^(?:who|how\s+(?:many|much)|how\s+[\w-]+\s+{_AUX})\b", re.IGNORECASE
)
_DIRECT: Final = re.compile(rf"^(?:{_WH}|{_AUX})\b", re.IGNORECASE)
_ELLIPTIC: Final = re.compile(rf"^which\s+{_AUX}\b", re.IGNORECASE)
_ELLIPTIC_FIRST: Final = re.compile(r"^which\b", re.IGNORECASE)
_QUESTION_START: Final = re.compile(
    rf"^(?:{_WH}|{_AUX}|explain|describe|list|show)\b", re.IGNORECASE
)
_PREFIX: Final = re.compile(
    r"^(?P<prefix>(?:for|when|in|with|on|under|using|after|before|while)\s[^,?]{2,60},)\s+(?P<rest>.+)$",
    re.IGNORECASE,
)
_ANAPHORA: Final = re.compile(
    r"\b(?:it|its|that|this|they|them|their|these|those|there|such)\b", re.IGNORECASE
)
_PERSONAL: Final = frozenset({"it", "its", "they", "them", "their"})
_SENTENCE_END: Final = re.compile(r"(?<=\?)\s+")
_WORD: Final = re.compile(r"[\w@&$~^%]+(?:(?:::|[-./:_'+#])[\w]+)*(?:\+\+|#)?|--?[\w-]+|\.[\w]+")
_COMPARISON_WORDS: Final = re.compile(
    r"\b(?:versus|vs\.?|compar(?:e[ds]?|ing|ison)|differ(?:s|ence|ences|ent)?\b.*\b(?:between|from)"
    r"|better\s+than|pros?\s+and\s+cons?|advantages?\s+and\s+disadvantages?)\b",
    re.IGNORECASE,
)
_HOW_TO: Final = re.compile(
    r"\b(?:how\s+(?:do|can|should|would|to)\b|what\s+(?:must|should|do)\s+(?:i|we|you)\b"
    r"|steps?\s+to\b|guide\s+to\b|tutorial\b|how\s+(?:is|are)\s+.+\s+(?:configured|installed)\b)",
    re.IGNORECASE,
)
_EXPLORATORY: Final = re.compile(
    r"^(?:tell\s+me|overview|introduction|explain|describe|discuss|explore|what\s+are\s+the\s+(?:ways"
    r"|options|approaches|main|key)|everything\s+about)\b|\boverview\s+of\b",
    re.IGNORECASE,
)
_MAX_SIDE_WORDS: Final = 7
_MIN_CLAUSE_WORDS: Final = 4
_MAX_PARTS: Final = 4
# Longer texts are reports or pasted pages, and some patterns take quadratic time.
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
    if _COMPARISON_WORDS.search(query):
        return "comparison"
    if _HOW_TO.search(query):
        return "how_to"
    if _EXPLORATORY.search(query.strip()):
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
    match = _PROS_CONS.search(text)
    if match is None:
        return None
    topic = match["x"]
    return (f"advantages of {topic}", f"disadvantages of {topic}"), "comparison"


def _comparison(text: str) -> _Found:
    for pattern in _COMPARISONS:
        match = pattern.search(text)
        if match is None:
            continue
        left, right = _strip_lead_in(match["x"]), _ARTICLE.sub("", match["y"].strip())
        tail = (match.groupdict().get("t") or "").strip()
        right, tail = _split_tail(right) if not tail else (right, tail)
        if _is_side(left) and _is_side(right):
            return tuple(f"{side} {tail}".strip() for side in (left, right)), "comparison"
    return None


def _work_and_when(text: str) -> _Found:
    match = _WORK_AND_WHEN.match(text)
    if match is None:
        return None
    return (f"how {match['x']} works", f"when to use {match['x']}"), "how_to"


def _several_sentences(text: str) -> _Found:
    sentences = [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
    asked = [part for part in sentences if _QUESTION_START.match(part)]
    if len(sentences) < 2 or len(asked) != len(sentences):
        return None
    if any(len(part.split()) < _MIN_CLAUSE_WORDS for part in asked):
        return None
    first = asked[0].rstrip(" ?")
    return (first, *(_resolve(first, part.rstrip(" ?")) for part in asked[1:])), None


def _joined_questions(text: str) -> _Found:
    for match in _JOINT.finditer(text):
        first, second = text[: match.start()].rstrip(" ,?"), text[match.end() :]
        if _are_two_questions(first, second, match["wh"], with_comma=bool(match["comma"])):
            prefix = _PREFIX.match(first)
            if prefix:
                second = f"{prefix['prefix']} {second}"
            return (first, _resolve(first, second)), None
    return None


def _topics_for(text: str) -> _Found:
    match = _TOPICS_FOR.match(text)
    if match is None or _QUESTION_START.match(text) or " for " in match["z"]:
        return None
    pair = f"{match['x']} and {match['y']}".casefold()
    inner = {"and", "or", "to", "of", "in", "with"}
    words = {*match["x"].casefold().split(), *match["y"].casefold().split()}
    if pair in _BINOMIALS or words & inner or not words.isdisjoint({"i", "you", "we", "is", "are"}):
        return None
    return (f"{match['x']} for {match['z']}", f"{match['y']} for {match['z']}"), "exploratory"


_PATTERNS: Final[tuple[Callable[[str], _Found], ...]] = (
    _pros_and_cons,
    _work_and_when,
    _several_sentences,
    _joined_questions,
    _comparison,
    _topics_for,
)


def _are_two_questions(first: str, second: str, wh: str, *, with_comma: bool) -> bool:
    if min(len(first.split()), len(second.split())) < _MIN_CLAUSE_WORDS:
        return False
    main = _PREFIX.match(first)
    opening = main["rest"] if main else first
    if not _QUESTION_START.match(opening):
        return False
    # "... which files are tracked and which are ignored" is one question about two things.
    if re.search(rf"\s{wh}\b", opening, re.IGNORECASE):
        return False
    # "Which ports are open and which are closed" asks for one thing, "Which ... and how ..." not.
    if _ELLIPTIC.match(second) and _ELLIPTIC_FIRST.match(opening):
        return False
    if _INVERTED.match(second):
        return True
    if with_comma and wh.casefold() in {"what", "which"}:
        return True
    return with_comma and bool(_DIRECT.match(opening) and _AFTER_COMMA.match(second))


def _resolve(first: str, second: str) -> str:
    """Name what a pronoun of the second question stands for: the topic of the first."""
    match = _ANAPHORA.search(second)
    if match is None:
        return second
    # In "how old must loose objects be for git gc to prune them" the clause names what it means.
    if match[0].casefold() in _PERSONAL and len(content_words(second[: match.start()])) > 2:
        return second
    known = {word.casefold() for word in content_words(second)}
    topic = [word for word in content_words(first) if word.casefold() not in known][:_MAX_PARTS]
    return f"{second} ({' '.join(topic)})" if topic else second


def _strip_lead_in(side: str) -> str:
    bare = _LEAD_IN.sub("", side.strip(), count=1).strip() or side.strip()
    return _ARTICLE.sub("", bare)


def _split_tail(side: str) -> tuple[str, str]:
    match = _TAIL.search(side)
    return (side[: match.start()].strip(), match[1]) if match else (side, "")


def _is_side(side: str) -> bool:
    words = side.casefold().split()
    vague = {"and", "or", "it", "them", "that", "this", "they", "each", "other", "i", "we", "you"}
    names_something = bool(content_words(side))
    return names_something and len(words) <= _MAX_SIDE_WORDS and not vague & set(words)
