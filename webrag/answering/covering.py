"""Judges how well what an answer says covers the question; pure, the same for every writer."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from llama_index.postprocessor.webrag.wordings import QUESTION_WEIGHT

from webrag.answering.evidence import Evidence, Gathered
from webrag.answering.models import AnswerCitation, AnswerPart, ExecutionPlan
from webrag.answering.support import identifiers
from webrag.lexical.analysis import analyze
from webrag.orchestration.confidence import OF_ANOTHER, log_odds
from webrag.retrieval.quotes import Encode, term_coverage

AnswerKind = Literal["default", "value", "list", "steps", "condition", "other"]

_STEPS: Final = re.compile(
    r"\bhow\s+(?:do|can|could|should|would|must|to)\b"
    r"|\bwhat\s+(?:must|should|can|do|shall)\s+(?:i|we|one)\s+(?:do|run|set|use|type|change|add)\b"
    r"|\bwhat\s+(?:has|needs|is|have)\s+to\s+be\s+(?:done|set|run|changed|configured|installed)\b"
    r"|\bwhich\s+(?:commands?|steps|settings?\s+must|(?:\w+\s+){0,2}lines)\b",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(
    r"\bhow\s+(?:many|much|long|often|large|big|old|far|fast|deep|high|small)\b"
    r"|\b(?:defaults?|by\s+default|range|maximum|minimum|limit|value\s+(?:is|does|of)|port|number)\b"
    r"|\bwhat\s+(?:value|number|size|version|type|unit)\b",
    re.IGNORECASE,
)
_DEFAULT: Final = re.compile(
    r"\bdefaults?\b|\b(?:if|when|unless)\s+(?:nothing|it|none|not|no\s+\w+)\s+(?:(?:is|was)\s+)?"
    r"(?:set|given|specified|configured|otherwise)\b|\bout\s+of\s+the\s+box\b",
    re.IGNORECASE,
)
_LIST: Final = re.compile(
    r"^(?:(?:which|what)\s+(?!(?:is|was|does|has|happens)\b)(?:[^\s,]+\s+){0,3}?"
    r"(?!does|was|has|always|perhaps)(?:[a-z]{2,}[^siu\W]s|[a-z]+ies)\b"
    r"|(?:list|name|enumerate)\b|what\s+are\b)",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"^(?:is|are|does|do|did|can|could|will|would|may|must|should|has|have|was|were)\b"
    r"|\bwhat\s+happens\b|\b(?:when|if)\b",
    re.IGNORECASE,
)
# What tells a reader to do something: the second person, a purpose, an imperative, or code to type.
_ACTION: Final = re.compile(
    r"`[^`\n]+`|\byou\s+(?:can|may|must|should|need|have\s+to)\b|\b[Tt]o\s+[a-z]+\b[^.,]{0,300},"
    r"|(?:^|[,;:]\s+|\b(?:then|and|by|simply|just|instead)\s+)"
    r"(?i:use|using|set|setting|run|running|pass|passing|call|calling|add|adding|specify"
    r"|specifying|enable|disable|install|create|type|choose|select|press|click|open|replace|enter"
    r"|make\s+sure|configure|write|put|remove|change|turn)\b"
)
_A_VALUE: Final = re.compile(
    r"\d|`[^`\n]+`|\b(?:none|zero|one|two|three|four|five|six|seven|eight|nine|ten|once|twice"
    r"|true|false|yes|no|on|off|unlimited|infinite|empty)\b|[\"'\u2018\u201c]",
    re.IGNORECASE,
)
_UNSET: Final = (
    r"(?:\b(?:defaults?|defaulting|initial(?:ly)?|otherwise|unless|unset|omitted|omitting|absent"
    r"|missing|implicit(?:ly)?)\b|\b(?:not|nothing|none)\s+(?:(?:is|are|been|explicitly)\s+)?"
    r"(?:set|given|specified|provided|present|supplied|defined|used|configured)\b"
    r"|\b(?:if|when)\s+no\b)"
)
_GIVEN: Final = (
    r"(?:\d|`[^`\n]+`|\b(?:none|zero|two|three|four|five|six|seven|eight|nine|ten|true|false"
    r"|unlimited|infinite|empty)\b|[\"'\u2018\u201c])"
)
# The value of a default stands in the sentence that calls it one.
_A_DEFAULT: Final = re.compile(
    rf"{_UNSET}[^.\n]{{0,120}}{_GIVEN}|{_GIVEN}[^.\n]{{0,80}}{_UNSET}"
    r"|\b(?:is|are|turned|switched)\s+(?:on|off|enabled|disabled|active|inactive)\s+by\s+default\b"
    r"|\bthis\s+is\s+the\s+default\b",
    re.IGNORECASE,
)
_A_LIST: Final = re.compile(
    r"(?m:^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t])|\||[^,\n]{1,60},[^,\n]{1,60}(?:,|\band\b|\bor\b)"
    r"|`[^`\n]+`[^`\n]{0,200}`[^`\n]+`"
)
_A_CONDITION: Final = re.compile(
    r"\b(?:if|when|unless|only|not|never|always|must|may|can|cannot|will|would|should|even"
    r"|regardless|however|otherwise|without|no|except|has\s+to|have\s+to)\b|n't\b",
    re.IGNORECASE,
)


def answer_kind(question: str) -> AnswerKind:
    """The kind of answer that would do."""
    if _STEPS.search(question):
        return "steps"
    if _VALUE.search(question) or _DEFAULT.search(question):
        return "default" if _DEFAULT.search(question) else "value"
    if _LIST.search(question):
        return "list"
    return "condition" if _CONDITION.search(question) else "other"


def is_of_kind(text: str, kind: AnswerKind, *, is_code: bool = False) -> bool:
    """Whether a text may be such an answer, whatever it is about."""
    if kind == "default":
        return bool(_A_DEFAULT.search(text))
    if kind == "value":
        return bool(_A_VALUE.search(text))
    if kind == "list":
        return bool(_A_LIST.search(text))
    if kind == "steps":
        return is_code or bool(_ACTION.search(text))
    return kind == "other" or bool(_A_CONDITION.search(text))


_MOST_PARTS: Final = 4
# "In the old format, which ..." sets a scene; "..., which is odd, and why" adds a clause.
_SCENE: Final = re.compile(
    r"(?:in|if|for|when|on|with|using|while|after|before|since|as|i|my|we)\b", re.IGNORECASE
)
_CLAUSE: Final = re.compile(
    r"(?:why|which|how|what|where|who|even|unless|but|so|because|although|though|not|if|when|i|it"
    r"|is|are|does|do|can|that)\b",
    re.IGNORECASE,
)
_PART: Final = re.compile(r",\s*+(?:(?:and|or)\s++(?:also\s++)?)?|(?<!\s)\s++and\s++(?:also\s++)?")


def asked_parts(question: str) -> tuple[str, ...]:
    """What a question lists with commas, such as "run it faster, quieter and with a limit".

    Nothing where it lists nothing: a single comma or "and" seldom parts two things.
    """
    text = " ".join(question.split()).rstrip(" ?.!")
    if not re.search(r",[^,]{1,200}(?:,|\band\b)", text):
        return ()
    parts = [part for part in _PART.split(text) if part.strip()]
    is_list = 2 < len(parts) <= _MOST_PARTS and not _SCENE.match(text)
    return tuple(parts) if is_list and not any(map(_CLAUSE.match, parts[1:])) else ()


# Fitted on 72 questions over four sites, each site judged by the others, with and without other
# wordings; the same questions with the pages that answer them left out count a fifth.
# `webrag eval --ask` prints what becomes of it.
_CONSTANT: Final = -2.6
_TERMS: Final = 1.95
_MEANING: Final = 1.6
_RELEVANCE: Final = 0.27
_WITH_WORDINGS: Final = 1.0

# An answer that leaves a part of the question out is one in part, whatever the rest is worth.
_IN_PART: Final = 0.69
# A number, or a list, in a sentence that speaks of little of what was asked may be another's.
_BESIDE: Final = 0.79
_KIND_COVERED: Final = 0.5  # of the weight of the question's terms, the place counted in
_LEAST_WORDINGS: Final = 2  # one shares words with the question by chance
_PART_COVERED: Final = 0.5  # of the weight of its terms, or as similarity


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, list, code block or row of an answer.

    Attributes:
        place: Title and headings it stands under, and the address of its page.
        quality: Of the passage it is from, [0, 1].
    """

    text: str
    place: str
    quality: float
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Covering:
    """What an answer covers of a question.

    Attributes:
        confidence: Probability-like number that the answer holds what was asked for, [0, 1].
        ceiling: What no other judgement may raise the confidence above.
        missing: Parts of the question that nothing in the answer speaks of.
    """

    confidence: float
    ceiling: float = 1.0
    missing: tuple[str, ...] = ()


