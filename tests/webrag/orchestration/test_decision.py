from typing import Any

import pytest

from webrag.orchestration.decision import RULES, decide

from .decision_inputs import ALL, signals, state


def rule_number(name: str) -> int:
    return [rule.name for rule in RULES].index(name) + 1


GOOD = {"score_mean": 0.7, "top_score": 0.8}


CASES = [
    pytest.param({}, {"iteration": 5}, "depth_cap", "stop", id="rounds used up"),
    pytest.param({}, {"max_iterations": 0}, "depth_cap", "stop", id="no expansion asked for"),
    pytest.param({"is_saturated": True}, {}, "saturated", "stop", id="budget filled"),
    pytest.param(
        {"is_saturated": True, "is_mediocre_plateau": True},
        {},
        "mediocre_plateau",
        "expand_breadth",
        id="budget filled with mediocre passages",
    ),
    pytest.param(
        {"is_saturated": True, "redundancy_ratio": 0.85, "is_cliff": True},
        {},
        "cliff",
        "expand_breadth",
        id="budget filled with repetition",
    ),
    pytest.param(
        {},
        {"iteration": 1, "previous": signals(), "open_actions": frozenset()},
        "diminishing_returns",
        "stop",
        id="no gain and nothing left to try",
    ),
    pytest.param(
        {"chunks_above_threshold": 5},
        {"iteration": 1, "previous": signals(), "open_actions": frozenset()},
        "default",
        "stop",
        id="gain, yet nothing left to try",
    ),
    pytest.param(
        {"is_cliff": True},
        {
            "iteration": 1,
            "previous": signals(),
            "open_actions": frozenset({"expand_breadth"}),
            "tried": frozenset({"expand_breadth"}),
        },
        "cliff",
        "expand_breadth",
        id="no gain, but links are left and nothing answers",
    ),
    pytest.param(
        {"is_cliff": True},
        {
            "iteration": 1,
            "previous": signals(),
            "open_actions": frozenset({"expand_breadth"}),
            "tried": frozenset({"expand_breadth"}),
            "confidence": 0.8,
        },
        "answered",
        "stop",
        id="no gain, links are left, the answer seems found",
    ),
    pytest.param(
        {"is_cliff": True},
        {
            "iteration": 1,
            "previous": signals(),
            "open_actions": frozenset({"expand_intent"}),
            "confidence": 0.7,
        },
        "cliff",
        "expand_intent",
        id="no gain, but other wordings were not tried",
    ),
    pytest.param(
        {"is_cliff": True}, {"confidence": 0.8}, "answered", "stop", id="answered at once"
    ),
    pytest.param(
        {"is_cliff": True},
        {"confidence": 0.8, "iteration": 1},
        "answered",
        "stop",
        id="answered in a later round",
    ),
    pytest.param(
        {"is_cliff": True, "is_plateau": True, **GOOD},
        {"confidence": 0.8, "chance_of_all": 0.79, "iteration": 1},
        "cliff",
        "expand_breadth",
        id="each part seems answered, hardly all of them, and links are left",
    ),
    pytest.param(
        {"is_cliff": True},
        {"confidence": 0.8, "chance_of_all": 0.79, "links_ended": "no link is left to follow"},
        "answered",
        "stop",
        id="each part seems answered, hardly all of them, and no link is left",
    ),
    pytest.param(
        {"is_plateau": True, **GOOD},
        {"iteration": 1, "confidence": 0.7, "open_actions": frozenset({"expand_intent"})},
        "good_plateau",
        "stop",
        id="good plateau",
    ),
    pytest.param(
        {"is_plateau": True, "score_mean": 0.5},
        {"iteration": 1, "confidence": 0.7, "open_actions": frozenset({"expand_intent"})},
        "good_plateau",
        "stop",
        id="good plateau at the floor",
    ),
    pytest.param(
        {"is_plateau": True, "score_mean": 0.7},
        {"iteration": 1, "confidence": 0.7},
        "low_fill",
        "expand_breadth",
        id="a plateau does not end the search while a link promises more",
    ),
    pytest.param(
        {"is_plateau": True, "score_mean": 0.7},
        {"iteration": 1, "confidence": 0.69},
        "low_fill",
        "expand_breadth",
        id="a plateau does not end the search before an answer is likely",
    ),
    pytest.param(
        {"is_plateau": True, "score_mean": 0.7},
        {"confidence": 0.7},
        "low_fill",
        "expand_breadth",
        id="a plateau does not end the search on the first pages",
    ),
    pytest.param(
        {"is_cliff": True, "has_high_redundancy": True},
        {},
        "cliff_redundant",
        "expand_breadth",
        id="cliff among repetitions",
    ),
    pytest.param({"is_cliff": True}, {}, "cliff", "expand_breadth", id="cliff"),
    pytest.param(
        {"is_plateau": True, "is_mediocre_plateau": True},
        {},
        "mediocre_plateau",
        "expand_breadth",
        id="mediocre plateau",
    ),
    pytest.param({"top_score": 0.49}, {}, "low_scores", "expand_breadth", id="low scores"),
    pytest.param(
        {"top_score": 0.49},
        {"open_actions": frozenset({"expand_breadth"})},
        "low_scores",
        "expand_breadth",
        id="low scores, no other wording left",
    ),
    pytest.param(
        GOOD,
        {"open_actions": frozenset({"expand_recall", "expand_intent"})},
        "low_fill",
        "expand_recall",
        id="good but few, no link left, retrieval was cut",
    ),
    pytest.param(
        {"top_score": 0.49},
        {"open_actions": frozenset({"expand_recall", "expand_intent"})},
        "low_scores",
        "expand_intent",
        id="low scores, no link left",
    ),
    pytest.param(GOOD, {}, "low_fill", "expand_breadth", id="good but few"),
    pytest.param(
        GOOD,
        {"open_actions": frozenset({"expand_breadth", "expand_intent"})},
        "low_fill",
        "expand_breadth",
        id="good but few",
    ),
    pytest.param(
        {"avg_confidence": 0.29}, {}, "low_confidence", "expand_breadth", id="scorer unsure"
    ),
    pytest.param({"avg_confidence": 0.3}, {}, "default", "stop", id="scorer sure enough"),
    pytest.param(
        {"avg_confidence": None}, {}, "low_confidence", "expand_breadth", id="estimate is low"
    ),
    pytest.param(
        {"avg_confidence": None},
        {"confidence": 0.8, "iteration": 1},
        "answered",
        "stop",
        id="estimate is high",
    ),
    pytest.param(
        {"avg_confidence": None},
        {"confidence": 0.8, "chance_of_all": 0.79},
        "low_confidence",
        "expand_breadth",
        id="estimate for all parts together is low",
    ),
    pytest.param({}, {}, "default", "stop", id="no rule asks for more"),
    pytest.param(
        {"top_score": 0.0, "score_mean": 0.0},
        {"open_actions": frozenset()},
        "default",
        "stop",
        id="nothing found and nothing to try",
    ),
]


