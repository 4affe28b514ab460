"""Judges a run's ranking and settles what its last action brought; it carries no action out."""

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from webrag.concurrency import in_background
from webrag.corpus.pages import Corpus
from webrag.lexical.spelling import respelled
from webrag.orchestration.confidence import (
    HIGH,
    LOW,
    MEDIUM,
    below_high,
    in_hundredths,
    is_list_of_links,
    quality,
)
from webrag.orchestration.decision import LoopState, compute_signals, decide
from webrag.orchestration.judge import Judgement, judged
from webrag.orchestration.links.rules import (
    FailureKind,
    Frontier,
    LinkScope,
    failures_in_words,
    silent_sites,
    weakest_followed,
)
from webrag.orchestration.models import (
    Action,
    AnswerUnit,
    EvaluationSignals,
    ExpansionDecision,
    ExpansionStep,
)
from webrag.orchestration.state import GAIN, PendingStep, RunState
from webrag.orchestration.steps.research import ResearchRun
from webrag.retrieval.chunk_search import in_turn
from webrag.retrieval.models import RetrievedChunk

_log = logging.getLogger(__name__)

_MET_QUALITY: Final = 0.65  # of the best passage under a wording
# Those that can make a confidence high.
_PASSAGES_JUDGED: Final = 20
# Of a page that is there for them; the front pages of ten of twelve manuals have more.
_MANY_LINKS: Final = 10
# Pages whose links are scored where they are only named.
_LINKING_PAGES: Final = 5


async def judge(run: ResearchRun) -> ExpansionDecision:
    """Compute the signals and the confidence of the ranking, then decide as `decided` does."""
    state = run.state
    before = state.signals
    state.signals = compute_signals(
        state.merged.chunks,
        redundant=state.merged.redundant,
        profile=run.profile,
        config=run.components.config,
    )
    judgements = await in_background(_judgements, run, frozenset[UUID]())
    found = _weakest(judgements)
    follows_links = bool(state.rounds) or state.may_look_through
    if found >= (MEDIUM if follows_links else HIGH) and state.question.as_of is None:
        # Links of earlier texts are not kept.
        chunks = [item.chunk for item in state.merged.chunks[:_PASSAGES_JUDGED]]
        if lists := await matched_lists(run.components.corpus, chunks):
            judgements = await in_background(_judgements, run, lists)
    least = min(found, _weakest(judgements))
    chance = min(least, _confidence_of_wordings(run), _chance_of_all(judgements))
    state.confidence = in_hundredths(below_high(found) if found >= HIGH > least else found)
    state.part_confidence = {}
    if len(judgements) > 1:
        by_part = {part: in_hundredths(each.confidence) for part, each in judgements.items()}
        state.part_confidence = dict(sorted(by_part.items(), key=lambda pair: pair[1]))
    state.units = _in_turn([each.units for each in judgements.values()])
    state.weigh(chance, state.pending.outcome.ingested if state.pending else ())
    return await decided(run, before)


async def decided(run: ResearchRun, before: EvaluationSignals | None) -> ExpansionDecision:
    """Settle the last action and decide on the next, by a ranking that has been judged.

    Before the last action it had the signals `before`, None where another scorer ranked it.
    """
    state, signals = run.state, run.state.signals
    assert signals is not None, "nothing is decided before it is judged"
    if state.pending is not None:
        state.previous = before
        _settle(run, state.pending, signals)
    may_go_on = not (state.clock.is_over or state.blocked)
    if state.iteration < state.rounds and may_go_on:
        state.frontier = state.frontier or await _frontier(run)
    decision = decide(signals, _loop_state(run))
    if decision.action != "stop" and not may_go_on:
        why = "Nothing more can be searched" if state.blocked else "The time was over"
        decision = ExpansionDecision(
            action="stop",
            reason=f"{why} before this was done: {decision.reason}",
            confidence="low",
            rule="provider_failed" if state.blocked else "deadline",
            rule_number=0,
        )
        state.partial = True
    state.decision = decision
    _log.info(
        "Round %d: %s by rule %d (%s), confidence %.2f, %s",
        state.iteration,
        decision.action,
        decision.rule_number,
        decision.rule,
        state.confidence,
        signals.model_dump(exclude_none=True),
    )
    return decision