NOTHING_SAID: Final = Covering(0.0)


def place_of(evidence: Evidence) -> str:
    """Title, headings and address of a passage: they name what a sentence need not name again."""
    chunk, focus = evidence.chunk, evidence.chunk.focus
    headings = focus.heading_path if focus and focus.heading_path else chunk.heading_path
    return "\n".join((chunk.title or "", *headings, chunk.source_url))


def said_in(
    parts: Sequence[AnswerPart], citations: Sequence[AnswerCitation], gathered: Gathered
) -> list[Said]:
    """The sentences of an answer with the passages that they cite."""
    by_number = {each.number: each for each in citations}
    found = []
    for part in parts:
        cited = [by_number[number] for number in part.citations]
        passages = [each for each in gathered.evidence if any(_holds(each, c) for c in cited)]
        places = "\n".join(dict.fromkeys(map(place_of, passages)))
        quality = max((each.quality for each in passages), default=0.0)
        found.append(Said(part.text, places, quality, part.kind == "code"))
    return found


def _holds(evidence: Evidence, citation: AnswerCitation) -> bool:
    chunk = evidence.chunk
    inside = chunk.char_start <= citation.char_start and citation.char_end <= chunk.char_end
    return inside and chunk.source_url == citation.source_url


def wanted_kind(plan: ExecutionPlan) -> AnswerKind:
    """The kind of answer a question wants, however it is put."""
    return "steps" if plan.query_type == "how_to" else answer_kind(plan.revised_query)


