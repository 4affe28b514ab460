"""Splits questions and names their kind with patterns; it asks no model.

A wrong split hurts more than a missed one, so every pattern wants clear evidence of two needs.
"""

import re
from collections.abc import Callable
from typing import Final

from webrag.lexical.analysis import QUESTION_STOPWORDS
from webrag.question import QueryType

# The patterns are for texts whose white space is single spaces: `\s+` beside a part that takes
# spaces too has as many readings as there are spaces.
_AUX: Final = (
    r"(?:is|are|was|were|am|do|does|did|can|could|should|must|will|would|may|might|has|have|had"
    r"|shall)"
)
_WH: Final = r"(?:how|what|which|when|where|why|who)"
_TO: Final = r"(?:(?:about|after|as|at|before|between|by|for|from|in|on|since|to|until|with) )"
_LEAD_IN: Final = re.compile(
    r"^(?:please )?(?:(?:can|could) you )?(?:tell me|explain|describe|show me|list|give me"
    r"|summari[sz]e|discuss)? ?(?:(?:about|me|us) )?"
    rf"(?:{_WH} {_AUX} )?(?:the )?",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"\b(?:no|not|non|without|avoid|exclud\w+|except|never|nothing|don'?t|instead\s+of)\b",
    re.IGNORECASE,
)
_ARTICLE: Final = re.compile(r"^(?:an?|the) ", re.IGNORECASE)
_TAIL: Final = re.compile(r" ((?:in|for|on|when|under|within) (?s:.+))$", re.IGNORECASE)


def _two_sides(before: str, between: str) -> str:
    """A pattern for the two sides of a comparison: what is before and after the first `between`.

    Nothing is given back, so that its time does not grow with the product of the sides' lengths.
    """
    return rf"{before}(?P<x>(?:(?!{between})[^,;:?]){{1,200}}+){between}(?P<y>[^,;:?]{{1,200}}+)$"


