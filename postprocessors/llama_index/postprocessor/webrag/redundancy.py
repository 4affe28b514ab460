"""Leaves out nodes that repeat others and orders the rest by relevance and novelty."""

from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.nodes import rescored, score_of
from llama_index.postprocessor.webrag.selection import choose_distinct, shingles
from typing_extensions import override


class RedundancyFilter(BaseNodePostprocessor):
    """Maximal marginal relevance with the Jaccard similarity of word 3-shingles.

    Nodes are chosen one by one: next comes the one with the highest `1 - diversity` times its
    relevance minus `diversity` times its similarity to what was already chosen. Relevance is the
    score, scaled so that the best is 1 and the worst 0. A node more similar than `ceiling` to a
    chosen one is left out. The best node is always chosen, and scores stay as they are, so with
    a diversity the result is not sorted by score. Equal nodes keep their order.

    No model and no embedding is needed. Inputs are never changed; the result holds copies.

    Example:
        >>> RedundancyFilter(top_n=5).postprocess_nodes(nodes)
    """

    top_n: int | None = Field(default=None, ge=1, description="Nodes kept; None keeps all.")
    ceiling: float = Field(
        default=0.85, ge=0, le=1, description="Similarity above which a node is a repetition."
    )
    diversity: float = Field(
        default=0.3, ge=0, le=1, description="Weight of novelty; 0 orders by relevance alone."
    )
    metadata_mode: MetadataMode = Field(
        default=MetadataMode.NONE, description="Which rendering of the nodes is compared."
    )

    @classmethod
    @override
    def class_name(cls) -> str:
        return "RedundancyFilter"

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        sets = [shingles(item.node.get_content(self.metadata_mode)) for item in nodes]
        chosen = choose_distinct(
            [score_of(item) for item in nodes],
            sets,
            ceiling=self.ceiling,
            diversity=self.diversity,
            top_n=self.top_n,
        )
        return [rescored(nodes[at].node, nodes[at].score) for at in chosen]
