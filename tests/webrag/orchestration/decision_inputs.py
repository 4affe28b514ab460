"""Signals and states of the loop, unremarkable but for what a test changes."""

from typing import Any

from webrag.orchestration.decision import LoopState
from webrag.orchestration.models import EvaluationSignals, OrchestrationConfig, ScoreProfile

PROFILE = ScoreProfile(name="test")


CONFIG = OrchestrationConfig()


ALL = frozenset({"expand_breadth", "expand_recall", "expand_intent"})


def signals(**values: Any) -> EvaluationSignals:
    """Unremarkable signals: no rule but the last fires on them."""
    given = {
        "top_score": 0.6,
        "score_at_k": 0.5,
        "score_cliff": 0.1,
        "score_variance": 0.05,
        "score_mean": 0.4,
        "chunks_above_threshold": 4,
        "token_fill_ratio": 0.3,
        "redundancy_ratio": 0.0,
        "source_document_count": 1,
        "avg_confidence": 0.9,
        "is_plateau": False,
        "is_cliff": False,
        "is_saturated": False,
        "is_mediocre_plateau": False,
        "has_high_redundancy": False,
    }
    return EvaluationSignals(**{**given, **values})


def state(**values: Any) -> LoopState:
    given = {
        "iteration": 0,
        "max_iterations": 5,
        "previous": None,
        "open_actions": ALL,
        "tried": frozenset(),
        "confidence": 0.4,
        "profile": PROFILE,
        "config": CONFIG,
    }
    return LoopState(**{**given, **values})
