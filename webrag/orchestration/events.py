"""Typed events that begin a run, and those it streams."""

from workflows.events import Event, StartEvent

from webrag.orchestration.models import ExpansionDecision
from webrag.question import Question


class RunStarted(StartEvent):
    """Begins a run that answers a question."""

    question: Question


class DecisionEvent(Event):
    """Streamed: what the evaluator decided.

    Attributes:
        iteration: Rounds that brought something so far.
    """

    decision: ExpansionDecision
    iteration: int


class ProgressEvent(Event):
    """Streamed: what is being done.

    Attributes:
        phase: ingestion, analysis, retrieval, reranking, expansion, locality or assembly.
        detail: A sentence for users.
        iteration: Round of expansion, from 1; None outside the loop.
        total: Rounds allowed; None outside the loop.
    """

    phase: str
    detail: str
    iteration: int | None = None
    total: int | None = None