_COMPARISONS: Final = tuple(
    re.compile(_two_sides(before, between), re.IGNORECASE)
    for before, between in (
        (r"\b(?:difference|differences|distinction|trade-?offs?) between ", " and "),
        (r"\bhow (?:does|do|is|are) ", " (?:differ|different) from "),
        (r"\bhow (?:does|do) ", " compare (?:to|with|against) "),
        ("^(?:please )?compare ", " (?:to|with|and|against) "),
        ("^", " (?:as )?compared (?:to|with) "),
        ("^", r" (?:vs\.?|versus) "),
        ("^(?:a )?comparison (?:of|between) ", " (?:and|with|to) "),
        ("^is ", " (?:better|faster|safer|cheaper) than "),
        (
            "^(?:what|which)(?: one)? is (?:better|faster|safer|cheaper|best)"
            "(?P<t> for [^,;:?]{1,200}+)? ?[,:] ?",
            " or ",
        ),
        ("^should (?:i|we|one) (?:use|choose|pick|prefer) ", " or "),
    )
)
_PROS_CONS: Final = re.compile(
    r"\b(?:(?:pros? ?(?:and|&|/) ?cons?)|(?:advantages? and (?:disadvantages?|drawbacks?))"
    r"|(?:benefits? and (?:drawbacks?|downsides?|costs?))|(?:strengths? and weaknesses))"
    r" (?:of|to|for|in) (?P<x>(?s:.+))$",
    re.IGNORECASE,
)
_WORK_AND_WHEN: Final = re.compile(
    r"^how (?:does|do) (?P<x>.+?) work,? and when (?:should|do|would|can) (?:i|we|you|one)"
    r" use (?:it|them|this|that)$",
    re.IGNORECASE,
)
_TOPICS_FOR: Final = re.compile(
    r"^(?P<x>[\w.+#-]++(?: [\w.+#-]++){0,2}) and (?P<y>[\w.+#-]++(?: [\w.+#-]++){0,2})"
    r" for (?P<z>[\w.+#-]++(?: [\w.+#-]++){0,5})$",
    re.IGNORECASE,
)
# What two things do each for itself; of "exchange", "share" or "differ" neither does it alone.
_VERBS: Final = (
    r"(?:allocate|apply|authenticate|behave|build|cache|calculate|check|choose|clean|collect"
    r"|compress|compute|configure|create|deal|decide|decode|define|delete|deploy|detect|display"
    r"|encode|encrypt|enforce|escape|estimate|evaluate|execute|expose|format|guarantee|handle"
    r"|implement|import|index|install|interpret|load|lock|log|look|manage|measure|order|parse"
    r"|prevent|process|protect|read|recover|render|report|represent|resolve|respond|restore"
    r"|retry|round|schedule|search|send|serve|sort|start|stop|store|support|treat|update|use"
    r"|validate|verify|work|write)"
)
_NAME: Final = r"[\w.+#-]++(?: (?!and\b)[\w.+#-]++){0,3}?"
_BOTH_DO: Final = re.compile(
    r"\bhow (?:do |did |can |should )?(?!(?:does|to|much|many|often|long|is|are|was|were) )"
    rf"(?P<x>{_NAME}) and (?:how )?(?P<y>(?!how\b){_NAME})"
    rf" (?P<verb>{_VERBS})(?P<rest>(?: (?s:.{{1,300}}))?)$",
    re.IGNORECASE,
)
_COMPARED_HOW: Final = re.compile(
    r"\b(?:difference|differences|distinction) between (?P<x>(?:how|what|when|where|why) .{1,200}?)"
    r" and (?P<y>(?:how|what|when|where|why) .{1,200})$",
    re.IGNORECASE,
)
_BINOMIALS: Final = (
    # Names of firms, places and works, and pairs that are one thing.
    "barnes and noble", "bed and breakfast", "black and decker", "bosnia and herzegovina",
    "client and server", "crime and punishment", "dungeons and dragons", "ernst and young",
    "food and drug", "health and safety", "johnson and johnson", "law and order",
    "marks and spencer", "mergers and acquisitions", "nuts and bolts", "procter and gamble",
    "profit and loss", "question and answer", "questions and answers",
    "research and development", "rock and roll", "romeo and juliet", "salt and pepper",
    "search and rescue",
    "simon and schuster", "standard and poor's", "supply and demand", "tom and jerry",
    "track and trace", "trinidad and tobago", "war and peace",
    "back and forth", "black and white", "command and control", "copy and paste",
    "cut and paste", "drag and drop", "dos and don'ts", "dos and donts",
    "errors and warnings", "find and replace", "input and output", "key and value",
    "more and more", "name and email", "username and password", "user and password",
    "plug and play", "publish and subscribe", "read and write", "request and response",
    "search and replace", "start and end", "start and stop", "terms and conditions",
    "tips and tricks", "trial and error", "divide and conquer", "map and reduce",
)  # fmt: skip
_JOINT: Final = re.compile(
    rf"(?:(?P<comma>,)? (?:and|as well as) |(?P<stop>;) )(?:also )?(?={_TO}{{0,2}}(?P<wh>{_WH})\b)"
    rf"|(?P<comma2>,) and (?:also )?(?=(?P<wh2>{_AUX}) [\w-]+ [\w-]+ [\w-])",
    re.IGNORECASE,
)
_FURTHER: Final = re.compile(rf", (?={_TO}?{_WH} (?:[\w-]+ )?{_AUX}\b)", re.IGNORECASE)
_INVERTED: Final = re.compile(
    rf"^{_TO}{{0,2}}(?:(?:when|where|why|how|who|what|which) {_AUX}\b"
    rf"|how (?:many|much|old|often|long|far|large|big|fast|deep|high|well)\b(?: [\w-]+){{0,3}}?"
    rf" {_AUX}\b|how (?:cold|expensive|heavy|hot|reliable|safe|slow|soon|strong|tall|wide) {_AUX}\b"
    rf"|(?:what|which)(?: [\w.-]+){{1,3}}? {_AUX}\b)",
    re.IGNORECASE,
)
# Only after a comma and a direct question: "how heavy is", "how many frames fit in", "who pays".
_AFTER_COMMA: Final = re.compile(rf"^(?:who|how (?:many|much)|how [\w-]+ {_AUX})\b", re.IGNORECASE)
_DIRECT: Final = re.compile(rf"^(?:{_WH}|{_AUX})\b", re.IGNORECASE)
_ELLIPTIC: Final = re.compile(rf"^which {_AUX}\b", re.IGNORECASE)
# "What is the default in Delphi mode, and what in MacPas mode": the verb is that of the first.
_WITHOUT_VERB: Final = re.compile(
    r"^(?:what|which)(?: ones?)? (?:otherwise\b|the (?:following|next|others?|second)\b"
    rf"|(?:at|for|in|on|to (?:an?|one|the)|under|when|with) (?!{_WH}\b))",
    re.IGNORECASE,
)
_QUESTION_START: Final = re.compile(
    rf"^(?:{_TO}?{_WH}|{_AUX}|explain|describe|list|show)\b", re.IGNORECASE
)
_PREFIX: Final = re.compile(
    r"^(?P<prefix>(?:(?:for|to|when|in|with|on|under|using|after|before|while) [^,?]{2,100},)"
    r"|[^:?]{8,200}:)"
    r" (?P<rest>.+)$",
    re.IGNORECASE,
)
# Who tells what has happened, and then asks, asks once.
_TOLD: Final = re.compile(rf"^(?:I|we|my|our|an?|the|th[ei]se?|given|if|{_TO})\b", re.IGNORECASE)
_AND_AGAIN: Final = re.compile(
    r",? and (?P<to>about|against|at|by|for|from|in|on|under|with) (?P<y>[^,;:]{3,200})$",
    re.IGNORECASE,
)
_TOGETHER: Final = re.compile(r"\b(?:all|and|both|each|once|same|together)\b|,", re.IGNORECASE)
_ANAPHORA: Final = re.compile(
    r"\b(?:it|its|that|this|they|them|their|these|those|there|such)\b", re.IGNORECASE
)
_PERSONAL: Final = frozenset({"it", "its", "they", "them", "their"})
_SENTENCE_END: Final = re.compile(r"(?<=\?) (?:and |also )*", re.IGNORECASE)
_WORD: Final = re.compile(r"[\w@&$~^%]+(?:(?:::|[-./:_'+#])[\w]+)*(?:\+\+|#)?|--?[\w-]+|\.[\w]+")
_COMPARISON_WORDS: Final = re.compile(
    r"\b(?:versus|vs\.?|compar(?:e[ds]?|ing|ison)|differ(?:s|ence|ences|ent)?\b.{0,200}\b"
    r"(?:between|from)"
    r"|better than|pros? and cons?|advantages? and disadvantages?)\b",
    re.IGNORECASE,
)
_HOW_TO: Final = re.compile(
    r"\b(?:how (?:do|can|should|would|to)\b|what (?:must|should|do) (?:i|we|you)\b"
    r"|steps? to\b|guide to\b|tutorial\b|how (?:is|are) .{1,200} (?:configured|installed)\b)",
    re.IGNORECASE,
)
_EXPLORATORY: Final = re.compile(
    r"^(?:tell me|overview|introduction|explain|describe|discuss|explore|what are the (?:ways"
    r"|options|approaches|main|key)|everything about)\b|\boverview of\b",
    re.IGNORECASE,
)
_ALSO_VERSUS: Final = re.compile(r" (?:vs\.?|versus) ", re.IGNORECASE)
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
    if _COMPARISON_WORDS.search(text):
        return "comparison"
    if _HOW_TO.search(text):
        return "how_to"
    if _EXPLORATORY.search(text):
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
        if f"{left} and {right}".casefold().startswith(_BINOMIALS) or re.match(_WH, left, re.I):
            return None
        tail = (match.groupdict().get("t") or "").strip()
        right, tail = _split_tail(right) if not tail else (right, tail)
        sides = [left, *_ALSO_VERSUS.split(right)]
        if all(map(_is_side, sides)):
            return tuple(f"{side} {tail}".strip() for side in sides), "comparison"
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
        with_comma = bool(match["comma"] or match["stop"] or match["comma2"])
        if _are_two_questions(first, second, match["wh"] or match["wh2"], with_comma=with_comma):
            heads = [first, *_listed_before(first)]
            prefix = _PREFIX.match(first)
            if prefix:
                second = f"{prefix['prefix']} {second}"
            firsts = heads[1:] or heads
            return (*firsts, _resolve(firsts[0], second)), None
    return None


