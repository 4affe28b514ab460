"""Turns a normalised page and its nodes into the rows that are stored. Does no I/O.

Every row is checked: its offsets cut exactly its text out of the page's markdown.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import NAMESPACE_OID, NAMESPACE_URL, UUID, uuid5

from llama_index.node_parser.webrag import FLAG_KEYS, NodeFields, NodeSource, node_fields
from llama_index.node_parser.webrag.fields import CHILD, PARENT, TEMPLATES
from pydantic_core import from_json

from webrag.corpus.models import LinkCandidate, ParentChunk, images_of
from webrag.errors import StorageError
from webrag.ingestion.characters import storable_values
from webrag.ingestion.models import NormalizedDocument, OutgoingLink, is_generic_anchor
from webrag.lexical.postings import pack_texts

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, RelatedNodeInfo, TextNode
    from llama_index.node_parser.webrag import Chunk

    NodeT = TypeVar("NodeT", bound=BaseNode)

NODE_COLUMNS = """c.node_id, c.text, c.metadata_ ->> '_node_content',
case when not c.metadata_ ? '_node_content' then c.metadata_ end"""
"""Columns for `node_from_columns`; reading metadata, twice in a row, once takes half the time."""

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
    `_node_content`, which holds what a stock PGVectorStore cannot rebuild the node without.
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
    return _stored(metadata, content, node.class_name(), node.ref_doc_id or "None")


def _stored(
    metadata: dict[str, Any], content: dict[str, Any], node_type: str, document_id: str
) -> dict[str, Any]:
    return {
        **metadata,
        "_node_content": json.dumps(content, ensure_ascii=False),
        "_node_type": node_type,
        **dict.fromkeys(("document_id", "doc_id", "ref_doc_id"), document_id),
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


# As LlamaIndex writes a relationship and the types of nodes.
_SOURCE, _TEXT, _DOCUMENT = "1", "1", "4"

# Words about images that are searched with a passage; more would drown its own.
_MAX_IMAGE_CHARS: Final = 8_000


class ParentRow(ParentChunk):
    """One row of `parents`; fields are its columns."""

    html: str | None


@dataclass(frozen=True, slots=True)
class ChildRow:
    """One row of the searched table, without its embedding; PGVectorStore reads its metadata.

    Title, headings, text and image captions, the `indexed_text`, are embedded and counted by BM25.
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
class PageRows:
    """Everything one page puts into the database, apart from embeddings."""

    document: NormalizedDocument
    document_id: UUID
    depth: int
    token_count: int
    term_count: int
    parents: list[ParentRow]
    children: list[ChildRow]
    postings: Sequence[tuple[str, int, bytes]]
    links: list[LinkCandidate]


def document_id_of(url: str) -> UUID:
    """Stable id of the page with this canonical URL."""
    return uuid5(NAMESPACE_URL, url)


def build_page_rows(
    document: NormalizedDocument, nodes: "Sequence[BaseNode]", *, depth: int
) -> PageRows:
    """Give the rows of a page that any node parser has cut; nodes with children are parents.

    A node whose offsets do not cut its text is refused; one without a parent is its own. Of
    parents of parents, the lowest count.
    """
    fields = [fields_of(node) for node in nodes]
    known = {each.node_id: each for each in fields}
    families = [(each, known.get(str(each.relationships.get(PARENT)))) for each in fields]
    # HierarchicalNodeParser counts from the beginning of the parent, which comes first.
    is_relative = any(up and not up.start <= e.start <= e.end <= up.end for e, up in families)
    for each, parent in families:
        length, start = each.end - each.start, parent.start if parent else 0
        places = sorted((each.start, each.start + start), reverse=is_relative)
        found = [at for at in places if document.markdown[at : at + length] == each.text]
        if not found:
            raise StorageError(
                f"{document.url} was not stored: the text of chunk {each.node_id} is not at its "
                f"offsets {each.start}-{each.end}, so it could not be cited."
            )
        each.start, each.end = found[0], found[0] + length
        _take_over(document.metadata, each.node)
    rows = _page_rows(document, fields, depth)
    postings, term_count = pack_texts(child.indexed_text for child in rows.children)
    return replace(rows, postings=postings, term_count=term_count)


