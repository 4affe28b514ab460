"""Filters of nodes: by repetition, and by a number of tokens; they change no score."""

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.utils import get_tokenizer
from llama_index.postprocessor.webrag.nodes import rescored, score_of
from llama_index.postprocessor.webrag.selection import choose_distinct, shingles, within_budget
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


class TokenBudget(BaseNodePostprocessor):
    """Keeps the longest run of nodes, from the first, whose tokens stay within the budget.

    The first node is always kept, even when it alone exceeds the budget: no answer would be
    worse. Order and scores stay as they are. Inputs are never changed; the result holds copies.

    Example:
        >>> TokenBudget(max_tokens=4000).postprocess_nodes(nodes)
    """

    max_tokens: int = Field(ge=0, description="Tokens of all kept nodes together.")
    tokenizer: Callable[[str], Sequence[Any]] = Field(
        default_factory=get_tokenizer, exclude=True, description="Turns a text into its tokens."
    )
    metadata_mode: MetadataMode = Field(
        default=MetadataMode.LLM, description="Which rendering of the nodes is counted."
    )

    @classmethod
    @override
    def class_name(cls) -> str:
        return "TokenBudget"

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        sizes = (len(self.tokenizer(item.node.get_content(self.metadata_mode))) for item in nodes)
        kept = within_budget(sizes, self.max_tokens)
        return [rescored(item.node, item.score) for item in nodes[:kept]]
