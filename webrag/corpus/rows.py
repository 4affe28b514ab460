"""Turns a normalised page and its nodes into the rows that are stored. Does no I/O.

Every row is checked: its offsets cut exactly its text out of the page's markdown.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import NAMESPACE_OID, NAMESPACE_URL, UUID, uuid5

from llama_index.node_parser.webrag.metadata import FLAG_KEYS

from webrag.corpus.models import ParentChunk, images_of
from webrag.corpus.nodes import node_from_row, stored_metadata
from webrag.errors import StorageError
from webrag.ingestion.models import NormalizedDocument, OutgoingLink, is_generic_anchor
from webrag.lexical.analysis import analyze
from webrag.lexical.postings import PostingRow, pack_postings

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

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