def rows_of_chunks(
    document: NormalizedDocument, chunks: "Sequence[Chunk]", *, depth: int
) -> PageRows:
    """Give the rows of a page that was cut already, without postings."""
    return _page_rows(document, document_fields(document, chunks), depth)


def document_fields(
    document: NormalizedDocument, chunks: "Sequence[Chunk]", ids: Sequence[str] | None = None
) -> list[NodeFields]:
    """Make the nodes of a page from its chunks, as `ParentChildNodeParser` makes them.

    To make their ids takes longer than the rest: where none is asked for, any may be given.
    """
    metadata = {"title": document.title, "source_url": document.url}
    source = NodeSource(
        document_id=str(document_id_of(document.url)),
        text=document.markdown,
        metadata={key: value for key, value in metadata.items() if value},
    )
    fields = node_fields(source, chunks, ids)
    for each in fields:
        _take_over(document.metadata, each)
    return fields


def _page_rows(document: NormalizedDocument, fields: Sequence[NodeFields], depth: int) -> PageRows:
    leaves = [each for each in fields if CHILD not in each.relationships]
    wanted = {leaf.relationships.get(PARENT) for leaf in leaves}
    families = [e for e in fields if CHILD in e.relationships and e.node_id in wanted]
    known = {each.node_id for each in families}
    families += [leaf for leaf in leaves if leaf.relationships.get(PARENT) not in known]
    families.sort(key=attrgetter("start"))
    leaves.sort(key=attrgetter("start"))
    parents = [parent_row(each, index) for index, each in enumerate(families)]
    return PageRows(
        document=document,
        document_id=document_id_of(document.url),
        depth=depth,
        token_count=max((parent.token_end for parent in parents), default=0),
        term_count=0,
        parents=parents,
        children=[child_row(each, index) for index, each in enumerate(leaves)],
        postings=[],
        links=link_candidates(document.url, document.links),
    )


def _take_over(given: Mapping[str, Any], node: "BaseNode | NodeFields") -> None:
    """Give a node its document's own metadata, which are filtered by and neither read nor shown."""
    added = {key: value for key, value in given.items() if key not in node.metadata}
    node.metadata.update(added)
    node.excluded_embed_metadata_keys += list(added)
    node.excluded_llm_metadata_keys += list(added)


@dataclass(slots=True)
class _FieldsOfNode(NodeFields):
    """The fields of a node that any parser made, which says itself how it is shown."""

    node: "BaseNode" = field(kw_only=True)

    @property
    def embedded_text(self) -> str:
        from llama_index.core.schema import MetadataMode

        return self.node.get_content(MetadataMode.EMBED)


def fields_of(node: "BaseNode") -> _FieldsOfNode:
    """Give the fields of a node that any parser made; what it lacks gets neutral values."""
    from llama_index.core.schema import MetadataMode, NodeRelationship

    text = node.get_content(MetadataMode.NONE)
    start, end = (getattr(node, name, None) for name in ("start_char_idx", "end_char_idx"))
    parent = node.parent_node
    relationships: dict[str, str | list[str]] = {}
    if parent is not None:
        relationships[PARENT] = parent.node_id
    if NodeRelationship.CHILD in node.relationships:
        relationships[CHILD] = []
    return _FieldsOfNode(
        node_id=node.node_id,
        text=text,
        start=0 if start is None else int(start),
        end=len(text) if end is None else int(end),
        metadata=node.metadata,
        excluded_embed_metadata_keys=node.excluded_embed_metadata_keys,
        excluded_llm_metadata_keys=node.excluded_llm_metadata_keys,
        relationships=relationships,
        node=node,
    )


