"""Turns a normalised page and its nodes into the rows that are stored. Does no I/O.

Every row is checked: its offsets cut exactly its text out of the page's markdown.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from uuid import NAMESPACE_OID, NAMESPACE_URL, UUID, uuid5

from llama_index.node_parser.webrag.metadata import FLAG_KEYS
from pydantic_core import from_json

from webrag.corpus.models import ParentChunk, images_of
from webrag.errors import StorageError
from webrag.ingestion.characters import storable_values
from webrag.ingestion.models import NormalizedDocument, OutgoingLink, is_generic_anchor
from webrag.lexical.analysis import analyze
from webrag.lexical.postings import PostingRow, pack_postings

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode


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


# Words about images that are searched with a passage; more would drown its own.
_MAX_IMAGE_CHARS: Final = 8_000


class ParentRow(ParentChunk):
    """One row of `parents`; fields are its columns."""

    html: str | None


@dataclass(frozen=True, slots=True)
class ChildRow:
    """One row of the searched table, without its embedding.

    Attributes:
        indexed_text: What is embedded and what BM25 sees: title, headings, text, image captions.
        text_hash: 16 bytes; equal exactly when `indexed_text` is equal.
        metadata: In the form PGVectorStore reads nodes from.
    """

    node_id: str
    text: str
    indexed_text: str
    text_hash: bytes
    metadata: dict[str, Any]
    parent_id: UUID
    ordinal: int
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One row of `link_candidates`; fields are its columns."""

    ordinal: int
    url: str
    title: str
    description: str
    heading: str | None = None
    rel: Sequence[str] = ()
    char_start: int | None = None
    char_end: int | None = None
    origin: Literal["page", "map"] = "page"


@dataclass(frozen=True, slots=True)
class PageRows:
    """Everything one page puts into the database, apart from embeddings.

    Attributes:
        depth: Links from a page the user named, of this acquisition.
        term_count: Sum of the children's lexical lengths.
    """

    document: NormalizedDocument
    document_id: UUID
    depth: int
    token_count: int
    term_count: int
    parents: list[ParentRow]
    children: list[ChildRow]
    postings: list[PostingRow]
    links: list[LinkRow]


def document_id_of(url: str) -> UUID:
    """Stable id of the page with this canonical URL."""
    return uuid5(NAMESPACE_URL, url)


def build_page_rows(
    document: NormalizedDocument, nodes: "Sequence[BaseNode]", *, depth: int
) -> PageRows:
    """Give the rows of a page, with the postings of its words.

    Raises:
        StorageError: As for `rows_without_postings`.
        TooManyPostingsError: The page has more words than can be indexed.
    """
    rows = rows_without_postings(document, nodes, depth=depth)
    terms = [analyze(child.indexed_text) for child in rows.children]
    return replace(rows, postings=pack_postings(terms), term_count=sum(map(len, terms)))


def rows_without_postings(
    document: NormalizedDocument, nodes: "Sequence[BaseNode]", *, depth: int
) -> PageRows:
    """Give the rows of a page whose words somebody else looks after.

    Args:
        document: The page.
        nodes: What the node parser made of `document.markdown`; nodes that have children are
            parents, the others are searched. A searched node without a parent is its own.
        depth: Links from a page the user named.

    Raises:
        StorageError: A node's offsets do not cut its text out of the markdown.
    """
    from llama_index.core.schema import NodeRelationship

    for node in nodes:
        _check_offsets(document, node)
        _take_over(document.metadata, node)
    parent_nodes = [node for node in nodes if NodeRelationship.CHILD in node.relationships]
    leaves = [node for node in nodes if NodeRelationship.CHILD not in node.relationships]
    known = {node.node_id for node in parent_nodes}
    parent_nodes += [leaf for leaf in leaves if _parent_of(leaf) not in known]
    parent_nodes.sort(key=lambda node: _offset(node, "start_char_idx"))
    leaves.sort(key=lambda node: _offset(node, "start_char_idx"))
    parents = [parent_row(node, index) for index, node in enumerate(parent_nodes)]
    children = [child_row(node, index) for index, node in enumerate(leaves)]
    return PageRows(
        document=document,
        document_id=document_id_of(document.url),
        depth=depth,
        token_count=max((parent.token_end for parent in parents), default=0),
        term_count=0,
        parents=parents,
        children=children,
        postings=[],
        links=link_rows(document.url, document.links),
    )


