"""What kind of answer an English question wants, and whether a text is of that kind; pure."""

import re
from typing import Final, Literal

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