def question_weights(state: RunState) -> dict[str, float]:
    """Weights of the question's terms, without those only other wordings have."""
    asked = (each for each in state.results if each.sub_query not in state.extra_queries)
    return dict(pair for each in asked for pair in each.retrieval.term_idf.items())


def wording_weights(state: RunState) -> dict[str, dict[str, float]]:
    """Each other wording that the caller gave, with the weights of its terms."""
    return dict(pair for each in state.results for pair in each.retrieval.wordings.items())


def _judgements(run: ResearchRun, left_out: Collection[UUID]) -> dict[str, Judgement]:
    """The best units for each part of a question, or for the whole where it is one."""
    state, encoder = run.state, run.components.encoder
    parts = [each for each in state.results if each.sub_query in state.parts]
    asked = [
        (each.sub_query, each.ranked, each.retrieval.wordings, each.retrieval.term_idf)
        for each in parts
    ]
    if len(parts) < 2:
        whole, wordings = state.question.text, wording_weights(state)
        asked = [(whole, state.merged.chunks, wordings, question_weights(state))]
    return {
        question: judged(
            respelled(question, state.also_searched),
            [item for item in ranked if item.chunk.chunk_id not in left_out],
            wordings=wordings,
            term_idf=term_idf,
            encode=encoder.encode if encoder else None,
            profile=run.profile,
        )
        for question, ranked, wordings, term_idf in asked
    }


def _weakest(judgements: Mapping[str, Judgement]) -> float:
    """The confidence; one part left unanswered leaves the question unanswered."""
    return min((each.confidence for each in judgements.values()), default=0.0)


def _chance_of_all(judgements: Mapping[str, Judgement]) -> float:
    """The chance that every part is answered; what answers one part answers no other for sure."""
    chance, best = 1.0, list[AnswerUnit]()
    for each in sorted(judgements.values(), key=lambda each: -each.confidence):
        is_used = any(unit.overlaps(other) for unit in each.units[:1] for other in best)
        chance *= below_high(each.confidence) if is_used else each.confidence
        best += each.units[:1]
    return chance


def _confidence_of_wordings(run: ResearchRun) -> float:
    """Rate the wording that is met worst where no passage meets it; else 1.0.

    A question asks for several things in one sentence more often than it can be split into parts;
    a wording is often of one of them.
    """
    best: dict[str, float] = {}
    for result in run.state.results:
        for item in result.ranked:
            for text, score in zip(result.retrieval.wordings, item.wording_scores[1:], strict=True):
                best[text] = max(best.get(text, 0.0), score)
    worst = min((quality(score, run.profile) for score in best.values()), default=1.0)
    return 1.0 if worst >= _MET_QUALITY else worst


def _in_turn(ranked: Sequence[Sequence[AnswerUnit]]) -> tuple[AnswerUnit, ...]:
    """The best unit of each part, then the next of each, none that overlap."""
    found: list[AnswerUnit] = []
    for unit in in_turn(ranked):
        if not any(unit.overlaps(other) for other in found):
            found.append(unit)
    return tuple(found)


async def is_contents_page(run: ResearchRun) -> bool:
    """Tell whether named pages of a fast run are there for their links, and do not answer.

    A table of contents names what is asked for and does not say it; a front page says what the site
    is about, and has many links.
    """
    state = run.state
    if not state.may_look_through or state.chance >= MEDIUM:
        return False
    judged = (item.chunk for item in state.merged.chunks[:_PASSAGES_JUDGED])
    found = {each.chunk_id: (each.source_url, each.text, each.char_start) for each in judged}
    lists, links = await _lists_of_links(run.components.corpus, found)
    of_links = sum(len(found[key][1]) for key in lists)
    is_list = of_links > sum(len(text) for _, text, _ in found.values()) / 2
    return is_list or (state.confidence < LOW and links >= _MANY_LINKS)


