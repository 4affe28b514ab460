"""Raises the scores of recent nodes, and lowers those of nodes many links from the named page."""

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Final, Self

from llama_index.core.bridge.pydantic import Field, model_validator
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.nodes import rescored, score_of
from llama_index.postprocessor.webrag.selection import age_s, depth_weight
from typing_extensions import override

_DAY_S: Final = 86_400.0


class RecencyBoost(BaseNodePostprocessor):
    """Adds up to `weight` to the score of recent nodes and sorts by the sum.

    With `window_days`, nodes at most that old get the whole weight and older ones nothing; else
    the weight halves every `half_life_days`. Scores within [0, 1] count as they are; others are
    first mapped to [0, 1], the best to 1 and the worst to 0. So a node is never lifted above one
    whose score, so mapped, is better by more than `weight`. Nodes without a date that can be read
    get nothing, dates in the future count as now. Equal sums keep their order.

    Inputs are never changed; the result holds copies.

    Example:
        >>> RecencyBoost(weight=0.1, half_life_days=180).postprocess_nodes(nodes)
    """

    date_keys: list[str] = Field(
        default=["published_at", "modified_at"],
        description="Metadata keys, the first that holds a date counts: a datetime, a date, ISO "
        "8601 text, or a year as whole number.",
    )
    weight: float = Field(default=0.05, ge=0, le=1, description="What the newest nodes get.")
    half_life_days: float = Field(
        default=365.0, gt=0, allow_inf_nan=False, description="Age at which half of it is left."
    )
    window_days: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Age up to which nodes count as new."
    )
    now: datetime | None = Field(
        default=None, description="When ages are counted from, with time zone; None is now."
    )

    @model_validator(mode="after")
    def _check_now(self) -> Self:
        if self.now is not None and self.now.tzinfo is None:
            raise ValueError("now needs a time zone")
        return self

    @classmethod
    @override
    def class_name(cls) -> str:
        return "RecencyBoost"

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        now = self.now or datetime.now(UTC)
        base = _unit_scores([score_of(item) for item in nodes])
        sums = [
            score + self.weight * self._freshness(item, now)
            for score, item in zip(base, nodes, strict=True)
        ]
        order = sorted(range(len(nodes)), key=lambda at: -sums[at])
        return [rescored(nodes[at].node, sums[at]) for at in order]

    def _freshness(self, item: NodeWithScore, now: datetime) -> float:
        dates = (parse_date(item.node.metadata.get(key)) for key in self.date_keys)
        found = next((each for each in dates if each is not None), None)
        if found is None:
            return 0.0
        age = age_s(found, now) / _DAY_S
        if self.window_days is not None:
            return float(age <= self.window_days)
        return math.pow(0.5, age / self.half_life_days)


def parse_date(value: Any) -> datetime | None:
    """The instant a metadata value stands for; None if it is no date. UTC where no zone is given.

    A year counts as its first day.
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, int) and not isinstance(value, bool):
            value = date(value, 1, 1)
    except (ValueError, OverflowError):
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _unit_scores(scores: Sequence[float]) -> list[float]:
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low >= 0 and high <= 1:
        return list(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


class DepthDecay(BaseNodePostprocessor):
    """Multiplies each score by `max(1 - depth * rate, floor)` and sorts by the product.

    Depth is how many links a page is away from the one named; a node without a depth counts as
    0. A negative score is divided instead, so that deeper is never better. Equal products keep
    their order. Inputs are never changed; the result holds copies.

    Example:
        >>> DepthDecay(rate=0.2).postprocess_nodes(nodes)
    """

    depth_key: str = Field(default="depth", description="Metadata key of the page's depth.")
    rate: float = Field(default=0.1, ge=0, le=1, description="What one link costs.")
    floor: float = Field(default=0.5, gt=0, le=1, description="Least multiplier.")

    @classmethod
    @override
    def class_name(cls) -> str:
        return "DepthDecay"

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        lowered = [rescored(item.node, self._lowered(item)) for item in nodes]
        return sorted(lowered, key=lambda item: -score_of(item))

    def _lowered(self, item: NodeWithScore) -> float:
        score = score_of(item)
        depth = _depth(item.node.metadata.get(self.depth_key))
        weight = depth_weight(depth, rate=self.rate, floor=self.floor)
        return score * weight if score >= 0 else score / weight


def _depth(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < math.inf else 0.0
