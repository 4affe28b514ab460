"""Keeps as many nodes as fit a number of tokens; it shortens none."""

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.utils import get_tokenizer
from llama_index.postprocessor.webrag.nodes import rescored
from llama_index.postprocessor.webrag.selection import within_budget
from typing_extensions import override


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
