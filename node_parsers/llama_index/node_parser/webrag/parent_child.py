"""The node parser that users compose: its settings, and LlamaIndex's hooks."""

import asyncio
import json
import re
import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from llama_index.core.bridge.pydantic import Field, model_validator
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

from . import metadata as keys
from .chunks import Chunk, ChunkSizes, cut_chunks

_NAMESPACE: Final = uuid.UUID("6f1f2d0e-5f0b-5b8c-9a55-3d6f0b0b7a10")


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How documents are parsed; as the fields of `ParentChildNodeParser`, if not said otherwise.

    Attributes:
        links_rows: Nodes of one level get PREVIOUS and NEXT.
        id_func: None derives ids from document id, headings and text.
    """

    parent_tokens: int
    child_tokens: int
    tokenizer: Callable[[str], Sequence[Any]]
    metadata_keys: tuple[str, ...] | None
    title_key: str
    html_key: str
    source_url_key: str
    links_rows: bool
    id_func: Callable[[int, BaseNode], str] | None


class DocumentNodes:
    """The nodes of one document.

    Args:
        document: What is cut.
        options: What its nodes carry.
        chunks: What `cut_chunks` made of its text; None to cut it here.

    Raises:
        DocumentTooLargeError: The document is beyond what can be cut.
    """

    def __init__(
        self, document: BaseNode, options: NodeOptions, chunks: Sequence[Chunk] | None = None
    ) -> None:
        self._options = options
        self._document = document
        self._text = document.get_content(metadata_mode=MetadataMode.NONE)
        self._chunks = cut_document(document, options) if chunks is None else chunks
        self._inherited = self._inherited_metadata()
        self._source = RelatedNodeInfo(
            node_id=document.node_id,
            node_type=ObjectType.DOCUMENT,
            metadata=self._inherited,
            hash=document.hash,
        )

    def nodes(self) -> list[BaseNode]:
        """All nodes in page order, a parent before its children."""
        chunks = self._chunks
        ids = self._ids(chunks)
        nodes = [self._node(chunk, id_) for chunk, id_ in zip(chunks, ids, strict=True)]
        _link_family(chunks, nodes)
        if self._options.links_rows:
            for level in ("parent", "child"):
                _link_row([n for c, n in zip(chunks, nodes, strict=True) if c.level == level])
        return list(nodes)

    def _ids(self, chunks: Sequence[Chunk]) -> list[str]:
        if self._options.id_func is not None:
            return [self._options.id_func(number, self._document) for number in range(len(chunks))]
        seen: Counter[str] = Counter()
        ids: list[str] = []
        for chunk in chunks:
            text = self._text[chunk.start : chunk.end]
            name = json.dumps([self._document.node_id, chunk.level, chunk.path, text])
            ids.append(str(uuid.uuid5(_NAMESPACE, f"{name}{seen[name]}")))
            seen[name] += 1
        return ids

    def _node(self, chunk: Chunk, node_id: str) -> TextNode:
        section = self._section(chunk.path)
        data: dict[str, Any] = dict(self._inherited)
        if section:
            data[keys.SECTION] = section
        if chunk.image_text:
            data[keys.IMAGE_TEXT] = chunk.image_text
        data[keys.CHUNK_LEVEL] = chunk.level
        data[keys.CHUNK_INDEX] = chunk.index
        data[keys.HEADING] = chunk.path[-1] if chunk.path else None
        data[keys.HEADING_PATH] = list(chunk.path)
        data[keys.TOKEN_START] = chunk.first_token
        data[keys.TOKEN_END] = chunk.first_token + chunk.tokens
        data |= chunk.flags
        data[keys.IMAGES] = chunk.images
        if not self._inherited.get(self._options.source_url_key):
            data[keys.LINE] = self._line_of(chunk.start)
        if chunk.html:
            data[keys.HTML] = chunk.html
        embedded = {self._options.title_key, keys.SECTION, keys.IMAGE_TEXT}
        embedded -= set(getattr(self._document, "excluded_embed_metadata_keys", ()))
        return TextNode(
            id_=node_id,
            text=self._text[chunk.start : chunk.end],
            start_char_idx=chunk.start,
            end_char_idx=chunk.end,
            metadata=data,
            excluded_embed_metadata_keys=[key for key in data if key not in embedded],
            excluded_llm_metadata_keys=list(data),
            metadata_template="{value}",
            metadata_separator="\n",
            text_template="{metadata_str}\n\n{content}",
            relationships={NodeRelationship.SOURCE: self._source},
        )

    def _inherited_metadata(self) -> dict[str, Any]:
        """What every node takes over, the title first; the page's HTML is too much for that."""
        found, options = self._document.metadata, self._options
        wanted = options.metadata_keys
        if wanted is None:
            wanted = tuple(key for key in found if key != options.html_key)
        order = sorted(wanted, key=lambda key: key != options.title_key)
        return {key: found[key] for key in order if found.get(key) is not None}

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self._text)]

    def _line_of(self, offset: int) -> int:
        """Number of the line that a chunk begins in, from 1."""
        return bisect_left(self._line_ends, offset) + 1

    def _section(self, path: tuple[str, ...]) -> str:
        """Headings as one line, without a first one that only repeats the title."""
        title = self._inherited.get(self._options.title_key)
        if path and isinstance(title, str) and path[0].casefold() == title.strip().casefold():
            path = path[1:]
        return " > ".join(path)