def names_of(question: str) -> frozenset[str]:
    """Names in a question that only what they name is called by: options, variables, functions."""
    return frozenset(name for name in identifiers(question) if _is_particular(name))


def _is_particular(name: str) -> bool:
    has_both = any(c.isdigit() for c in name) and any(c.isalpha() for c in name)
    return bool(re.search(r"[_.:/]|^-", name)) or (has_both and len(name) > 3)


def holds_name(name: str, text: str) -> bool:
    """Whether a text names something by a name of `names_of`, whole."""
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text.casefold()))


def needs_of(plan: ExecutionPlan) -> tuple[str, ...]:
    """The separate things a question asks for; the question alone where it is one."""
    if len(plan.sub_queries) > 1:
        return plan.sub_queries
    names = sorted(names_of(plan.revised_query), key=plan.revised_query.casefold().find)
    return asked_parts(plan.revised_query) or (
        tuple(names) if len(names) > 1 else (plan.revised_query,)
    )


def covering(
    plan: ExecutionPlan, gathered: Gathered, said: Sequence[Said], encode: Encode | None
) -> Covering:
    """Judge what an answer says: by its words, its meaning, its kind, and what it is about.

    Args:
        plan: The question, its parts and its kind.
        gathered: Wordings of the question, and the weights of their terms.
        said: What the answer says, and where that stands.
        encode: Compares meanings; None to go by words alone.
    """
    if not said:
        return NOTHING_SAID
    asked = {plan.revised_query: gathered.term_idf, **gathered.wordings}
    texts = [each.text for each in said]
    terms = _shared(texts, asked)
    best = max(each.quality for each in said)
    alike = _similar(tuple(asked), texts, encode)
    logit = (
        _CONSTANT
        + _TERMS * terms
        + _MEANING * max(map(max, alike), default=0.0)
        + _RELEVANCE * log_odds(best)
        + _WITH_WORDINGS * bool(gathered.wordings)
    )
    missing = _missing(plan, gathered, said, encode)
    by_kind = _by_kind(plan, gathered, said)
    by_subject = min(_by_name(plan, said), _by_shared_word(plan, gathered, said))
    ceiling = min(_IN_PART if missing else 1.0, by_kind, by_subject)
    return Covering(min(1 / (1 + math.exp(-logit)), ceiling), ceiling, missing)