def parent_row(fields: NodeFields, index: int) -> ParentRow:
    """Give the row of a parent node; what its metadata lacks gets neutral values."""
    metadata = fields.metadata
    flags: dict[str, Any] = {flag: bool(metadata.get(flag)) for flag in FLAG_KEYS}
    # Unchecked: what the metadata of somebody else's nodes hold is stored as it is.
    return ParentRow.model_construct(
        chunk_id=row_id(fields.node_id),
        chunk_index=index,
        section_heading=metadata.get("heading"),
        heading_path=tuple(metadata.get("heading_path") or ()),
        text=fields.text,
        html=metadata.get("html") or None,
        char_start=fields.start,
        char_end=fields.end,
        token_start=int(metadata.get("token_start", 0)),
        token_end=int(metadata.get("token_end", 0)),
        images=images_of(metadata.get("images")),
        **flags,
    )


def child_row(fields: NodeFields, ordinal: int) -> ChildRow:
    """Give the row of a searched node; without a parent it is its own."""
    searched = indexed_text_of(fields)
    stored = (
        stored_metadata(fields.node)
        if isinstance(fields, _FieldsOfNode)
        else _stored_fields(fields)
    )
    return ChildRow(
        node_id=fields.node_id,
        text=fields.text,
        indexed_text=searched,
        text_hash=hashlib.blake2b(searched.encode(), digest_size=16).digest(),
        metadata=stored,
        parent_id=parent_id_of(fields),
        ordinal=ordinal,
        char_start=fields.start,
        char_end=fields.end,
    )


def _stored_fields(fields: NodeFields) -> dict[str, Any]:
    """Give what `stored_metadata` would give of the node that is made of some fields."""
    metadata = {key: value for key, value in fields.metadata.items() if key not in _NOT_STORED}
    source = str(document_id_of(str(metadata.get("source_url"))))
    content = {
        "id_": fields.node_id,
        "metadata": metadata,
        "relationships": {
            _SOURCE: _related(source, _DOCUMENT),
            **{kind: _related(ids) for kind, ids in fields.relationships.items()},
        },
        "start_char_idx": fields.start,
        "end_char_idx": fields.end,
        "excluded_embed_metadata_keys": fields.excluded_embed_metadata_keys,
        "excluded_llm_metadata_keys": fields.excluded_llm_metadata_keys,
        "metadata_template": TEMPLATES["metadata_template"],
        "class_name": "TextNode",
    }
    return _stored(metadata, content, "TextNode", source)


def _related(ids: str | list[str], node_type: str = _TEXT) -> Any:
    if isinstance(ids, list):
        return [_related(each) for each in ids]
    return {"node_id": ids, "node_type": node_type, "class_name": "RelatedNodeInfo"}


def parent_id_of(fields: NodeFields) -> UUID:
    """Row id of a searched node's parent; without a parent it is its own."""
    return row_id(str(fields.relationships.get(PARENT) or fields.node_id))


def indexed_text(node_id: str, text: str, metadata: dict[str, Any] | None) -> str:
    """Give what was embedded and indexed of a stored child."""
    return indexed_text_of(fields_of(node_from_row(node_id, text, metadata)))


def indexed_text_of(fields: NodeFields) -> str:
    """Give what is embedded and indexed of a searched node."""
    text = fields.embedded_text
    images = images_of(fields.metadata.get("images"))
    said = [words for image in images for words in (image.alt, image.caption)]
    new = [words for words in dict.fromkeys(said) if words and words not in text]
    sizes = accumulate(map(len, new))
    kept = (each for each, size in zip(new, sizes, strict=True) if size <= _MAX_IMAGE_CHARS)
    return "\n".join([text, *kept])


def link_candidates(page_url: str, links: Sequence[OutgoingLink]) -> list[LinkCandidate]:
    """Give a page's links as they are stored, in page order, without links to the page itself."""
    return [
        LinkCandidate(
            source_url=page_url,
            url=link.url,
            title=link.title
            if link.title and is_generic_anchor(link.anchor_text)
            else link.anchor_text,
            description=link.sentence,
            heading=link.heading,
            rel=link.rel,
            char_start=link.char_start,
            char_end=link.char_end,
        )
        for link in links
        if link.url != page_url
    ]


def row_id(node_id: str) -> UUID:
    """Node ids of other parsers need not be UUIDs."""
    try:
        return UUID(node_id)
    except ValueError:
        return uuid5(NAMESPACE_OID, node_id)
