"""Copies of nodes with another score or more metadata, so that no input is ever changed."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.schema import BaseNode, NodeWithScore


def rescored(
    node: BaseNode, score: float | None, added: Mapping[str, Any] | None = None
) -> NodeWithScore:
    """A copy of a node with this score and `added` metadata, which no rendering shows."""
    extra = dict(added or {})
    copy = node.model_copy(
        update={
            "metadata": {**node.metadata, **extra},
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, *extra],
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, *extra],
        }
    )
    return NodeWithScore(node=copy, score=score)


def score_of(item: NodeWithScore) -> float:
    """The score; 0.0 where there is none."""
    return 0.0 if item.score is None else item.score
