"""Compares two runs question by question, with tests of significance; pure functions."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from webrag.evaluation.metrics import RANKS, WORD_BUDGETS, QuestionScore
from webrag.frozen import FrozenModel

# Up to so many questions that differ, every assignment of signs is tried; above, so many random
# ones, which fixes a p-value near 0.05 to about 0.002.
_EXACT_DIFFERENCES = 14
_RANDOM_ASSIGNMENTS = 10_000
_RESAMPLES = 10_000
_SEED = 20_260_101
_TOLERANCE = 1e-9


class PairedFigure(FrozenModel):
    """One figure of two runs over the same questions, and the 95 % bootstrap of its change.

    Probabilities are of a mean difference at least as large, and of the counts, if runs were equal.
    """

    name: str
    questions: int
    first: float
    second: float
    low: float
    high: float
    better: int
    worse: int
    p_permutation: float
    p_sign: float

    @property
    def difference(self) -> float:
        """Mean of the second run minus that of the first."""
        return self.second - self.first


def compare_scores(
    first: Mapping[str, QuestionScore], second: Mapping[str, QuestionScore]
) -> list[PairedFigure]:
    """Compare recall, ranking and words over the answerable questions of both runs; repeatable."""
    ids = [
        each
        for each, score in first.items()
        if score.answerable and each in second and second[each].answerable
    ]
    if not ids:
        return []
    one, other = ([_figures(run[each]) for each in ids] for run in (first, second))
    return [
        _compare(name, [row[name] for row in one], [row[name] for row in other]) for name in one[0]
    ]


def moved_questions(
    first: Mapping[str, QuestionScore], second: Mapping[str, QuestionScore]
) -> list[tuple[str, float, float]]:
    """Id and reciprocal ranks of the questions whose first right result moved, the worse first."""
    moved = [
        (each, found, second[each].reciprocal_rank or 0.0)
        for each, score in first.items()
        if each in second
        and (found := score.reciprocal_rank) is not None
        and second[each].reciprocal_rank not in (None, found)
    ]
    return sorted(moved, key=lambda row: row[2] - row[1])


def sign_test(better: int, worse: int) -> float:
    """Two-sided exact sign test: the probability of a split at least as uneven by chance."""
    total = better + worse
    tail = sum(math.comb(total, k) for k in range(min(better, worse) + 1))
    return min(1.0, 2 * tail / (1 << total))


def permutation_test(differences: Sequence[float]) -> float:
    """Test the mean difference, two-sided and paired (Fisher's, by flipping signs).

    Exact for up to 14 differences that are not zero, else from 10,000 assignments drawn with a
    fixed seed; then never below 1/10,001.
    """
    values = np.array([each for each in differences if each], dtype=float)
    observed = abs(values.sum()) - _TOLERANCE
    if len(values) <= _EXACT_DIFFERENCES:
        bits = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
        return float(np.mean(np.abs((bits * 2.0 - 1.0) @ values) >= observed))
    random = np.random.default_rng(_SEED)
    signs = random.choice([-1.0, 1.0], size=(_RANDOM_ASSIGNMENTS, len(values)))
    extreme = int(np.sum(np.abs(signs @ values) >= observed))
    return (extreme + 1) / (_RANDOM_ASSIGNMENTS + 1)


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Ends of the 95 % percentile bootstrap interval of a mean; 10,000 samples, one seed."""
    sample = np.array(values, dtype=float)
    random = np.random.default_rng(_SEED)
    drawn = random.integers(len(sample), size=(_RESAMPLES, len(sample)))
    low, high = np.quantile(sample[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _figures(score: QuestionScore) -> dict[str, float]:
    return {
        **{f"evidence recall @{rank}": score.evidence[rank] for rank in RANKS},
        **{f"evidence recall in {count} words": score.words[count] for count in WORD_BUDGETS},
        "hit rate @10": score.hit_rate or 0.0,
        "mean reciprocal rank": score.reciprocal_rank or 0.0,
        "nDCG @10": score.ndcg or 0.0,
    }


def _compare(name: str, first: Sequence[float], second: Sequence[float]) -> PairedFigure:
    one, other = np.array(first, dtype=float), np.array(second, dtype=float)
    differences = other - one
    better, worse = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    low, high = bootstrap_interval(differences.tolist())
    return PairedFigure(
        name=name,
        questions=len(differences),
        first=float(one.mean()),
        second=float(other.mean()),
        low=low,
        high=high,
        better=better,
        worse=worse,
        p_permutation=permutation_test(differences.tolist()),
        p_sign=sign_test(better, worse),
    )
