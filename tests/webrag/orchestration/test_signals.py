from typing import Any

import pytest

from webrag.orchestration.decision import compute_signals
from webrag.orchestration.models import EvaluationSignals, OrchestrationConfig, ScoreProfile

PROFILE = ScoreProfile(name="test")
CONFIG = OrchestrationConfig()


def computed(make_ranked: Any, scores: Any, **options: Any) -> EvaluationSignals:
    given = {"redundant": 0, "profile": PROFILE, "config": CONFIG}
    chunks = [make_ranked(score) for score in scores]
    return compute_signals(chunks, **{**given, **options})


def test_cliff_is_the_gap_to_rank_k(make_ranked: Any) -> None:
    found = computed(make_ranked, [0.9, 0.8, 0.7, 0.6, 0.5, 0.1])

    assert found.score_at_k == 0.5
    assert found.is_cliff


def test_cliff_with_few_scores_is_the_gap_to_the_last(make_ranked: Any) -> None:
    found = computed(make_ranked, [0.9, 0.8])

    assert found.score_cliff == pytest.approx(0.1)
    assert not found.is_cliff


def test_gap_at_the_threshold_is_no_cliff(make_ranked: Any) -> None:
    profile = PROFILE.model_copy(update={"score_cliff_threshold": 0.25})

    assert not computed(make_ranked, [0.75, 0.5], profile=profile).is_cliff


@pytest.mark.parametrize(
    ("scores", "plateau", "mediocre"),
    [
        pytest.param([0.6, 0.6], False, False, id="two scores are too few"),
        pytest.param([0.6, 0.6, 0.6], True, False, id="good"),
        pytest.param([0.5, 0.5, 0.5], True, False, id="at the floor"),
        pytest.param([0.49, 0.49, 0.49], True, True, id="below the floor"),
        pytest.param([0.9, 0.5, 0.1], False, False, id="spread"),
        pytest.param([0.6] * 10 + [0.0] * 10, True, False, id="only the top ten count"),
    ],
)
def test_plateau_needs_three_scores_of_little_variance(
    make_ranked: Any, scores: Any, plateau: Any, mediocre: Any
) -> None:
    found = computed(make_ranked, scores)

    assert (found.is_plateau, found.is_mediocre_plateau) == (plateau, mediocre)


def test_good_chunks_are_those_near_the_best(make_ranked: Any) -> None:
    assert computed(make_ranked, [0.75, 0.6875, 0.5]).chunks_above_threshold == 2


def test_fill_is_the_share_of_the_context_budget(make_ranked: Any) -> None:
    chunks = [make_ranked(0.5, tokens=300), make_ranked(0.6, tokens=100)]
    config = OrchestrationConfig(context_budget=500)

    found = compute_signals(chunks, redundant=0, profile=PROFILE, config=config)

    assert found.token_fill_ratio == pytest.approx(0.8)
    assert not found.is_saturated


def test_redundancy_is_the_share_of_chunks_left_out(make_ranked: Any) -> None:
    found = computed(make_ranked, [0.5, 0.4], redundant=2)

    assert found.redundancy_ratio == 0.5
    assert found.has_high_redundancy


def test_adjacent_context_and_unscored_chunks_do_not_count(make_ranked: Any) -> None:
    chunks = [
        make_ranked(0.5),
        make_ranked(0.0, is_locality_expanded=True),
        make_ranked(1.0, raw_similarity=None),
    ]

    found = compute_signals(chunks, redundant=0, profile=PROFILE, config=CONFIG)

    assert (found.top_score, found.score_mean) == (0.5, 0.5)


def test_confidence_is_averaged_where_the_scorer_gives_it(make_ranked: Any) -> None:
    chunks = [make_ranked(0.5, confidence=0.2), make_ranked(0.4, confidence=0.4)]

    found = compute_signals(chunks, redundant=0, profile=PROFILE, config=CONFIG)

    assert found.avg_confidence == pytest.approx(0.3)


def test_nothing_found_gives_signals_of_nothing(make_ranked: Any) -> None:
    found = computed(make_ranked, [])

    assert (found.top_score, found.score_cliff, found.is_plateau) == (0.0, 0.0, False)


def test_only_what_is_good_fills_the_budget(make_ranked: Any) -> None:
    chunks = [
        make_ranked(score, token_start=0, token_end=1_000) for score in (0.9, 0.5, 0.49, 0.21)
    ]
    config = OrchestrationConfig(context_budget=2_000)

    found = compute_signals(chunks, redundant=0, profile=PROFILE, config=config)

    assert found.token_fill_ratio == 1.0


def test_budget_full_of_what_is_off_the_topic_is_not_saturated(make_ranked: Any) -> None:
    chunks = [make_ranked(0.21, token_start=0, token_end=1_000) for _ in range(9)]
    config = OrchestrationConfig(context_budget=9_000)

    found = compute_signals(chunks, redundant=0, profile=PROFILE, config=config)

    assert (found.is_saturated, found.token_fill_ratio) == (False, 0.0)
