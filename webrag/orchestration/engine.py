"""The entry point of orchestration: one call, one result; the modules of `steps` do the work."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from webrag.concurrency import all_of, ended
from webrag.errors import DeadlineError, InputError
from webrag.orchestration.confidence import LOW, MEDIUM
from webrag.orchestration.models import (
    ExpansionDecision,
    OrchestrationResult,
    ProgressCallback,
)
from webrag.orchestration.state import RunState
from webrag.orchestration.steps.judgement import decided, is_contents_page, judge
from webrag.orchestration.steps.research import Report, ResearchRun, RunComponents
from webrag.orchestration.steps.result import build_result
from webrag.question import Question, check_question

if TYPE_CHECKING:
    from workflows.handler import WorkflowHandler

    from webrag.orchestration.workflow import WebRAGWorkflow

# Of a fast run; a third found the evidence of one more question in 72, and read 0.6 pages more.
_LOOKS: Final = 2


async def research(
    components: RunComponents,
    state: RunState,
    report: Report,
    on_decision: Callable[[ExpansionDecision], None] = lambda _: None,
) -> OrchestrationResult:
    """Search and judge, and follow links or ask in other words, until the rules say stop."""
    run = ResearchRun(components, state, report)
    await run.prepare()
    await run.analyse()
    decision = await _searched(run)
    on_decision(decision)
    while decision.action != "stop":
        # Whoever follows no link does not wait for what that takes to import.
        from webrag.orchestration.steps.actions import act

        is_more = await act(run, decision)
        decision = await (_searched(run) if is_more else decided(run, state.signals))
        on_decision(decision)
    return await build_result(run)


async def _searched(run: ResearchRun) -> ExpansionDecision:
    """Search and judge; a fast run goes a little beyond named pages that do not answer.

    Where they seem not to hold the answer, or are there for their links, it searches what is stored
    in scope and looks through their best links, of others the likely ones alone.
    """

    async def found() -> ExpansionDecision:
        await run.search()
        return await judge(run)

    decision = await found()
    lists_links = await is_contents_page(run)
    if lists_links or (run.state.may_look_through and run.state.confidence < LOW):
        from webrag.orchestration.steps.actions import LOOK_S, look_through, widen

        decision = await found() if await widen(run) else decision
        until = min(time.monotonic() + LOOK_S, run.state.clock.work_until)
        for _ in range(_LOOKS):
            is_over = run.state.chance >= MEDIUM or time.monotonic() >= until
            if is_over or not await look_through(run, until, lists_links=lists_links):
                break
            decision = await found()
    return decision


_log = logging.getLogger(__name__)


class OrchestratorEngine:
    """Answers questions with cited evidence, fetching and following links as allowed.

    Safe to use from several tasks at once. `aclose` ends what runs and closes no part: whoever
    made the parts does.
    """

    def __init__(self, components: RunComponents) -> None:
        self.components = components
        self._handlers: WeakSet[WorkflowHandler] = WeakSet()
        self._runs: set[asyncio.Task[OrchestrationResult]] = set()

    @cached_property
    def _workflow(self) -> "WebRAGWorkflow":
        """Made for the first handler: what it is built on takes time to import."""
        from webrag.orchestration.workflow import WebRAGWorkflow

        return WebRAGWorkflow(self.components)

    async def run(
        self, question: Question, *, on_progress: ProgressCallback | None = None
    ) -> OrchestrationResult:
        """Find evidence for a question, starting from the pages it names or in what is stored.

        Cancelling the call cancels everything it started. At the soft deadline, or shortly before
        the hard one, the result is assembled from what is there and marked partial; the corpus
        keeps what was ingested, so that repeating the call goes on from there. Progress is told in
        order, and errors of the listener are logged.

        Raises:
            InputError: The question is empty or too long.
            FetchError: No named page could be obtained; with one URL the error says why.
            ProviderError: The question or every page could not be embedded.
            StorageError: The database failed.
            DeadlineError: Time ran out before there was anything to return.
        """
        check_question(question.text)
        state = RunState.begin(question, self.components.config)
        timeout_s = self.components.config.timeout_s
        run = asyncio.create_task(self._told(state, on_progress))
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)
        caller = asyncio.current_task()
        assert caller is not None
        try:
            async with asyncio.timeout(timeout_s) as limit:
                result = await run
        except asyncio.CancelledError as error:
            if caller.cancelling():
                raise
            raise InputError("WebRAG was closed while it worked on this question.") from error
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise DeadlineError(
                f"Nothing could be returned within {timeout_s:g} s.",
                hint="Ask again: what was stored by then is kept.",
            ) from error
        _log.info(
            "%d chunks, confidence %.2f, %d pages fetched in %.1f s: %s",
            len(result.chunks),
            result.confidence,
            result.total_urls_ingested,
            result.timing.total_ms / 1000,
            result.final_decision.reason,
        )
        return result

    async def _told(
        self, state: RunState, on_progress: ProgressCallback | None
    ) -> OrchestrationResult:
        """The result, while whoever listens is told of each report in order."""
        if on_progress is None:
            return await research(self.components, state, lambda *_, **__: None)
        reports: asyncio.Queue[Callable[[], Awaitable[None]] | None] = asyncio.Queue()

        async def work() -> OrchestrationResult:
            try:
                return await research(
                    self.components,
                    state,
                    # By position: listeners name what they take as they like.
                    lambda phase, detail, iteration=None, total=None: reports.put_nowait(
                        partial(on_progress, phase, detail, iteration, total)
                    ),
                )
            finally:
                reports.put_nowait(None)

        async def tell() -> None:
            while (told := await reports.get()) is not None:
                try:
                    await told()
                # A listener that went away, or has a bug, must not cost the user the result.
                except Exception as error:  # noqa: BLE001
                    _log.warning("Progress could not be reported: %s", error)

        result, _ = await all_of([work(), tell()])
        assert result is not None
        return result

    def start(self, question: Question) -> "WorkflowHandler":
        """Begin a run in the background, for callers that want its events.

        Awaiting the handler gives the `OrchestrationResult`; `stream_events()` gives
        `ProgressEvent` and `DecisionEvent`. The run ends early when the task that began it is
        cancelled, when WebRAG is closed, and by `await handler.cancel_run()`; a hard deadline is
        the caller's business.

        Raises:
            InputError: The question is empty or too long.
        """
        handler = self._workflow.run(question=question)
        self._handlers.add(handler)
        return handler

    async def aclose(self) -> None:
        """End the runs that still go on, before what they work with is closed."""
        await ended(self._runs.copy())
        await all_of(handler.cancel_run() for handler in list(self._handlers))
        if self._handlers:
            await self._workflow.settle()
