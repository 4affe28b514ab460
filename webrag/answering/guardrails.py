"""Stops questions, evidence and answers that may not go on; recognises text that poses as orders.

Known are orders to a model, and claims to speak for its system, in eleven languages.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, Protocol, get_args

from webrag.answering.models import AnswerPart, Evidence, UnquotableSpan
from webrag.argument_checks import shown_value
from webrag.errors import GuardrailsViolationError, InputError
from webrag.ingestion.characters import bare
from webrag.pattern_file import PatternFile
from webrag.question import MAX_QUESTION_CHARS
from webrag.retrieval.markup import read_blocks

_SENTENCE: Final = re.compile(r"[^.!?\n\u3002\uff01\uff1f]+[.!?\n\u3002\uff01\uff1f]?")


def _compiled(*patterns: str) -> re.Pattern[str]:
    # Written as their text is read, and not case-folded: `\\W` is not `\\w`.
    return re.compile(bare("|".join(patterns)), re.MULTILINE)


_FILE: Final = PatternFile(__package__, "injection.ini")
_PAIRS: Final = tuple(
    (_compiled(of), _compiled(order))
    for of, order in (_FILE.texts(name) for name in _FILE.sections if name.startswith("pair: "))
)
_ALONE: Final = _compiled(*_FILE.texts("alone"))
_LATIN_PATTERNS: Final = _compiled(*_FILE.texts("latin"))
_BY_SCRIPT: Final = tuple(
    (re.compile(letters), _compiled(*patterns))
    for letters, *patterns in (
        _FILE.texts(name) for name in _FILE.sections if name.startswith("script: ")
    )
)
_INSTRUCTIONS: Final = re.compile(
    "|".join(_FILE.texts("instructions")), re.IGNORECASE | re.MULTILINE
)
_SECRETS: Final = re.compile("|".join(_FILE.texts("secrets")))
_LONGEST: Final = 2_000  # characters of a sentence that are read at once


def _sentences(plain: str) -> Iterable[str]:
    for match in _SENTENCE.finditer(plain):
        sentence = match[0].strip()
        yield from (sentence[at : at + _LONGEST] for at in range(0, len(sentence), _LONGEST))


def _is_order(sentence: str) -> bool:
    if _ALONE.search(sentence):
        return True
    return any(one.search(sentence) and other.search(sentence) for one, other in _PAIRS)


# Letters of other alphabets that look like Latin ones; mapped within words that hold both.
_LOOKALIKES: Final = str.maketrans(
    "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443\u04bb\u0501\u051b\u03b1\u03b5"
    "\u03b9\u03bf\u03c1\u03c5\u03bd\u03ba\u03c4\u043c\u043a\u0442\u0432\u043d\u0131\u0261",
    "aceijopsxyhdqaeiopuvktmktbhig",
)
_LEET: Final = str.maketrans("013457@$!|", "oieastasil")
_LEET_WORD: Final = re.compile(r"[a-z013457@$!|]{4,40}+")
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN: Final = re.compile(r"[a-z]")
_OTHER_ALPHABET: Final = re.compile("[\u0370-\u052f\u0131\u0261]")
# "i g n o r e" and "i-g-n-o-r-e"; longer ones go on with the next match.
_SPELT_OUT: Final = re.compile(r"(?<![^\W_])(?:[a-z][ .*_\-]){3,80}+[a-z](?![^\W_])")
_SEPARATORS: Final = re.compile(r"[ .*_\-]+")
_SQUEEZED: Final = re.compile(
    r"(?:ignore|disregard|forget|override|bypass)(?:all|any|the|your|my|these|of|every){0,3}"
    r"(?:previous|prior|above|earlier|preceding)(?:system)?"
    r"(?:instruction|prompt|rule|direction|guideline|message)"
    r"|reveal(?:your|the)(?:system|hidden|initial)(?:prompt|instruction)"
)
# Swapped letters inside such a word leave it as readable as before.
_KEY_WORDS: Final = (
    "ignore", "disregard", "forget", "previous", "instructions", "instruction", "reveal", "system",
    "prompt", "assistant", "override", "earlier", "everything",
)  # fmt: skip
_KNOWN_WORDS: Final = frozenset(_KEY_WORDS)


def _shape(word: str) -> tuple[str, str, str]:
    return word[0], word[-1], "".join(sorted(word))


_BY_SHAPE: Final = {_shape(word): word for word in _KEY_WORDS}


_BLANKS: Final = re.compile(r"[^\S\n]+|(?<=\w)\n(?=\w)")


@lru_cache(maxsize=512)
def addresses_reader(text: str) -> bool:
    """Tell whether a text gives orders to a model that reads it, or claims to speak for its system.

    Disguises of letters make no difference, and what tells a person what to do, as manuals do, is
    no such text; known are the eleven languages of the patterns. Linear in the length of the text.
    """
    plain = _BLANKS.sub(" ", bare(text).casefold().replace("\u2019", "'"))
    if any(script.search(plain) and found.search(plain) for script, found in _BY_SCRIPT):
        return True
    latin = _WORD.sub(_one_alphabet, plain) if _OTHER_ALPHABET.search(plain) else plain
    if _LATIN_PATTERNS.search(latin) or any(map(_is_order, _sentences(latin))):
        return True
    respelt = _WORD.sub(_unswapped, _LEET_WORD.sub(_without_digits, latin))
    respelt = _SPELT_OUT.sub(lambda match: _SEPARATORS.sub("", match[0]), respelt)
    if respelt != latin and _LATIN_PATTERNS.search(respelt):
        return True
    return bool(_SQUEEZED.search(re.sub(r"[\W_]+", "", respelt)))


def _one_alphabet(word: re.Match[str]) -> str:
    if not _OTHER_ALPHABET.search(word[0]) or not _LATIN.search(word[0]):
        return word[0]
    return word[0].translate(_LOOKALIKES)


def _without_digits(word: re.Match[str]) -> str:
    return word[0].translate(_LEET) if _LATIN.search(word[0]) else word[0]


def _unswapped(word: re.Match[str]) -> str:
    letters = word[0]
    if letters in _KNOWN_WORDS or len(letters) < 6:
        return letters
    return _BY_SHAPE.get(_shape(letters), letters)


# What documentation prints in the place of a key.
_PLACEHOLDER: Final = re.compile(
    r"example|your[-_]|xxxx|\*{3}|\.{3}|<[^<>]+>|1234567|abcdef|placeholder|dummy|changeme",
    re.IGNORECASE,
)


def is_instruction(text: str) -> bool:
    """Tell whether a text addresses a model that reads it."""
    return bool(_INSTRUCTIONS.search(text)) or addresses_reader(text)


def holds_secret(text: str) -> bool:
    """Tell whether a text has what looks like a real credential; manuals' placeholders do not."""
    forms = dict.fromkeys((text, bare(text)))  # full-width letters are those of a key, too
    found = (match[0] for form in forms for match in _SECRETS.finditer(form))
    return any(not _PLACEHOLDER.search(each) for each in found)


