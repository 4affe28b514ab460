"""Copies nodes with new scores, and gives the text of a node that a reranker reads."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore
from llama_index.postprocessor.webrag.rerank_features import Passage


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


def passage_of(node: BaseNode, *, title_key: str, heading_path_key: str) -> Passage:
    """Text, title and headings of a node; nothing of a question is known.

    Args:
        node: One heading alone may stand in place of their list.
        title_key: Metadata key of its page's title.
        heading_path_key: Metadata key of the headings above it.
    """
    headings = node.metadata.get(heading_path_key) or ()
    return Passage(
        text=node.get_content(metadata_mode=MetadataMode.NONE),
        title=str(node.metadata.get(title_key) or ""),
        headings=(headings,) if isinstance(headings, str) else tuple(map(str, headings)),
    )
