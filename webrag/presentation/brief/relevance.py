"""Where the evidence of a brief ends, by relevance alone; what fits a budget is decided after."""

from collections.abc import Sequence
from typing import Final

# Judged on 80 questions over four documentation sites, with and without three other wordings and
# within 4,000 tokens, by what is kept of the gold: a share of .15 and eight passages keep the same
# answers of every site (80 with wordings, 55 without) for 100 and 500 tokens more.
_GAP_SHARE: Final = 0.3
# Answers stand below the first passage often enough that a steep fall after it proves little.
_LEAST_SHOWN: Final = 5
# The same where the confidence is high: with wordings a share of .5 keeps 79 for 2,200 tokens, .4
# keeps 79 for 2,450, .35 keeps 80 for 2,550.
_SURE_GAP_SHARE: Final = 0.35
_SURE_LEAST_SHOWN: Final = 2
NOTHING_RELEVANT_SHOWN: Final = 3
# From this share of the best relevance on a passage may hold the answer as well as the best.
_STRONG_SHARE: Final = 0.5


def least_relevance(best: float, floor: float, *, is_sure: bool = False) -> float:
    """The relevance a passage needs beside the best one; it is never above that of the best.

    Args:
        best: Relevance of the best passage.
        floor: Score up to which a passage of this scorer is off the topic.
        is_sure: The best passages together very likely hold the answer.
    """
    share = _SURE_GAP_SHARE if is_sure else _GAP_SHARE
    return floor + share * (best - floor) if best > floor else best


def relevant_count(
    relevance: Sequence[float], floor: float, *, nothing_relevant: bool, is_sure: bool = False
) -> int:
    """How many of the passages are worth their tokens.

    Args:
        relevance: Of each passage, best first.
        floor: Score up to which a passage of this scorer is off the topic.
        nothing_relevant: The passages together answer nothing; then only the best few are shown.
        is_sure: The best passages together very likely hold the answer.
    """
    if nothing_relevant:
        return min(len(relevance), NOTHING_RELEVANT_SHOWN)
    needed = least_relevance(relevance[0], floor, is_sure=is_sure) if relevance else 0.0
    worthy = sum(score >= needed for score in relevance)
    return min(len(relevance), max(worthy, _SURE_LEAST_SHOWN if is_sure else _LEAST_SHOWN))


def is_strong(relevance: float, best: float, floor: float) -> bool:
    """Whether several quotations of a passage are worth their tokens."""
    return relevance > floor and relevance >= _STRONG_SHARE * best