def _listed_before(first: str) -> list[str]:
    """The questions that a list begins with: "what is A, how long is B" before "and who is C"."""
    parts = _FURTHER.split(first)
    if len(parts) < 2 or _PREFIX.match(first) or any(len(part.split()) < 3 for part in parts):
        return []
    return [parts[0], *(_resolve(parts[0], part) for part in parts[1:])]


def _about_each(text: str) -> _Found:
    """Take "what is said about A and about B" apart by the preposition that comes twice."""
    match = _AND_AGAIN.search(text)
    if match is None or _COMPARISON_WORDS.search(text):
        return None
    to, second = match["to"], match["y"]
    head, _, first = text[: match.start()].rpartition(f" {to} ")
    is_asked = re.match(rf"{_WH}\b", _without_prefix(head), re.IGNORECASE)
    is_one = _TOGETHER.search(f"{first} {second}") or _ANAPHORA.search(second)
    if not is_asked or is_one or re.match(rf"{_WH}\b", second, re.IGNORECASE):
        return None
    return (f"{head} {to} {first}", f"{head} {to} {second}"), None


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


def _both_do(text: str) -> _Found:
    """Take "how A and B handle C" apart into "how A handles C" and "how B handles C"."""
    match = _BOTH_DO.search(text)
    if match is None:
        return None
    sides = [_ARTICLE.sub("", match[name]) for name in ("x", "y")]
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
    match = _COMPARED_HOW.search(text)
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
    is_elliptic = _WITHOUT_VERB.match(second) is not None
    clauses = (first,) if is_elliptic else (first, second)
    if any(len(clause.split()) < _MIN_CLAUSE_WORDS for clause in clauses):
        return False
    opening = _without_prefix(first)
    if not _QUESTION_START.match(opening):
        is_request = with_comma and wh.casefold() != "why" and not _TOLD.match(first)
        return is_request and bool(_INVERTED.match(second)) and not _ANAPHORA.search(second)
    # "... which files are tracked and which are ignored" is one question about two things.
    asked = re.sub(rf"^{_TO}", "", opening, flags=re.IGNORECASE)
    if is_elliptic and re.match(rf"{wh}\b", asked, re.IGNORECASE):
        return True
    if re.search(rf"\s{wh}\b", asked, re.IGNORECASE) and not _FURTHER.search(asked):
        return False
    # "Which ports are open and which are closed" asks for one thing, "Which ... and how ..." not.
    if _ELLIPTIC.match(second) and opening.casefold().startswith("which "):
        return False
    if _INVERTED.match(second) or re.match(_AUX, second, re.IGNORECASE):
        return True
    if with_comma and wh.casefold() in {"what", "which"}:
        return True
    return with_comma and bool(_DIRECT.match(opening) and _AFTER_COMMA.match(second))


def _without_prefix(question: str) -> str:
    prefixed = _PREFIX.match(question)
    return prefixed["rest"] if prefixed else question


def _resolve(first: str, second: str) -> str:
    """Give the second question the topic of the first for its pronoun, or for its missing verb."""
    match = _WITHOUT_VERB.match(_without_prefix(second)) or _ANAPHORA.search(second)
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
    names_something = bool(content_words(side))
    return names_something and len(words) <= _MAX_SIDE_WORDS and _VAGUE.isdisjoint(words)


def is_denial(constraint: str) -> bool:
    """Tell whether a constraint says what is not wanted, such as "without JavaScript"."""
    return bool(_DENIED.search(constraint))
