"""The decision table: what to do next, judged by signals of a ranking; pure functions, no I/O."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance
from typing import Final, Literal

from webrag.orchestration.confidence import HIGH, MEDIUM
from webrag.orchestration.models import (
    Action,
    EvaluationSignals,
    ExpansionDecision,
    OrchestrationConfig,
    RankedChunk,
    ScoreProfile,
)

_PLATEAU_SCORES: Final = 3


def compute_signals(
    chunks: Sequence[RankedChunk],
    *,
    redundant: int,
    profile: ScoreProfile,
    config: OrchestrationConfig,
) -> EvaluationSignals:
    """Signals of a merged ranking.

    Adjacent context and chunks of full-context mode are left out: their scores say nothing. The
    chunks are without near-duplicates, of which `redundant` were left out, and all scored by the
    scorer of `profile`.
    """
    judged = [
        item
        for item in chunks
        if not item.is_locality_expanded and item.chunk.raw_similarity is not None
    ]
    judged.sort(key=lambda item: item.reranked_score, reverse=True)
    scores = [item.reranked_score for item in judged]
    sure = [
        each.confidence for each in judged[: config.plateau_top_n] if each.confidence is not None
    ]
    top = scores[0] if scores else 0.0
    at_k = scores[min(config.score_cliff_rank_k, len(scores)) - 1] if scores else 0.0
    head = scores[: config.plateau_top_n] or [0.0]
    mean, variance = fmean(head), pvariance(head)
    plateau = len(scores) >= _PLATEAU_SCORES and variance < profile.plateau_variance_threshold
    # What is off the topic fills a budget and helps nobody.
    useful = [item for item in judged if item.reranked_score >= profile.mediocre_score_floor]
    fill = sum(item.chunk.token_count for item in useful) / config.context_budget
    repeated = redundant / (len(judged) + redundant) if redundant else 0.0
    return EvaluationSignals(
        top_score=top,
        score_at_k=at_k,
        score_cliff=top - at_k,
        score_variance=variance,
        score_mean=mean,
        chunks_above_threshold=sum(s >= top - profile.near_top_delta for s in scores),
        token_fill_ratio=fill,
        redundancy_ratio=repeated,
        source_document_count=len({item.chunk.source_url for item in judged}),
        avg_confidence=fmean(sure) if sure else None,
        is_plateau=plateau,
        is_cliff=top - at_k > profile.score_cliff_threshold,
        is_saturated=fill > config.token_budget_saturation_ratio,
        is_mediocre_plateau=plateau and mean < profile.mediocre_score_floor,
        has_high_redundancy=repeated >= config.high_redundancy_ratio,
    )


_STOP: Final[tuple[Action, ...]] = ("stop",)

# Pages bring evidence; docs/experiments.md has how seldom the other actions did.
_FOLLOW_LINKS: Final[tuple[Action, ...]] = ("expand_breadth", "expand_intent")

_MORE_MATERIAL: Final[tuple[Action, ...]] = ("expand_breadth", "expand_recall")

_LABELS: Final[dict[Action, str]] = {
    "expand_breadth": "following links",
    "expand_recall": "retrieving more of what is indexed",
    "expand_intent": "rephrasing the question",
}


@dataclass(frozen=True, slots=True)
class LoopState:
    """The facts that a decision depends on besides the signals.

    Attributes:
        iteration: Rounds finished.
        max_iterations: Rounds allowed; 0 when no expansion was asked for.
        previous: Signals before the last round, by the same scorer; None in the first round.
        open_actions: Actions that have something to work on and have not come back empty.
        confidence: Estimate in [0, 1] that the evidence answers the question.
        links_ended: Clause that says why no link can be followed any more; empty while one can.
        is_spent: The reason is that the pages or bytes of the run are used up.
        open_parts: Parts of a question of several that are not answered, the worst first.
        chance_of_all: That every part is answered, [0, 1]; at most `confidence`, which is that of
            the worst.
    """

    iteration: int
    max_iterations: int
    previous: EvaluationSignals | None
    open_actions: frozenset[Action]
    tried: frozenset[Action]
    confidence: float
    profile: ScoreProfile
    config: OrchestrationConfig
    links_ended: str = ""
    is_spent: bool = False
    open_parts: tuple[str, ...] = ()
    chance_of_all: float = 1.0


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the decision matrix.

    The first open action is taken; when none is open, the rule does not apply. The reason begins a
    sentence for users; the confidence is that of the rule in its action.
    """

    name: str
    actions: tuple[Action, ...]
    condition: Callable[[EvaluationSignals, LoopState], bool]
    reason: str
    confidence: Literal["high", "medium", "low"]


def decide(signals: EvaluationSignals, state: LoopState) -> ExpansionDecision:
    """The first rule of `RULES` that matches and has an open action; the last one always does.

    The same arguments always give the same decision.
    """
    for number, rule in enumerate(RULES, start=1):
        action = next((a for a in rule.actions if a == "stop" or a in state.open_actions), None)
        if action is not None and rule.condition(signals, state):
            return ExpansionDecision(
                action=action,
                reason=_sentence(rule, action, signals, state),
                confidence=rule.confidence,
                rule=rule.name,
                rule_number=number,
            )
    raise AssertionError("the last rule matches everything")


