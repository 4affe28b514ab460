"""Lowers the score of nodes from pages far from where the search began; pure."""

import math
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.node_copies import rescored, score_of
from llama_index.postprocessor.webrag.selection import depth_weight
from typing_extensions import override


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
