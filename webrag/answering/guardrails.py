"""Stops questions, evidence and answers that may not go on; checks can be added."""

from collections.abc import Sequence
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
class InputGuard:
    """Refuses questions that are empty or too long, or hold a character no text may."""

    max_chars: int = MAX_QUESTION_CHARS
    stage: Literal["input"] = "input"

    def check(self, checked: Checked) -> None:
        """Check the question."""
        if not checked.query.strip():
            raise GuardrailsViolationError(
                "input", "the question is empty", "Please ask a question."
            )
        if len(checked.query) > self.max_chars:
            raise GuardrailsViolationError(
                "input",
                f"the question has {len(checked.query):,} characters",
                f"Please ask in at most {self.max_chars:,} characters.",
            )


@dataclass(frozen=True, slots=True)
class EvidenceGuard:
    """Stops when all that was found addresses a model or looks like credentials."""

    stage: Literal["retrieval"] = "retrieval"

    def check(self, checked: Checked) -> None:
        """Check the passages: one quotable block is enough to go on."""
        if checked.evidence and not any(map(_has_quotable_text, checked.evidence)):
            raise GuardrailsViolationError(
                "retrieval",
                "every passage found is addressed to a model or looks like credentials",
                "The passages found cannot be quoted: they hold credentials, or instructions to a"
                " language model instead of information.",
            )


@dataclass(frozen=True, slots=True)
class SecretGuard:
    """Stops answers that hold what looks like an API key, a token or a private key."""

    stage: Literal["output"] = "output"

    def check(self, checked: Checked) -> None:
        """Check everything the user would see."""
        shown = [*(part.text for part in checked.parts), *checked.texts]
        if any(map(holds_secret, shown)):
            raise GuardrailsViolationError(
                "output",
                "the answer holds what looks like a credential",
                "The answer is withheld because it would show what looks like a credential.",
            )


@dataclass(frozen=True, slots=True)
class SupportGuard:
    """Stops answers with a sentence that cites nothing; it guards against other writers."""

    stage: Literal["output"] = "output"

    def check(self, checked: Checked) -> None:
        """Check that every sentence has a citation."""
        if any(not part.citations for part in checked.parts):
            raise GuardrailsViolationError(
                "output",
                "a sentence of the answer has no citation",
                "The answer is withheld because part of it is not supported by a source.",
            )


DEFAULT_GUARDRAILS: Final[tuple[Guardrail, ...]] = (
    InputGuard(),
    EvidenceGuard(),
    SecretGuard(),
    SupportGuard(),
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


def _has_quotable_text(evidence: Evidence) -> bool:
    text = evidence.quotable_text(evidence.chunk.char_start, evidence.chunk.char_end)
    # Headings alone say nothing that could be quoted.
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return any(char.isalnum() for line in lines for char in line)
