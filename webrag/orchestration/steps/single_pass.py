"""A run without rounds: the steps of the workflow one after another, and none twice.

The first rule of the decision table ends such a run after its first judgement, so it needs no
loop, whose imports take a quarter of a second.
"""

from webrag.concurrency import all_of
from webrag.orchestration.models import OrchestrationResult
from webrag.orchestration.state import RunState
from webrag.orchestration.steps.judgement import judge
from webrag.orchestration.steps.research import Report, ResearchRun, RunComponents
from webrag.orchestration.steps.result import build_result
from webrag.retrieval.models import RetrievalResult


async def run_once(
    components: RunComponents, state: RunState, report: Report
) -> OrchestrationResult:
    """The result that the workflow would give.

    Args:
        components: What the run works with.
        state: Of a question that no rounds are allowed for; changed.
        report: Told what is being done.
    """
    assert not state.rounds, "rounds need the workflow"
    run = ResearchRun(components, state)
    await run.prepare(report)
    await run.analyse(report)
    run.announce_search(report)
    with state.clock.timed("retrieval_ms"):
        found = await _retrieved(run)
    await run.rank_found(found, report)
    await judge(run)
    return await build_result(run, report)


async def _retrieved(run: ResearchRun) -> list[tuple[str, RetrievalResult | None, str]]:
    async def part(query: str) -> tuple[str, RetrievalResult | None, str]:
        return query, *await run.retrieve(query)

    return await all_of(part(query) for query in run.state.queries)
