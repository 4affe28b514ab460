"""Postprocessors that change scores: by age, by depth, and to between 0 and 1."""

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Final, Literal, Self

from llama_index.core.bridge.pydantic import Field, SerializeAsAny, model_validator
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.nodes import rescored, score_of
from llama_index.postprocessor.webrag.selection import age_s, depth_weight, shares_of_range
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
        base = [score_of(item) for item in nodes]
        if any(score < 0 or score > 1 for score in base):
            base = shares_of_range(base)
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


class ScaledScores(BaseNodePostprocessor):
    """Runs a reranker and maps its scores to [0, 1], for whatever compares them with thresholds.

    Cross-encoders give logits, whose logistic function is a probability; a language model asked
    for a grade gives one from 1 to 10. The order stays as the reranker made it, and what lies
    beyond a range counts as its end. A score that is missing or not a number becomes 0.0. The
    result holds copies.

    Example:
        >>> ScaledScores(reranker=LLMRerank(top_n=20), scale=(0, 10))
    """

    reranker: SerializeAsAny[BaseNodePostprocessor] = Field(description="Gives the scores.")
    scale: Literal["logistic"] | tuple[float, float] = Field(
        default="logistic",
        description="`logistic`, or the lowest and the highest score the reranker can give.",
    )

    @classmethod
    @override
    def class_name(cls) -> str:
        return "ScaledScores"

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        if self.scale != "logistic" and not self.scale[0] < self.scale[1]:
            raise ValueError("scale must name a lower score first, then a higher one.")
        return self

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self._scaled(self.reranker.postprocess_nodes(_copies(nodes), query_bundle))

    @override
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        ranked = await self.reranker.apostprocess_nodes(_copies(nodes), query_bundle)
        return self._scaled(ranked)

    def _scaled(self, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        return [rescored(item.node, self._unit(item.score)) for item in nodes]

    def _unit(self, score: float | None) -> float:
        if score is None or math.isnan(score):
            return 0.0
        if self.scale == "logistic":
            return 0.5 * (1 + math.tanh(float(score) / 2))  # never overflows
        low, high = self.scale
        return (min(max(float(score), low), high) - low) / (high - low)


def _copies(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Some rerankers write their scores into the nodes they are given."""
    return [rescored(item.node, item.score) for item in nodes]
