"""The order of a run's steps as a LlamaIndex workflow; the steps' work is in `research`."""

import time

from workflows import Context, Workflow, step
from workflows.events import StopEvent

from webrag.orchestration.actions import act
from webrag.orchestration.events import (
    AssembleWanted,
    DecisionEvent,
    ExpansionWanted,
    JudgementWanted,
    Prepared,
    ProgressEvent,
    RunStarted,
    SearchWanted,
    SubQueryRetrieved,
    SubQueryWanted,
)
from webrag.orchestration.judgement import judge
from webrag.orchestration.research import Report, ResearchRun
from webrag.orchestration.run_result import build_result

__all__ = ["WebRAGWorkflow"]

_RUN = "run"
_FAN_OUT = "fan_out"
_SEARCH_BEGUN = "search_begun"
_PARALLEL_SEARCHES = 4


class WebRAGWorkflow(Workflow):
    """prepare, analyse, retrieve each part, rank, judge, and expand or assemble.

    Start it with `run(run=ResearchRun(...))`; it streams `ProgressEvent` and `DecisionEvent` and
    results in an `OrchestrationResult`. One instance serves any number of concurrent runs. Errors
    of steps reach the caller as they were raised. Cancelling the task that awaits the handler
    does not cancel the run: call `handler.cancel_run()`.
    """

    @step
    async def prepare(self, ctx: Context, ev: RunStarted) -> Prepared:
        """Get the named pages."""
        run: ResearchRun = ev.run
        await ctx.store.set(_RUN, run)
        await run.prepare(_reporter(ctx, run))
        return Prepared()

    @step
    async def analyse(self, ctx: Context, _ev: Prepared) -> SearchWanted:
        """Find out what the question asks for."""
        run = await _run(ctx)
        await run.analyse(_reporter(ctx, run))
        return SearchWanted()

    @step
    async def search(self, ctx: Context, _ev: SearchWanted) -> SubQueryWanted | None:
        """Send every part of the question to `retrieve`."""
        run = await _run(ctx)
        queries = run.state.queries
        await ctx.store.set(_FAN_OUT, len(queries))
        await ctx.store.set(_SEARCH_BEGUN, time.monotonic())
        _report_search(ctx, run)
        for position, query in enumerate(queries):
            ctx.send_event(SubQueryWanted(position=position, sub_query=query))
        return None

    @step(num_workers=_PARALLEL_SEARCHES)
    async def retrieve(self, ctx: Context, ev: SubQueryWanted) -> SubQueryRetrieved:
        """Find candidates for one part."""
        run = await _run(ctx)
        result = await run.retrieve(ev.sub_query)
        return SubQueryRetrieved(position=ev.position, sub_query=ev.sub_query, result=result)

    @step
    async def rank(self, ctx: Context, ev: SubQueryRetrieved) -> JudgementWanted | None:
        """Wait for every part, then rank and merge them."""
        count: int = await ctx.store.get(_FAN_OUT)
        parts = ctx.collect_events(ev, [SubQueryRetrieved] * count)
        if parts is None:
            return None
        run = await _run(ctx)
        run.state.clock.add("retrieval_ms", await ctx.store.get(_SEARCH_BEGUN))
        ordered = sorted(parts, key=lambda part: part.position)
        found = sum(len(part.result.chunks) for part in ordered)
        _reporter(ctx, run)("reranking", f"Reranking {found} chunks...")
        await run.rank([(part.sub_query, part.result) for part in ordered])
        return JudgementWanted()

    @step
    async def judge(self, ctx: Context, _ev: JudgementWanted) -> ExpansionWanted | AssembleWanted:
        """Decide whether the evidence is enough."""
        run = await _run(ctx)
        decision = await judge(run)
        ctx.write_event_to_stream(DecisionEvent(decision=decision, iteration=run.state.iteration))
        return AssembleWanted() if decision.action == "stop" else ExpansionWanted(decision=decision)

    @step
    async def expand(self, ctx: Context, ev: ExpansionWanted) -> SearchWanted | JudgementWanted:
        """Follow links, rephrase or retrieve more; when there was nothing to do, judge again."""
        run = await _run(ctx)
        acted = await act(run, ev.decision, _reporter(ctx, run, in_loop=True))
        return SearchWanted() if acted else JudgementWanted()

    @step
    async def assemble(self, ctx: Context, _ev: AssembleWanted) -> StopEvent:
        """Put the result together."""
        run = await _run(ctx)
        return StopEvent(result=await build_result(run, _reporter(ctx, run)))


async def _run(ctx: Context) -> ResearchRun:
    run: ResearchRun = await ctx.store.get(_RUN)
    return run


def _reporter(ctx: Context, run: ResearchRun, *, in_loop: bool = False) -> Report:
    total = run.state.request.max_iterations if in_loop else None
    iteration = run.state.iteration + 1 if in_loop else None

    def report(phase: str, detail: str) -> None:
        ctx.write_event_to_stream(
            ProgressEvent(phase=phase, detail=detail, iteration=iteration, total=total)
        )

    return report


def _report_search(ctx: Context, run: ResearchRun) -> None:
    urls = run.state.searched_urls
    where = "the whole corpus" if urls is None else f"{len(urls)} documents"
    _reporter(ctx, run)("retrieval", f"Searching {where}...")