def unquotable_spans(text: str, offset: int) -> tuple[UnquotableSpan, ...]:
    """Find the blocks of a passage that may not be quoted, by offsets in its page.

    A whole block is unquotable, as what follows an instruction usually goes on with it.
    """
    if not is_instruction(text) and not holds_secret(text):
        return ()
    return tuple(_unquotable(text, offset))


def _unquotable(text: str, offset: int) -> Iterator[UnquotableSpan]:
    for block in read_blocks(text):
        # With the marker of a heading: "### System:" opens a prompt.
        part = text[text.rfind("\n", 0, block.start) + 1 : block.end]
        if is_instruction(part):
            yield UnquotableSpan(offset + block.start, offset + block.end, "instruction")
        elif holds_secret(part):
            yield UnquotableSpan(offset + block.start, offset + block.end, "secret")


Stage = Literal["input", "retrieval", "output"]
_STAGES: Final[tuple[Stage, ...]] = get_args(Stage)


@dataclass(frozen=True, slots=True)
class Checked:
    """The texts that a guardrail looks at.

    Evidence is set from the stage `retrieval` on, parts at the stage `output`; other texts the user
    would see are such as notes.
    """

    query: str
    evidence: tuple[Evidence, ...] = ()
    parts: tuple[AnswerPart, ...] = ()
    texts: tuple[str, ...] = ()


