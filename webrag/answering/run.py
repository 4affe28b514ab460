"""What is known of one run of the answer manager, and how it fails; it takes no step."""

import time
from dataclasses import dataclass, field

from webrag.answering.evidence import Gathered
from webrag.answering.models import (
    AnswerCitation,
    AnswerEvent,
    AnswerPart,
    AnswerRequest,
    EventListener,
    ExecutionPlan,
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

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the run began."""
        return (time.monotonic() - self.started) * 1000


def incoherent_result(run: Run, plan: ExecutionPlan) -> ManagerResult:
    """The end of a run whose question makes no sense."""
    run.enter("fail")
    return ManagerResult(
        state="fail",
        states=tuple(run.states),
        query=run.request.query,
        answer=incoherent_reply(plan.coherence_reason),
        confidence=0.0,
        final_reason="incoherent_query",
        plan=plan,
        degraded=tuple(run.degraded),
        total_ms=run.elapsed_ms,
    )


def stopped_result(run: Run, error: GuardrailsViolationError) -> ManagerResult:
    """The end of a run that a guardrail stopped."""
    run.enter("fail")
    return ManagerResult(
        state="fail",
        states=tuple(run.states),
        query=run.request.query,
        answer=error.safe_reply,
        confidence=0.0,
        final_reason=f"guardrail_{error.stage}",  # type: ignore[arg-type]
        plan=run.plan,
        retrieval=run.gathered.step if run.gathered else None,
        degraded=tuple(run.degraded),
        guardrail=(error.stage, error.reason),
        total_ms=run.elapsed_ms,
    )