def _take_over(given: Mapping[str, Any], node: "BaseNode") -> None:
    """Give a node its document's own metadata, which are filtered by and neither read nor shown."""
    added = {key: value for key, value in given.items() if key not in node.metadata}
    node.metadata.update(added)
    node.excluded_embed_metadata_keys += list(added)
    node.excluded_llm_metadata_keys += list(added)


def parent_row(node: "BaseNode", index: int) -> ParentRow:
    """Give the row of a parent node; what its metadata lacks gets neutral values."""
    metadata = node.metadata
    start, end = _offset(node, "start_char_idx"), _offset(node, "end_char_idx")
    flags: dict[str, Any] = {flag: bool(metadata.get(flag)) for flag in FLAG_KEYS}
    # Unchecked: what the metadata of somebody else's nodes hold is stored as it is.
    return ParentRow.model_construct(
        chunk_id=row_id(node.node_id),
        chunk_index=index,
        section_heading=metadata.get("heading"),
        heading_path=tuple(metadata.get("heading_path") or ()),
        text=_own_text(node),
        html=metadata.get("html") or None,
        char_start=start,
        char_end=end,
        token_start=int(metadata.get("token_start", 0)),
        token_end=int(metadata.get("token_end", 0)),
        images=images_of(metadata.get("images")),
        **flags,
    )


def child_row(node: "BaseNode", ordinal: int) -> ChildRow:
    """Give the row of a searched node; without a parent it is its own."""
    searched = _indexed_text(node)
    return ChildRow(
        node_id=node.node_id,
        text=_own_text(node),
        indexed_text=searched,
        text_hash=hashlib.blake2b(searched.encode(), digest_size=16).digest(),
        metadata=stored_metadata(node),
        parent_id=parent_id_of(node),
        ordinal=ordinal,
        char_start=_offset(node, "start_char_idx"),
        char_end=_offset(node, "end_char_idx"),
    )


def parent_id_of(node: "BaseNode") -> UUID:
    """Row id of a searched node's parent; without a parent it is its own."""
    return row_id(_parent_of(node) or node.node_id)


def indexed_text(node_id: str, text: str, metadata: dict[str, Any] | None) -> str:
    """What was embedded and indexed of a stored child."""
    return _indexed_text(node_from_row(node_id, text, metadata))


def link_rows(page_url: str, links: Sequence[OutgoingLink]) -> list[LinkRow]:
    """Give the rows of a page's links, in page order, without links to the page itself."""
    rows: list[LinkRow] = []
    for link in links:
        if link.url == page_url:
            continue
        title = link.anchor_text
        if link.title and is_generic_anchor(title):
            title = link.title
        rows.append(
            LinkRow(
                ordinal=len(rows),
                url=link.url,
                title=title,
                description=link.sentence,
                heading=link.heading,
                rel=link.rel,
                char_start=link.char_start,
                char_end=link.char_end,
            )
        )
    return rows


def _check_offsets(document: NormalizedDocument, node: "BaseNode") -> None:
    start, end = _offset(node, "start_char_idx"), _offset(node, "end_char_idx")
    if document.markdown[start:end] != _own_text(node):
        raise StorageError(
            f"{document.url} was not stored: the text of chunk {node.node_id} is not at its "
            f"offsets {start}-{end}, so it could not be cited."
        )


def _own_text(node: "BaseNode") -> str:
    """Without metadata."""
    from llama_index.core.schema import MetadataMode

    return node.get_content(MetadataMode.NONE)


def _indexed_text(node: "BaseNode") -> str:
    from llama_index.core.schema import MetadataMode

    text = node.get_content(MetadataMode.EMBED)
    images = images_of(node.metadata.get("images"))
    said = [words for image in images for words in (image.alt, image.caption)]
    new = [words for words in dict.fromkeys(said) if words and words not in text]
    sizes = accumulate(map(len, new))
    kept = (each for each, size in zip(new, sizes, strict=True) if size <= _MAX_IMAGE_CHARS)
    return "\n".join([text, *kept])


def _parent_of(node: "BaseNode") -> str | None:
    return node.parent_node.node_id if node.parent_node is not None else None


def _offset(node: "BaseNode", name: str) -> int:
    value = getattr(node, name, None)
    if value is not None:
        return int(value)
    return 0 if name == "start_char_idx" else len(_own_text(node))


def row_id(node_id: str) -> UUID:
    """Node ids of other parsers need not be UUIDs."""
    try:
        return UUID(node_id)
    except ValueError:
        return uuid5(NAMESPACE_OID, node_id)
