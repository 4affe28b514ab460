"""What is known of one run of the answer manager, and how it ends; it takes no step."""

import time
from dataclasses import dataclass, field
from typing import Any, Literal

from webrag.answering.evidence import Gathered
from webrag.answering.models import (
    AnswerCitation,
    AnswerEvent,
    AnswerPart,
    AnswerRequest,
    EventListener,
    ExecutionPlan,
    FinalReason,
    ManagerResult,
    ManagerState,
)
from webrag.answering.outcome import incoherent_reply, part_text
from webrag.errors import GuardrailsViolationError

__all__ = ["Run", "incoherent_result", "stopped_result"]


@dataclass(slots=True)
class Run:
    """What is known of one run so far."""

    request: AnswerRequest
    listener: EventListener | None
    started: float = field(default_factory=time.monotonic)
    states: list[ManagerState] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    plan: ExecutionPlan | None = None
    gathered: Gathered | None = None

    def enter(self, state: ManagerState) -> None:
        """Go into a state."""
        self.states.append(state)
        self.tell(AnswerEvent(kind="state", detail=state))

    def step(self, name: str) -> None:
        """Say which step begins."""
        self.tell(AnswerEvent(kind="step", detail=name))

    def part(self, part: AnswerPart, citations: tuple[AnswerCitation, ...]) -> None:
        """Say that a sentence was accepted."""
        detail = part_text(part)
        self.tell(AnswerEvent(kind="part", detail=detail, part=part, citations=citations))

    def note(self, *sentences: str | None) -> None:
        """Remember what did not work, each once."""
        self.degraded += [each for each in sentences if each and each not in self.degraded]

    def tell(self, event: AnswerEvent) -> None:
        """Tell the listener."""
        if self.listener is not None:
            self.listener(event)

    def end(
        self,
        state: Literal["success", "fail"],
        *,
        answer: str,
        confidence: float,
        final_reason: FinalReason,
        **details: Any,
    ) -> ManagerResult:
        """Go into a terminal state; the result holds what is known of the run.

        Args:
            state: Terminal state.
            answer: What the user is told.
            confidence: 0 in state `fail`.
            final_reason: Why the run ends.
            details: Further fields of the result.
        """
        self.enter(state)
        return ManagerResult(
            state=state,
            states=tuple(self.states),
            query=self.request.query,
            answer=answer,
            confidence=confidence,
            final_reason=final_reason,
            plan=self.plan,
            retrieval=self.gathered.step if self.gathered else None,
            degraded=tuple(self.degraded),
            total_ms=(time.monotonic() - self.started) * 1000,
            **details,
        )


def incoherent_result(run: Run) -> ManagerResult:
    """The end of a run whose question makes no sense."""
    reason = None if run.plan is None else run.plan.coherence_reason
    return run.end(
        "fail", answer=incoherent_reply(reason), confidence=0.0, final_reason="incoherent_query"
    )


def stopped_result(run: Run, error: GuardrailsViolationError) -> ManagerResult:
    """The end of a run that a guardrail stopped."""
    return run.end(
        "fail",
        answer=error.safe_reply,
        confidence=0.0,
        final_reason=f"guardrail_{error.stage}",  # type: ignore[arg-type]
        guardrail=(error.stage, error.reason),
    )
