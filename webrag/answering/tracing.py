"""Runs the steps of an answer inside spans when somebody listens; it exports nothing itself."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar, cast

from llama_index_instrumentation import get_dispatcher

__all__ = ["StepTracer", "Tracer", "traced_step"]

T = TypeVar("T")

_dispatcher = get_dispatcher(__name__)


class StepTracer(Protocol):
    """Runs a step inside a span of its own, under the span of the step around it."""

    async def run(
        self, step: str, work: Callable[[], Awaitable[Any]], inputs: Mapping[str, Any]
    ) -> Any:
        """What the work returns; what it raises is raised."""


class Tracer:
    """Gives every step a span of LlamaIndex's instrumentation, and one of a step tracer if given.

    Args:
        step_tracer: For example LangSmith's; None for none.
    """

    def __init__(self, step_tracer: StepTracer | None = None) -> None:
        self._step_tracer = step_tracer

    async def step(
        self, step: str, work: Callable[[], Awaitable[T]], inputs: Mapping[str, Any] | None = None
    ) -> T:
        """Run a step.

        Args:
            step: Name of the span.
            work: The step.
            inputs: What a step tracer may record.
        """
        tracer = self._step_tracer
        if tracer is None:
            return cast(T, await traced_step(step, work))

        async def observed() -> T:
            return cast(T, await traced_step(step, work))

        return cast(T, await tracer.run(step, observed, inputs or {}))


@_dispatcher.span
async def traced_step(step: str, work: Callable[[], Awaitable[Any]]) -> Any:
    """A step as LlamaIndex's instrumentation sees it; handlers read its name from `step`."""
    del step
    return await work()