class Guardrail(Protocol):
    """One check at one stage."""

    @property
    def stage(self) -> Stage:
        """The stage it is asked at."""

    def check(self, checked: Checked) -> None:
        """Do nothing, or stop the run.

        Raises:
            GuardrailsViolationError: The run ends with the error's safe reply.
        """


def check_stage(stage: Stage, checked: Checked, guardrails: Sequence[Guardrail]) -> None:
    """Ask every guardrail of a stage, in order; a violation names this stage, whatever it said."""
    for guardrail in guardrails:
        if guardrail.stage != stage:
            continue
        try:
            guardrail.check(checked)
        except GuardrailsViolationError as error:
            if error.stage == stage:
                raise
            raise GuardrailsViolationError(stage, error.reason, error.safe_reply) from error


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A default guardrail: its stage, the case it refuses, why, and the reply to the user.

    The numbers of characters of the question and of those allowed fit into both texts.
    """

    stage: Stage
    is_met: Callable[[Checked], bool]
    reason: str
    safe_reply: str

    def check(self, checked: Checked) -> None:
        """Refuse the case."""
        if self.is_met(checked):
            sizes = {"found": len(checked.query), "allowed": MAX_QUESTION_CHARS}
            reason, reply = (text.format(**sizes) for text in (self.reason, self.safe_reply))
            raise GuardrailsViolationError(self.stage, reason, reply)


def _shows_secret(checked: Checked) -> bool:
    return any(map(holds_secret, (*(part.text for part in checked.parts), *checked.texts)))


def _has_nothing_quotable(checked: Checked) -> bool:
    return bool(checked.evidence) and not any(map(_has_quotable_text, checked.evidence))


def _has_quotable_text(evidence: Evidence) -> bool:
    text = evidence.quotable_text(evidence.chunk.char_start, evidence.chunk.char_end)
    # Headings alone say nothing that could be quoted.
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return any(char.isalnum() for line in lines for char in line)


DEFAULT_GUARDRAILS: Final[tuple[Guardrail, ...]] = (
    _Refusal(
        "input",
        lambda checked: not checked.query.strip(),
        "the question is empty",
        "Please ask a question.",
    ),
    _Refusal(
        "input",
        lambda checked: len(checked.query) > MAX_QUESTION_CHARS,
        "the question has {found:,} characters",
        "Please ask in at most {allowed:,} characters.",
    ),
    _Refusal(
        "retrieval",
        _has_nothing_quotable,
        "every passage found is addressed to a model or looks like credentials",
        "The passages found cannot be quoted: they hold credentials, or instructions to a"
        " language model instead of information.",
    ),
    _Refusal(
        "output",
        _shows_secret,
        "the answer holds what looks like a credential",
        "The answer is withheld because it would show what looks like a credential.",
    ),
    # Other writers than WebRAG's own may hand in such a sentence.
    _Refusal(
        "output",
        lambda checked: not all(part.citations for part in checked.parts),
        "a sentence of the answer has no citation",
        "The answer is withheld because part of it is not supported by a source.",
    ),
)


def with_defaults(guardrails: Sequence[Guardrail]) -> tuple[Guardrail, ...]:
    """Give the default guardrails and then a caller's, none of which is for an unknown stage."""
    for guardrail in guardrails:
        if guardrail.stage not in _STAGES:
            raise InputError(
                f"The guardrail {type(guardrail).__name__} is for the stage"
                f" {shown_value(guardrail.stage)}; there are {', '.join(_STAGES)}."
            )
    return (*DEFAULT_GUARDRAILS, *guardrails)
