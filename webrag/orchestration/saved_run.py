"""A run's state in a form that a workflow context can keep as JSON; it changes nothing in it."""

import time
from dataclasses import replace
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, model_serializer, model_validator

from webrag.orchestration.run_state import RunClock, RunState

__all__ = ["SavedRun"]

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
