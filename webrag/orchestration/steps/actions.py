"""Carries out what the evaluator decided for one run; it does not judge the effect."""

import time
from dataclasses import replace
from functools import partial
from typing import Final

from webrag.ingestion.fetch_context import listening
from webrag.orchestration.confidence import LOW
from webrag.orchestration.links.expander import MAX_LINK_SOURCES, FetchRound
from webrag.orchestration.links.rules import ExpansionOutcome, Frontier, worth_now
from webrag.orchestration.models import ExpansionDecision
from webrag.orchestration.state import PendingStep
from webrag.orchestration.steps.judgement import links_ahead
from webrag.orchestration.steps.research import Report, ResearchRun

# Each wording costs a retrieval and a ranking in every later round.
_MAX_EXTRA_QUERIES: Final = 4
# Of a named page that does not answer, in a fast run.
_LOOKED_THROUGH: Final = 4
LOOK_S: Final = 3.0


async def act(run: ResearchRun, decision: ExpansionDecision) -> bool:
    """Carry a decision that is not to stop out; False when that brought nothing new to search.

    The run was judged before. Afterwards stored pages inside the scope are searched as well.
    """
    state = run.state
    assert state.signals is not None, "nothing is decided before it is judged"
    chunk_ids = frozenset(str(item.chunk.chunk_id) for item in state.merged.chunks)
    pending = PendingStep(decision, state.signals, chunk_ids, begun=time.monotonic())
    report = partial(run.report, iteration=state.iteration + 1, total=state.rounds)
    state.tried.add(decision.action)
    with state.clock.timed("expansion_ms"):
        if decision.action == "expand_intent":
            await _rephrase(run, pending, report)
            if not pending.new_queries:
                state.closed.add("expand_intent")
                return False
        elif decision.action == "expand_recall":
            report("expansion", "Retrieving more of what is indexed...")
            state.wants_recall = True
        elif state.frontier and state.frontier.candidates and not state.budget.is_spent:
            await _follow_links(run, pending, state.frontier, report)
        pending.pages_joined = await widen(run)
        if decision.action == "expand_breadth" and not (
            pending.pages_joined or pending.outcome.tried
        ):
            state.closed.add("expand_breadth")
            return False
    state.pending, state.frontier = pending, None
    is_wider = decision.action == "expand_recall" or pending.new_queries or pending.pages_joined
    # A model that failed is asked once more by the search, which tells what it is done without.
    return bool(is_wider or pending.outcome.ingested or pending.outcome.stopped_by)


async def _rephrase(run: ResearchRun, pending: PendingStep, report: Report) -> None:
    state = run.state
    assert state.analysis is not None, "the question is analysed before anything is decided"
    report("expansion", "Trying other wordings of the question...")
    offered, degraded = await run.components.analyzer.alternatives(
        state.question,
        state.analysis,
        tried=(*state.queries, *state.question.wordings),
        reason=pending.decision.reason,
        timeout_s=state.clock.left_s,
    )
    state.note_degraded(degraded)
    pending.new_queries = offered[: _MAX_EXTRA_QUERIES - len(state.extra_queries)]
    state.extra_queries += pending.new_queries
    if not pending.new_queries:
        given = "besides those given " if state.question.wordings else ""
        report("expansion", f"No other wordings of the question {given}are known.")


async def _follow_links(
    run: ResearchRun, pending: PendingStep, frontier: Frontier, report: Report
) -> None:
    state, config = run.state, run.components.config.expansion
    rounds_left = state.rounds - state.iteration
    size = state.budget.round_size(
        config.max_candidates_per_iteration,
        is_first="expand_breadth" not in {step.decision for step in state.steps},
        rounds_left=rounds_left,
    )
    scores = [candidate.score for candidate in frontier.candidates]
    worth = worth_now(scores, size, rounds_left=rounds_left)
    size = min(size, worth)
    frontier = replace(frontier, candidates=frontier.candidates[:worth])
    report("expansion", f"Expanding to linked pages (up to {size})...")
    with listening(state.note_degraded):
        outcome = pending.outcome = await _follow(
            run, frontier, size, time.monotonic() + config.iteration_timeout_s, report
        )
    if outcome.rate_limited:
        state.warn("A limit of requests was reached, so fewer pages were fetched in that round.")
    if outcome.stopped_by:
        state.note_degraded(outcome.stopped_by)
        state.closed.add("expand_breadth")
    if outcome.timed_out and not state.clock.is_over:
        state.warn(f"Some pages did not arrive within {config.iteration_timeout_s:g} s.")


async def _follow(
    run: ResearchRun, frontier: Frontier, size: int, deadline: float, report: Report
) -> ExpansionOutcome:
    state = run.state
    fetching = FetchRound(
        target=size,
        budget=state.budget,
        scope=state.scope,
        known=frozenset(state.pages),
        failed_before=dict(state.failure_kinds),
        deadline=min(deadline, state.clock.work_until),
        on_fetch=lambda url: report("expansion", f"Scraping {url}..."),
    )
    outcome = await fetching.fill(run.components.acquirer, frontier.candidates)
    outcome.candidates_scored = frontier.scored
    state.take(outcome)
    return outcome


async def look_through(run: ResearchRun, until: float, *, lists_links: bool) -> bool:
    """Follow the best links of named pages that do not answer, in a fast run judged before.

    Where these are not there for their links, only those that more likely than not lead to the
    answer, and the site is asked for no map of its own. Tells whether pages were obtained, which
    the question is to be searched in.
    """
    state, begun = run.state, time.monotonic()
    decision = ExpansionDecision(
        action="expand_breadth",
        reason="The named page does not answer: its best links are looked through.",
        confidence="medium",
        rule="contents_page",
        rule_number=0,
    )
    assert state.signals is not None, "nothing is looked through before it is judged"
    pending = PendingStep(decision, state.signals, frozenset(), begun=begun)
    with state.clock.timed("expansion_ms"), listening(state.note_degraded):
        if lists_links:
            frontier = await links_ahead(run, discovery_s=(until - begun) / 2)
        else:
            frontier = (await links_ahead(run)).reaching(LOW)
        if not frontier.candidates:
            return False
        run.report("expansion", f"Looking through the best {_LOOKED_THROUGH} links of the page...")
        outcome = pending.outcome = await _follow(run, frontier, _LOOKED_THROUGH, until, run.report)
    state.pending = pending if outcome.ingested else None
    return state.pending is not None


async def widen(run: ResearchRun) -> int:
    """Search stored pages inside the scope from now on; how many more there are than before."""
    state, known_before = run.state, run.state.joined_count
    state.is_widened = True
    if state.names_files:
        return 0
    nearest, count = await run.components.corpus.urls_in_scope(
        state.sites_in_scope, limit=MAX_LINK_SOURCES
    )
    state.joined = tuple(url for url in nearest if url not in state.pages)
    state.joined_count = max(count - len(state.pages), 0)
    return max(state.joined_count - known_before, 0)