@pytest.mark.parametrize(("given_signals", "given_state", "rule", "action"), CASES)
def test_decision_follows_the_first_matching_rule(
    given_signals: Any, given_state: Any, rule: Any, action: Any
) -> None:
    decision = decide(signals(**given_signals), state(**given_state))

    assert (decision.rule, decision.action) == (rule, action)
    assert decision.rule_number == rule_number(rule)


@pytest.mark.parametrize(
    ("given_signals", "given_state", "rule"),
    [
        pytest.param({}, {"iteration": 4}, "default", id="one round is left"),
        pytest.param({}, {"iteration": 5}, "depth_cap", id="no round is left"),
        pytest.param(
            {"is_saturated": True, "redundancy_ratio": 0.8499}, {}, "saturated", id="below ceiling"
        ),
        pytest.param(
            {"is_saturated": True, "redundancy_ratio": 0.85}, {}, "default", id="at the ceiling"
        ),
        pytest.param({}, {"confidence": 0.7999}, "default", id="nearly answered"),
        pytest.param({}, {"confidence": 0.8}, "answered", id="just answered"),
        pytest.param(
            {"is_plateau": True, "score_mean": 0.4999},
            {"iteration": 1},
            "default",
            id="plateau below the floor",
        ),
        pytest.param({"top_score": 0.5}, {}, "default", id="best at the floor"),
        pytest.param({"top_score": 0.4999}, {}, "low_scores", id="best below the floor"),
        pytest.param({"score_mean": 0.5}, {}, "low_fill", id="mean at the floor"),
        pytest.param({"score_mean": 0.4999}, {}, "default", id="mean below the floor"),
        pytest.param(
            {"score_mean": 0.5, "token_fill_ratio": 0.8}, {}, "default", id="filled enough"
        ),
        pytest.param(
            {"score_mean": 0.5, "token_fill_ratio": 0.7999}, {}, "low_fill", id="nearly filled"
        ),
        pytest.param(
            {"avg_confidence": None},
            {"confidence": 0.7999, "iteration": 1},
            "low_confidence",
            id="estimate below high",
        ),
    ],
)
def test_rule_changes_at_its_bound(given_signals: Any, given_state: Any, rule: str) -> None:
    assert decide(signals(**given_signals), state(**given_state)).rule == rule