async def matched_lists(corpus: Corpus, chunks: Iterable[RetrievedChunk]) -> frozenset[UUID]:
    """The passages that matched by a list of links, which names a topic and says nothing of it."""
    matched = {
        chunk.chunk_id: (chunk.source_url, chunk.focus.text, chunk.focus.char_start)
        for chunk in chunks
        if chunk.focus is not None
    }
    return (await _lists_of_links(corpus, matched))[0]


async def _lists_of_links(
    corpus: Corpus, passages: Mapping[UUID, tuple[str, str, int]]
) -> tuple[frozenset[UUID], int]:
    """Read the links of passages, each given with its page, text and start.

    Returns the ids of those that are mostly words of links, and the number of links in all.
    """
    places = await corpus.link_places(
        [(url, start, start + len(text)) for url, text, start in passages.values()]
    )
    lists = frozenset(
        key
        for (key, (_, text, start)), own in zip(passages.items(), places, strict=True)
        if is_list_of_links(text, start, own)
    )
    return lists, sum(map(len, places))


def _settle(run: ResearchRun, pending: PendingStep, signals: EvaluationSignals) -> None:
    """Record what the last action brought; one that brought nothing is closed."""
    state, outcome = run.state, pending.outcome
    state.steps.append(
        ExpansionStep(
            iteration=state.iteration + 1,
            depth=max((each.depth for each in outcome.ingested), default=0),
            source_url=next(iter(state.pages)),
            candidates_scored=outcome.candidates_scored,
            candidates_expanded=tuple(c.url for c in outcome.ingested),
            candidates_failed=outcome.failed,
            scores={c.url: c.score for c in outcome.ingested},
            fetch_ms={url: seconds * 1000 for url, seconds in outcome.seconds.items()},
            parents={c.url: c.page_url for c in outcome.ingested},
            found_in={c.url: c.found_in for c in outcome.ingested if c.found_in},
            chunks_by_url=outcome.chunks_by_url,
            chunks_added=sum(outcome.chunks_by_url.values()),
            top_score_before=pending.signals.top_score,
            top_score_after=signals.top_score,
            decision=pending.decision.action,
            reason=pending.decision.reason,
            rule=pending.decision.rule,
            rule_number=pending.decision.rule_number,
            signals=pending.signals,
            new_queries=pending.new_queries,
            pages_joined=pending.pages_joined,
            duration_ms=(time.monotonic() - pending.begun) * 1000,
        )
    )
    state.pending = None
    if _brought_something(run, pending, signals):
        state.iteration += 1
    elif pending.decision.action != "expand_breadth":
        # Other links take the place of those that failed while any are left.
        state.closed.add(pending.decision.action)


def _brought_something(run: ResearchRun, pending: PendingStep, now: EvaluationSignals) -> bool:
    if pending.outcome.ingested:
        return True
    before = pending.signals.top_score
    if now.top_score >= before + GAIN:
        return True
    good = max(before - run.profile.near_top_delta, run.profile.mediocre_score_floor)
    return any(
        item.reranked_score >= good and str(item.chunk.chunk_id) not in pending.chunk_ids
        for item in run.state.merged.chunks
    )


def _loop_state(run: ResearchRun) -> LoopState:
    state = run.state
    return LoopState(
        iteration=state.iteration,
        max_iterations=state.rounds,
        previous=state.previous,
        open_actions=_open_actions(state),
        tried=frozenset(state.tried),
        confidence=state.confidence,
        chance_of_all=state.chance,
        profile=run.profile,
        config=run.components.config,
        links_ended=_links_ended(state),
        is_spent=min(state.budget.pages, state.budget.bytes) <= 0 and state.seconds_per_page > 0,
        open_parts=state.open_parts if state.part_confidence else (),
    )


