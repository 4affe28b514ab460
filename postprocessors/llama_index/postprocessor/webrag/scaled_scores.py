"""Brings another reranker's scores to between 0 and 1; it ranks nothing anew."""

import math
from collections.abc import Sequence
from typing import Literal, Self

from llama_index.core.bridge.pydantic import Field, SerializeAsAny, model_validator
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.nodes import rescored
from typing_extensions import override


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
