"""The node parser that users compose: its settings, and LlamaIndex's hooks."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, field_validator, model_validator
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.utils import get_tokenizer, get_tqdm_iterable
from typing_extensions import override

from .chunks import ChunkSizes, cut_chunks
from .fields import TEMPLATES, NodeFields, NodeSource, node_fields

_SIZES = ChunkSizes()


def _default_tokens(text: str) -> Sequence[Any]:
    # By name, so that a copy in another process finds the vocabulary that LlamaIndex ships:
    # a pickled tokenizer downloads it.
    tokens: Sequence[Any] = get_tokenizer()(text)
    return tokens


class ParentChildNodeParser(NodeParser):
    """Cuts markdown into parents (sections, for reading) and children (passages, for searching).

    Every node's text is a slice of its document's, at `start_char_idx` to `end_char_idx`. Parents
    follow each other, hold at most `parent_tokens`, and never cross a heading of their own or a
    higher level; children do the same within their parent, at `child_tokens`. Both together leave
    out nothing but white space. Node ids depend on a node's section and text, not on its place, so
    they survive edits elsewhere. A parent precedes its children; PREVIOUS and NEXT link nodes of
    one level. Nodes of a document without an address say in which line of it they begin (`line`).

    The embedding text is title, headings and text; all other modes give the text alone. Of a
    heading, nodes are told 500 characters, and of all headings above them the innermost 1,500;
    where a table goes on, its columns are the last of them. A document of more than 10,000,000
    characters, or one that would become more than 20,000 nodes, raises `DocumentTooLargeError`
    before a node is built.

    Attributes:
        parent_tokens: Tokens of a parent at most.
        child_tokens: Tokens of a child at most; children of one section are made about equal.
        tokenizer: Text to tokens; the default is cl100k_base, which needs no download.
        metadata_keys: Document metadata that nodes take over; None for all but the page's HTML.
            Whichever they are, only the title is part of the embedding text.
        html_key: Document metadata that holds the page's HTML. Parents whose content markdown
            flattens get their part of it under `html`, when it can be told for sure.
        source_url_key: Document metadata that relative image addresses are resolved against.
        id_func: Called with the number of the node in its document and the document, when given;
            by default ids are UUIDs derived from document id, headings and text.
    """

    parent_tokens: int = Field(default=_SIZES.parent_tokens, gt=0)
    child_tokens: int = Field(default=_SIZES.child_tokens, gt=0)
    tokenizer: Callable[[str], Sequence[Any]] = Field(default=_default_tokens, exclude=True)
    metadata_keys: list[str] | None = None
    title_key: str = "title"
    html_key: str = "html"
    source_url_key: str = "source_url"

    @field_validator("id_func", mode="before")
    @classmethod
    def _read_default(cls, value: Any) -> Any:
        # LlamaIndex 0.14 writes the name of the function, which it cannot read.
        is_default = isinstance(value, dict) and value["id_func_name"] == default_id_func.__name__
        return None if is_default else value

    @model_validator(mode="after")
    def _check_sizes(self) -> "ParentChildNodeParser":
        if self.child_tokens > self.parent_tokens:
            raise ValueError(
                f"child_tokens ({self.child_tokens}) must not exceed "
                f"parent_tokens ({self.parent_tokens})."
            )
        return self

    @classmethod
    def from_defaults(cls, **fields: Any) -> "ParentChildNodeParser":
        """Give a parser, as stock parsers are made; fields left out have their defaults."""
        return cls(**fields)

    @classmethod
    @override
    def class_name(cls) -> str:
        return "ParentChildNodeParser"

    @override
    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        parsed: list[BaseNode] = []
        for document in get_tqdm_iterable(nodes, show_progress, "Parsing nodes"):
            parsed += self._nodes(document)
        return parsed

    def _nodes(self, document: BaseNode) -> list[TextNode]:
        text = document.get_content(metadata_mode=MetadataMode.NONE)
        chunks = cut_chunks(
            text,
            ChunkSizes(self.parent_tokens, self.child_tokens),
            self.tokenizer,
            html=document.metadata.get(self.html_key),
            base_url=str(document.metadata.get(self.source_url_key) or ""),
        )
        inherited = self._inherited(document)
        source = NodeSource(
            document_id=document.node_id,
            text=text,
            metadata=inherited,
            title_key=self.title_key,
            has_address=bool(inherited.get(self.source_url_key)),
            not_embedded=tuple(getattr(document, "excluded_embed_metadata_keys", ())),
        )
        ids = None
        if self.id_func is not None and self.id_func is not default_id_func:
            ids = [self.id_func(number, document) for number in range(len(chunks))]
        fields = node_fields(source, chunks, ids, links_rows=self.include_prev_next_rel)
        origin = RelatedNodeInfo(
            node_id=document.node_id,
            node_type=ObjectType.DOCUMENT,
            metadata=source.metadata,
            hash=document.hash,
        )
        return [_text_node(each, origin) for each in fields]

    @override
    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self._parse_nodes, nodes, show_progress, **kwargs)

    @override
    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        # LlamaIndex would search offsets again, link across levels and copy the page's HTML into
        # every node. What remains is to point to the origin of documents that are nodes themselves.
        for node in nodes:
            document = parent_doc_map.get(node.ref_doc_id or "")
            if document is not None and document.source_node is not None:
                node.relationships[NodeRelationship.SOURCE] = document.source_node
        return nodes

    def _inherited(self, document: BaseNode) -> dict[str, Any]:
        """Give what every node takes over, the title first; the HTML is too much for that."""
        found = document.metadata
        wanted: Sequence[str] = [key for key in found if key != self.html_key]
        if not self.include_metadata:
            wanted = []
        elif self.metadata_keys is not None:
            wanted = self.metadata_keys
        order = sorted(wanted, key=lambda key: key != self.title_key)
        return {key: found[key] for key in order if found.get(key) is not None}


def _text_node(fields: NodeFields, origin: RelatedNodeInfo) -> TextNode:
    relationships: dict[NodeRelationship, Any] = {NodeRelationship.SOURCE: origin}
    for kind, related in fields.relationships.items():
        ids = related if isinstance(related, list) else [related]
        nodes = [RelatedNodeInfo(node_id=each, node_type=ObjectType.TEXT) for each in ids]
        relationships[NodeRelationship(kind)] = nodes if isinstance(related, list) else nodes[0]
    return TextNode(
        id_=fields.node_id,
        text=fields.text,
        start_char_idx=fields.start,
        end_char_idx=fields.end,
        metadata=fields.metadata,
        excluded_embed_metadata_keys=fields.excluded_embed_metadata_keys,
        excluded_llm_metadata_keys=fields.excluded_llm_metadata_keys,
        relationships=relationships,
        **TEMPLATES,
    )
