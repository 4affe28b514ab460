"""Typed events between the steps of a run, and those it streams."""

from typing import Any

from workflows.events import Event, StartEvent

from webrag.orchestration.models import ExpansionDecision
from webrag.question import Question


class RunStarted(StartEvent):
    """Begins a run.

    Attributes:
        question: What is asked, where there is no state yet.
        state: The `RunState` of a question, which the run changes; None begins one.
    """

    question: Question | None = None
    state: Any = None


class SearchWanted(Event):
    """The question, its wordings or the pages to search are new."""


class ExpansionWanted(Event):
    """The evidence is too thin; the decision says what to do."""

    decision: ExpansionDecision


class AssembleWanted(Event):
    """Nothing more is to be done but to put the result together."""


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