@pytest.mark.parametrize(
    ("base", "now", "rule"),
    [
        (100, 103, "cliff"),
        (100, 102, "diminishing_returns"),
        (100, 100, "diminishing_returns"),
        (0, 1, "cliff"),
        (4, 1, "diminishing_returns"),
    ],
)
def test_gain_at_the_least_growth_is_worth_another_round(base: int, now: int, rule: str) -> None:
    before = signals(chunks_above_threshold=base)
    current = signals(chunks_above_threshold=now, is_cliff=True)
    found = {
        "iteration": 1,
        "previous": before,
        "tried": ALL,
        "open_actions": ALL - {"expand_breadth"},
    }

    assert decide(current, state(**found)).rule == rule


def test_every_rule_is_reached_by_a_case() -> None:
    assert {case.values[2] for case in CASES} == {rule.name for rule in RULES}


def test_rules_are_tried_in_the_documented_order() -> None:
    assert [rule.name for rule in RULES] == [
        "depth_cap",
        "saturated",
        "answered",
        "diminishing_returns",
        "good_plateau",
        "cliff_redundant",
        "cliff",
        "mediocre_plateau",
        "low_scores",
        "low_fill",
        "low_confidence",
        "default",
    ]


def test_reason_says_when_no_expansion_was_asked_for() -> None:
    decision = decide(signals(), state(max_iterations=0))

    assert decision.reason == "Following links was not asked for."


def test_reason_names_numbers_and_action() -> None:
    decision = decide(signals(top_score=0.31), state())

    assert decision.reason == ("Nothing indexed fits the question (best 0.31): following links.")


def test_reason_says_why_nothing_is_left_to_try() -> None:
    spent = state(open_actions=frozenset(), links_ended="the page budget is used up")

    decision = decide(signals(), spent)

    assert decision.reason == "Nothing is left to try: the page budget is used up."


def test_reason_says_why_no_link_is_followed_where_another_way_is_open_and_not_wanted() -> None:
    spent = state(
        open_actions=frozenset({"expand_recall"}), links_ended="the page budget is used up"
    )

    decision = decide(signals(), spent)

    assert decision.rule == "default"
    assert decision.reason == "No rule asks for more: the page budget is used up."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"iteration": 5, "open_actions": frozenset({"expand_breadth"})},
            "Reached 5 of 5 rounds of following links; asking again goes on from what is stored.",
        ),
        (
            {"iteration": 5, "open_actions": frozenset()},
            "Reached 5 of 5 rounds of following links.",
        ),
        (
            {"open_actions": frozenset(), "links_ended": "no page is left", "is_spent": True},
            "Nothing is left to try: no page is left; asking again goes on from what is stored.",
        ),
        (
            {"iteration": 5, "open_actions": frozenset(), "open_parts": ("who pays",)},
            "Reached 5 of 5 rounds of following links; still open: 'who pays'.",
        ),
    ],
)
def test_stop_says_what_is_open_and_what_would_continue(given: Any, sentence: str) -> None:
    assert decide(signals(), state(max_iterations=5, **given)).reason == sentence
