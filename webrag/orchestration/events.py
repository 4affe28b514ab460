"""Typed events between the steps of a run, those it streams, and its state as JSON."""

import time
from dataclasses import replace
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, model_serializer, model_validator
from workflows.events import Event, StartEvent

from webrag.orchestration.models import ExpansionDecision
from webrag.orchestration.state import RunClock, RunState
from webrag.retrieval.models import RetrievalResult

_STATE: TypeAdapter[RunState] = TypeAdapter(RunState)


class SavedRun(BaseModel):
    """A run between two steps.

    Times are saved as seconds passed and left: a clock of one process says nothing in another, and
    the time in between does not count.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    state: Any

    @classmethod
    def of(cls, state: RunState) -> Self:
        """Keep a state; it must not be changed afterwards."""
        return cls(state=state)

    @model_serializer
    def _as_json(self) -> dict[str, Any]:
        now, clock = time.monotonic(), self.state.clock
        saved = replace(
            self.state,
            clock=RunClock(clock.started - now, clock.work_until - now, clock.spent_ms),
        )
        return {"state": _STATE.dump_python(saved, mode="json")}

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, value: Any) -> Any:
        if not isinstance(value, dict) or isinstance(value.get("state"), RunState):
            return value
        state, now = _STATE.validate_python(value["state"]), time.monotonic()
        state.clock.started += now
        state.clock.work_until += now
        return {"state": state}


class RunStarted(StartEvent):
    """Begins a run."""

    run: SavedRun


class Prepared(Event):
    """The named pages are in the corpus."""


class SearchWanted(Event):
    """The question, its wordings or the pages to search are new: retrieve everything."""


class SubQueryWanted(Event):
    """Retrieve for one part of the question.

    Attributes:
        position: Of the part among the others.
        begun: When the search began, in seconds of the epoch.
    """

    position: int
    sub_query: str
    begun: float


class SubQueryRetrieved(Event):
    """One part's retrieval; the rest is as in the event that asked for it.

    Attributes:
        result: None when the part could not be embedded.
        failure: Why, a sentence.
    """

    position: int
    sub_query: str
    begun: float
    result: RetrievalResult | None
    failure: str = ""


class JudgementWanted(Event):
    """There is a ranking to judge, or the last action had nothing to work on."""


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


SAVED_TYPES: Final = (
    SavedRun,
    RunStarted,
    Prepared,
    SearchWanted,
    SubQueryWanted,
    SubQueryRetrieved,
    JudgementWanted,
    ExpansionWanted,
    AssembleWanted,
)

"""All that a saved run may hold."""