def _shared(texts: Sequence[str], asked: Mapping[str, Mapping[str, float]]) -> float:
    """Mean share of the weighted terms of the question, which counts double, and its wordings."""
    joined = "\n".join(texts)
    shares = [term_coverage(joined, question, idf) for question, idf in asked.items()]
    weights = [QUESTION_WEIGHT, *(1.0 for _ in shares[1:])]
    return sum(map(float.__mul__, shares, weights)) / sum(weights)


def _similar(
    asked: Sequence[str], texts: Sequence[str], encode: Encode | None
) -> list[list[float]]:
    """Cosine of each text with each question."""
    if encode is None:
        return []
    vectors = encode([*asked, *texts])
    found: list[list[float]] = (vectors[len(asked) :] @ vectors[: len(asked)].T).tolist()
    return found


def _missing(
    plan: ExecutionPlan, gathered: Gathered, said: Sequence[Said], encode: Encode | None
) -> tuple[str, ...]:
    needs = needs_of(plan)
    if len(needs) < 2:
        return ()
    alike = _similar(needs, [each.text for each in said], encode)
    nearest = [max(column) for column in zip(*alike, strict=True)] or [0.0] * len(needs)
    whole = "\n".join(f"{each.place}\n{each.text}" for each in said)
    return tuple(
        need
        for need, near in zip(needs, nearest, strict=True)
        if not holds_name(need, whole)
        and near < _PART_COVERED
        and term_coverage(whole, need, gathered.term_idf) < _PART_COVERED
    )


def _by_kind(plan: ExecutionPlan, gathered: Gathered, said: Sequence[Said]) -> float:
    """What an answer is worth at most by its kind: one that is about the question counts fully."""
    kind = wanted_kind(plan)
    fitting = [each for each in said if is_of_kind(each.text, kind, is_code=each.is_code)]
    if not fitting:
        # A value that nothing calls the default may be another one.
        is_value = kind == "default" and any(is_of_kind(each.text, "value") for each in said)
        return _BESIDE if is_value else _IN_PART
    if kind not in ("default", "list", "value"):
        return 1.0
    asked = {plan.revised_query: gathered.term_idf, **gathered.wordings}
    best = max(_shared([f"{each.place}\n{each.text}"], asked) for each in fitting)
    return 1.0 if best >= _KIND_COVERED else _BESIDE


def _by_name(plan: ExecutionPlan, said: Sequence[Said]) -> float:
    names = names_of(plan.revised_query)
    whole = "\n".join(f"{each.place}\n{each.text}" for each in said)
    found = [holds_name(name, whole) for name in names]
    return 1.0 if any(found) or not found else OF_ANOTHER


def _by_shared_word(plan: ExecutionPlan, gathered: Gathered, said: Sequence[Said]) -> float:
    """What an answer is worth at most by the word that its subject has in every wording.

    Wordings say the same in other words. What all of them and the question say in one word has no
    other, and the one of these that the corpus says least often names the subject.
    """
    if len(gathered.wordings) < _LEAST_WORDINGS:
        return 1.0
    shared = set(analyze(plan.revised_query)).intersection(*map(analyze, gathered.wordings))
    if not shared:
        return 1.0
    subject = max(sorted(shared), key=lambda term: gathered.term_idf.get(term, 0.0))
    whole = analyze("\n".join(f"{each.place}\n{each.text}" for each in said))
    return 1.0 if subject in whole else OF_ANOTHER
