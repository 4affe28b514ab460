"""Reads and writes nodes in the JSON form a stock PGVectorStore keeps them in. Does no I/O."""

import json
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic_core import from_json

from webrag.ingestion.characters import storable_values

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, RelatedNodeInfo, TextNode

    NodeT = TypeVar("NodeT", bound=BaseNode)

NODE_COLUMNS = """c.node_id, c.text, c.metadata_ ->> '_node_content',
case when not c.metadata_ ? '_node_content' then c.metadata_ end"""
"""What `node_from_columns` takes, of a searched table `c`.

The metadata of a node stand twice in its row; reading them once takes half the time.
"""

STORE_KEYS = ("_node_content", "_node_type", "document_id", "doc_id", "ref_doc_id")
"""Keys that stand among the stored metadata of a node and are none of its own."""

_NOT_STORED = frozenset({"html"})  # kept once, with the parent
_SETTINGS = {
    "excluded_embed_metadata_keys",
    "excluded_llm_metadata_keys",
    "metadata_template",
    "metadata_separator",
    "text_template",
}


def storable_node(node: "NodeT") -> "NodeT":
    """Give a copy without NUL and half surrogate pairs, the node itself where it has none."""
    # The embedding is nearly all of a node, and the object behind an index node any object.
    told = node.model_dump(exclude={"embedding", "obj"})
    kept = storable_values(told)
    if kept == told:
        return node
    copy = type(node).from_dict(kept)
    held = {name: getattr(node, name) for name in ("embedding", "obj") if hasattr(node, name)}
    return copy.model_copy(update=held)


def stored_metadata(node: "BaseNode") -> dict[str, Any]:
    """Give the `metadata_` value of a node.

    The node's own metadata stand at the top level, where filters look, and once more in
    `_node_content`, from which a stock PGVectorStore rebuilds the node. The latter holds only
    what a node cannot be rebuilt without: about 60 % of what LlamaIndex writes.
    """
    dumped = node.model_dump(mode="json", include={"metadata"})["metadata"]
    metadata = {key: value for key, value in dumped.items() if key not in _NOT_STORED}
    settings = node.model_dump(mode="json", include=_SETTINGS, exclude_defaults=True)
    content = {
        "id_": node.node_id,
        "metadata": metadata,
        "relationships": _relationships(node),
        "start_char_idx": getattr(node, "start_char_idx", None),
        "end_char_idx": getattr(node, "end_char_idx", None),
        **settings,
        **_reference(node),
    }
    ref_doc_id = node.ref_doc_id or "None"
    return {
        **metadata,
        "_node_content": json.dumps(content, ensure_ascii=False),
        "_node_type": node.class_name(),
        "document_id": ref_doc_id,
        "doc_id": ref_doc_id,
        "ref_doc_id": ref_doc_id,
    }


def node_from_row(node_id: str, text: str, metadata: dict[str, Any] | None) -> "TextNode":
    """Rebuild a node from its row; rows written by others need no `_node_content`."""
    content = (metadata or {}).get("_node_content")
    return node_from_columns(node_id, text, content, metadata)


def node_from_columns(
    node_id: str, text: str, content: str | None, metadata: dict[str, Any] | None
) -> "TextNode":
    """As `node_from_row`, from `NODE_COLUMNS`; metadata count only where there is no content."""
    from llama_index.core.schema import IndexNode, TextNode

    if content is None:
        own = {key: value for key, value in (metadata or {}).items() if key not in STORE_KEYS}
        return TextNode(id_=node_id, text=text, metadata=own)
    stored = _parsed(content)
    kind = IndexNode if stored.pop("class_name", None) == IndexNode.class_name() else TextNode
    stored.pop("text_resource", None)
    return kind(**{**stored, "text": text})


def _parsed(content: str) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = from_json(content)
    except ValueError:  # it takes no half of a surrogate pair, which the slower one does
        parsed = json.loads(content)
    return parsed


def _reference(node: "BaseNode") -> dict[str, Any]:
    """What an IndexNode points to."""
    from llama_index.core.schema import IndexNode

    if not isinstance(node, IndexNode):
        return {}
    told = node.model_dump(mode="json", include={"index_id", "obj"}, exclude_none=True)
    return dict(storable_values(told))


def _relationships(node: "BaseNode") -> dict[str, Any]:
    """Ids only: LlamaIndex would repeat the related node's metadata here, HTML included."""
    from llama_index.core.schema import RelatedNodeInfo

    return {
        str(kind.value): _bare(related)
        if isinstance(related, RelatedNodeInfo)
        else list(map(_bare, related))
        for kind, related in node.relationships.items()
    }


def _bare(related: "RelatedNodeInfo") -> dict[str, Any]:
    return related.model_dump(mode="json", include={"node_id", "node_type"})