def _links_ended(state: RunState) -> str:
    dead: list[FailureKind] = ["dead"]
    dead *= state.frontier.dead if state.frontier else 0
    failures = failures_in_words((*state.failure_kinds.values(), *dead))
    if state.budget.spent_part is not None:
        counted = "" if state.budget.failures else f" ({failures})"
        return f"{state.budget.spent_part}{counted}"
    # Links are not looked for when the time is over: then they count as left to follow.
    if state.frontier is None or state.frontier.candidates:
        return ""
    silent = silent_sites(state.failure_kinds)
    if silent:
        return f"{', '.join(sorted(silent))} does not answer any more"
    is_weak = state.frontier.weak
    ended = "the links that are left promise too little" if is_weak else "no link is left to follow"
    return f"{ended}; {failures}" if failures else ended


def _open_actions(state: RunState) -> frozenset[Action]:
    available: set[Action] = {"expand_intent"}
    is_cut = state.merged.trimmed or any(result.retrieval.truncated for result in state.results)
    if is_cut and not state.wants_recall:
        available.add("expand_recall")
    # Stored pages inside the scope cost no fetch; they are searched before the loop ends.
    if not _links_ended(state) or not state.is_widened:
        available.add("expand_breadth")
    return frozenset(available - state.closed)


async def _frontier(run: ResearchRun) -> Frontier:
    """Links to follow next; looked for before deciding, so that no rule counts on none."""
    state = run.state
    if state.budget.is_spent or "expand_breadth" in state.closed:
        return Frontier()
    limit_s = min(state.clock.left_s, run.components.config.expansion.iteration_timeout_s)
    frontier = await links_ahead(run, discovery_s=limit_s)
    if state.confidence < MEDIUM:
        frontier = frontier.own_first(run.components.config.expansion.max_candidates_per_iteration)
    return frontier.reaching(
        weakest_followed(state.chance, state.seconds_per_page, state.pages_followed, state.in_vain)
    )


async def links_ahead(run: ResearchRun, *, discovery_s: float = 0.0) -> Frontier:
    """Links of the pages searched that were not followed, of a run judged before.

    A mapping service, unless it has failed, and the site's own maps may take so many seconds to
    name more of them; one that fails or is refused is told of.
    """
    state = run.state
    matched = list(dict.fromkeys(item.chunk.source_url for item in state.merged.chunks))
    scope, expansion = state.scope, run.components.config.expansion
    if state.question.is_search:
        scope = LinkScope.of(expansion.scope, matched, expansion.allowed_domains)
    if not state.rounds:
        matched = matched[:_LINKING_PAGES]  # eight links are named at most, and none is followed
    with state.clock.timed("expansion_ms"):
        found = await run.components.expander.frontier(
            [*state.pages, *matched, *state.joined],
            _wanted(state),
            seeds=state.question.urls,
            scope=scope,
            known={
                *state.question.urls,
                *state.pages,
                *state.joined,
                *(url for url, kind in state.failure_kinds.items() if kind != "cut off"),
                *state.aliases,
            },
            in_turn=len(state.parts) > 1,
            discovery_s=discovery_s,
            asks_service=not state.discovery_failed,
            read=state.links,
        )
    state.note_degraded(found.degraded)
    state.warn(*found.refused)
    state.discovery_failed = state.discovery_failed or found.degraded is not None
    return found.without(silent_sites(state.failure_kinds))


def _wanted(state: RunState) -> tuple[str, ...]:
    """Texts that links are wanted for: the open parts, the worst first, in all their wordings.

    A page is linked in its own words, which a wording may hit and the question not.
    """
    is_partly_met = 0 < len(state.open_parts) < len(state.parts)
    if not is_partly_met:
        return tuple(dict.fromkeys((*state.open_parts, *state.queries, *state.wordings)))
    wordings = (each for part in state.open_parts for each in state.wordings_of(part))
    return tuple(dict.fromkeys((*state.open_parts, *wordings)))