def cut_document(document: BaseNode, options: NodeOptions) -> list[Chunk]:
    """The chunks of a document, cut here."""
    return cut_chunks(
        document.get_content(metadata_mode=MetadataMode.NONE),
        ChunkSizes(options.parent_tokens, options.child_tokens),
        options.tokenizer,
        html=document.metadata.get(options.html_key),
        base_url=str(document.metadata.get(options.source_url_key) or ""),
    )


def _related(node: BaseNode) -> RelatedNodeInfo:
    return RelatedNodeInfo(node_id=node.node_id, node_type=ObjectType.TEXT)


def _link_family(chunks: Sequence[Chunk], nodes: Sequence[TextNode]) -> None:
    children: dict[int, list[RelatedNodeInfo]] = {}
    for chunk, node in zip(chunks, nodes, strict=True):
        if chunk.level == "child":
            node.relationships[NodeRelationship.PARENT] = _related(nodes[chunk.parent])
            children.setdefault(chunk.parent, []).append(_related(node))
    for number, family in children.items():
        nodes[number].relationships[NodeRelationship.CHILD] = family


def _link_row(nodes: Sequence[TextNode]) -> None:
    for before, after in pairwise(nodes):
        before.relationships[NodeRelationship.NEXT] = _related(after)
        after.relationships[NodeRelationship.PREVIOUS] = _related(before)


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
    heading, nodes are told 500 characters, and of all headings above them the innermost 1,500. A
    document of more than 10,000,000 characters, or one that would become more than 20,000 nodes,
    raises `DocumentTooLargeError` before a node is built.

    Attributes:
        parent_tokens: Tokens of a parent at most.
        child_tokens: Tokens of a child at most; children of one section are made about equal.
        tokenizer: Text to tokens; the default is cl100k_base, which needs no download.
        metadata_keys: Document metadata that nodes take over; None for all but the page's HTML.
            Whichever they are, only the title is part of the embedding text.
        title_key: Document metadata that holds the title.
        html_key: Document metadata that holds the page's HTML. Parents whose content markdown
            flattens get their part of it under `html`, when it can be told for sure.
        source_url_key: Document metadata that relative image addresses are resolved against.
        id_func: Called with the number of the node in its document and the document, when given;
            by default ids are UUIDs derived from document id, headings and text.
    """

    parent_tokens: int = Field(
        default=_SIZES.parent_tokens, gt=0, description="Tokens of a parent at most."
    )
    child_tokens: int = Field(
        default=_SIZES.child_tokens, gt=0, description="Tokens of a child at most."
    )
    tokenizer: Callable[[str], Sequence[Any]] = Field(
        default=_default_tokens, exclude=True, description="Text to tokens."
    )
    metadata_keys: list[str] | None = Field(
        default=None, description="Document metadata that nodes take over; None for all."
    )
    title_key: str = Field(default="title", description="Metadata key of the title.")
    html_key: str = Field(default="html", description="Metadata key of the page's HTML.")
    source_url_key: str = Field(default="source_url", description="Metadata key of the address.")

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
        options = self._options()
        parsed: list[BaseNode] = []
        for document in get_tqdm_iterable(nodes, show_progress, "Parsing nodes"):
            parsed += DocumentNodes(document, options).nodes()
        return parsed

    def nodes_from_chunks(self, document: BaseNode, chunks: Sequence[Chunk]) -> list[BaseNode]:
        """The nodes of a document that was cut elsewhere, for example in another process.

        Args:
            document: What was cut.
            chunks: What `cut_chunks` made of its text with this parser's sizes.
        """
        return DocumentNodes(document, self._options(), chunks).nodes()

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

    def _metadata_keys(self) -> tuple[str, ...] | None:
        if not self.include_metadata:
            return ()
        return None if self.metadata_keys is None else tuple(self.metadata_keys)

    def _options(self) -> NodeOptions:
        return NodeOptions(
            parent_tokens=self.parent_tokens,
            child_tokens=self.child_tokens,
            tokenizer=self.tokenizer,
            metadata_keys=self._metadata_keys(),
            title_key=self.title_key,
            html_key=self.html_key,
            source_url_key=self.source_url_key,
            links_rows=self.include_prev_next_rel,
            id_func=None if self.id_func is default_id_func else self.id_func,
        )
