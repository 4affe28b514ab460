"""Stops questions, evidence and answers that may not go on; checks can be added."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, get_args

from webrag.answering.evidence import Evidence
from webrag.answering.injection import holds_secret
from webrag.answering.models import AnswerPart
from webrag.argument_checks import shown_value
from webrag.errors import GuardrailsViolationError, InputError
from webrag.question import MAX_QUESTION_CHARS

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
