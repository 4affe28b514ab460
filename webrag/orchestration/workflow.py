"""The research loop as a LlamaIndex workflow, which streams what it does and can be cancelled."""

import asyncio
from typing import Any
from weakref import ref

from typing_extensions import override
from workflows import Context, Workflow, step
from workflows.events import StartEvent, StopEvent
from workflows.handler import WorkflowHandler
from workflows.plugins.basic import BasicRuntime, InternalAsyncioAdapter
from workflows.runtime.types.named_task import NamedTask, PendingStart
from workflows.runtime.types.plugin import WaitForNextTaskResult

from webrag.concurrency import ended, settled
from webrag.errors import InputError
from webrag.orchestration.engine import research
from webrag.orchestration.events import DecisionEvent, ProgressEvent, RunStarted
from webrag.orchestration.models import ExpansionDecision
from webrag.orchestration.state import RunState
from webrag.orchestration.steps.research import RunComponents
from webrag.question import Question, check_question


class _WholeCancellation(InternalAsyncioAdapter):
    """Cancels the steps that begin while the run is cancelled.

    llama-index-workflows 2.26 forgets these: whoever awaits a handler and is cancelled cancels the
    run in the middle of this wait, and the step that has just begun would go on for ever.
    """

    async def wait_for_next_task(
        self,
        running: list[NamedTask],
        pending: list[PendingStart],
        timeout: float | None = None,
    ) -> WaitForNextTaskResult:
        before = asyncio.all_tasks()
        coroutines = {each.coro for each in pending}
        try:
            return await super().wait_for_next_task(running, pending, timeout)
        except asyncio.CancelledError:
            begun = asyncio.all_tasks() - before
            await ended([task for task in begun if task.get_coro() in coroutines])
            raise


class _Runtime(BasicRuntime):
    def get_internal_adapter(self, workflow: Workflow) -> InternalAsyncioAdapter:
        made = super().get_internal_adapter(workflow)
        assert isinstance(made, InternalAsyncioAdapter)
        return _WholeCancellation(made._queues)


class WebRAGWorkflow(Workflow):
    """The research loop as a step that other workflows can contain.

    Start it with `run(question=Question.of(...))`; it streams `ProgressEvent` and `DecisionEvent`
    and results in an `OrchestrationResult`. One instance serves any number of concurrent runs.
    Errors of steps reach the caller as they were raised. A run ends early by
    `await handler.cancel_run()`, and when the task that began it is cancelled, as the step of
    another workflow is that is given up.

    Args:
        components: What runs work with, such as `WebRAG.components()`.
        timeout: Seconds after which a run fails; None for none.
    """

    def __init__(self, components: RunComponents, *, timeout: float | None = None) -> None:
        super().__init__(timeout=timeout, runtime=_Runtime())
        self._components = components
        self._endings: set[asyncio.Task[None]] = set()

    @override
    def run(
        self, ctx: Context | None = None, start_event: StartEvent | None = None, **kwargs: Any
    ) -> WorkflowHandler:
        """Begin a run in the background.

        Args:
            ctx: LlamaIndex's.
            start_event: A `RunStarted`; or give its fields by name, such as `question`.
            kwargs: Fields of `RunStarted`.

        Raises:
            InputError: The question is missing, empty or too long.
        """
        begun = start_event
        if not isinstance(begun, RunStarted):
            if not isinstance(kwargs.get("question"), Question):
                raise InputError("There is no question: run(question=Question.of(...)).")
            begun = RunStarted(**kwargs)
        check_question(begun.question.text)
        handler = super().run(ctx, begun)
        self._end_with_beginner(handler)
        return handler

    def _end_with_beginner(self, handler: WorkflowHandler) -> None:
        handled = ref(handler)

        def end(beginner: asyncio.Task[Any]) -> None:
            given_up = handled()
            if given_up is not None and beginner.cancelled() and not given_up.is_done():
                ending = beginner.get_loop().create_task(given_up.cancel_run())
                self._endings.add(ending)
                ending.add_done_callback(self._endings.discard)

        beginner = asyncio.current_task()
        assert beginner is not None
        beginner.add_done_callback(end)

    async def settle(self) -> None:
        """Wait for the end of runs that were given up."""
        await settled(tuple(self._endings))

    @step
    async def research(self, ctx: Context, ev: RunStarted) -> StopEvent:
        """Answer the question."""
        state = RunState.begin(ev.question, self._components.config)

        def report(
            phase: str, detail: str, iteration: int | None = None, total: int | None = None
        ) -> None:
            told = ProgressEvent(phase=phase, detail=detail, iteration=iteration, total=total)
            ctx.write_event_to_stream(told)

        def on_decision(decision: ExpansionDecision) -> None:
            ctx.write_event_to_stream(DecisionEvent(decision=decision, iteration=state.iteration))

        return StopEvent(result=await research(self._components, state, report, on_decision))