def _sentence(rule: Rule, action: Action, signals: EvaluationSignals, state: LoopState) -> str:
    reason = rule.reason.format(s=signals, state=state)
    if rule.name == "depth_cap" and state.max_iterations == 0:
        if state.iteration:
            return "The named page did not answer: its best links were read; no more was asked for."
        return "Following links was not asked for."
    if action == "stop":
        if rule.name == "default" and not state.open_actions and state.links_ended:
            reason = "Nothing is left to try"
        ended = state.links_ended if rule.name in ("default", "diminishing_returns") else ""
        is_limited = rule.name == "depth_cap" and "expand_breadth" in state.open_actions
        is_limited = is_limited or (bool(ended) and state.is_spent)
        still = " and ".join(f"'{part}'" for part in state.open_parts)
        reason += f": {ended}" if ended else ""
        reason += f"; still open: {still}" if still else ""
        return f"{reason}{'; asking again goes on from what is stored' if is_limited else ''}."
    if action != rule.actions[0] and action != "expand_breadth":
        return f"{reason}: {_LABELS[action]}, as {_LABELS[rule.actions[0]]} has nothing left."
    return f"{reason}: {_LABELS[action]}."


def _is_answered(_: EvaluationSignals, state: LoopState) -> bool:
    # Parts that seem answered each for itself are not yet likely to be so all at once.
    is_likely = state.chance_of_all >= HIGH or bool(state.links_ended)
    return state.confidence >= HIGH and is_likely


def _has_diminishing_returns(signals: EvaluationSignals, state: LoopState) -> bool:
    if state.iteration == 0 or state.previous is None:
        return False
    # Links are worth following until the answer seems found: the page that has it may lie behind
    # one that added nothing itself.
    if state.open_actions - (state.tried - {"expand_breadth"}):
        return False
    base = state.previous.chunks_above_threshold
    gain = (signals.chunks_above_threshold - base) / max(base, 1)
    return gain < state.config.diminishing_return_delta


def _is_good_plateau(signals: EvaluationSignals, state: LoopState) -> bool:
    # Passages may be good alike and none of them answer: not where a link promises more. Where
    # the confidence is high, an earlier rule says whether that is enough.
    if state.iteration == 0 or "expand_breadth" in state.open_actions:
        return False
    good = signals.is_plateau and signals.score_mean >= state.profile.mediocre_score_floor
    return good and MEDIUM <= state.confidence < HIGH


def _has_low_confidence(signals: EvaluationSignals, state: LoopState) -> bool:
    if signals.avg_confidence is not None:
        is_likely = state.chance_of_all >= HIGH or state.confidence < HIGH
        return signals.avg_confidence < state.profile.confidence_floor or not is_likely
    return min(state.confidence, state.chance_of_all) < HIGH


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "depth_cap",
        _STOP,
        lambda _, state: state.iteration >= state.max_iterations,
        "Reached {state.iteration} of {state.max_iterations} rounds of following links",
        "low",
    ),
    Rule(
        "saturated",
        _STOP,
        lambda signals, state: (
            signals.is_saturated
            and not signals.is_mediocre_plateau
            and signals.redundancy_ratio < state.config.redundancy_ceiling
        ),
        "The evidence fills {s.token_fill_ratio:.0%} of its budget",
        "high",
    ),
    Rule(
        "answered",
        _STOP,
        _is_answered,
        "The pages read so far seem to answer the question (confidence {state.confidence:.2f})",
        "high",
    ),
    Rule(
        "diminishing_returns",
        _STOP,
        _has_diminishing_returns,
        "The last round brought no more good passages (confidence {state.confidence:.2f}), "
        "and the other ways were tried",
        "medium",
    ),
    Rule(
        "good_plateau",
        _STOP,
        _is_good_plateau,
        "Many passages are about equally good (mean {s.score_mean:.2f})",
        "high",
    ),
    Rule(
        "cliff_redundant",
        _FOLLOW_LINKS,
        lambda signals, _: signals.is_cliff and signals.has_high_redundancy,
        "One passage stands out and the others repeat each other",
        "medium",
    ),
    Rule(
        "cliff",
        _FOLLOW_LINKS,
        lambda signals, _: signals.is_cliff,
        "Relevance falls off quickly ({s.top_score:.2f} to {s.score_at_k:.2f})",
        "medium",
    ),
    Rule(
        "mediocre_plateau",
        _FOLLOW_LINKS,
        lambda signals, _: signals.is_mediocre_plateau,
        "Everything is only vaguely related (mean {s.score_mean:.2f})",
        "medium",
    ),
    Rule(
        "low_scores",
        _FOLLOW_LINKS,
        lambda signals, state: signals.top_score < state.profile.mediocre_score_floor,
        "Nothing indexed fits the question (best {s.top_score:.2f})",
        "high",
    ),
    Rule(
        "low_fill",
        _MORE_MATERIAL,
        lambda signals, state: (
            signals.score_mean >= state.profile.mediocre_score_floor
            and signals.token_fill_ratio < state.config.token_budget_saturation_ratio
        ),
        "The passages are good but few ({s.token_fill_ratio:.0%} of the budget)",
        "medium",
    ),
    Rule(
        "low_confidence",
        _FOLLOW_LINKS,
        _has_low_confidence,
        "The evidence may not hold the answer (confidence {state.confidence:.2f})",
        "medium",
    ),
    Rule(
        "default",
        _STOP,
        lambda *_: True,
        "No rule asks for more",
        "low",
    ),
)
