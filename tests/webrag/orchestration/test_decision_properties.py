from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from webrag.orchestration.decision import decide

from .decision_inputs import ALL, signals, state

share = st.floats(0, 1)


any_signals = st.builds(
    signals,
    top_score=share,
    score_mean=share,
    token_fill_ratio=st.floats(0, 2),
    redundancy_ratio=share,
    chunks_above_threshold=st.integers(0, 50),
    avg_confidence=st.none() | share,
    is_plateau=st.booleans(),
    is_cliff=st.booleans(),
    is_saturated=st.booleans(),
    is_mediocre_plateau=st.booleans(),
    has_high_redundancy=st.booleans(),
)


any_state = st.builds(
    state,
    iteration=st.integers(0, 6),
    max_iterations=st.integers(0, 6),
    previous=st.none() | any_signals,
    open_actions=st.frozensets(st.sampled_from(sorted(ALL))),
    tried=st.frozensets(st.sampled_from(sorted(ALL))),
    confidence=share,
)


@given(any_signals, any_state)
def test_decision_depends_on_its_arguments_only(given_signals: Any, given_state: Any) -> None:
    assert decide(given_signals, given_state) == decide(given_signals, given_state)


@given(any_signals, any_state)
def test_decision_is_stop_or_an_open_action(given_signals: Any, given_state: Any) -> None:
    assert decide(given_signals, given_state).action in {"stop", *given_state.open_actions}


@given(any_signals, any_state)
def test_no_action_is_taken_beyond_the_allowed_rounds(given_signals: Any, given_state: Any) -> None:
    decision = decide(given_signals, given_state)

    assert decision.action == "stop" or given_state.iteration < given_state.max_iterations


@given(st.data(), st.integers(0, 6))
def test_loop_ends_within_its_rounds_and_one_failure_per_action(
    data: st.DataObject, rounds: int
) -> None:
    """Plays the loop as the engine does, with any signals and any luck."""
    closed: set[str] = set()
    iteration = actions = 0
    while True:
        current = state(
            iteration=iteration,
            max_iterations=rounds,
            previous=data.draw(st.none() | any_signals),
            open_actions=ALL - closed,
            confidence=data.draw(share),
        )
        decision = decide(data.draw(any_signals), current)
        if decision.action == "stop":
            break
        actions += 1
        if data.draw(st.booleans()):
            iteration += 1
        else:
            closed.add(decision.action)

    assert iteration <= rounds
    assert actions <= rounds + len(ALL)
