"""The node parser that users compose: its settings, and LlamaIndex's hooks."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, model_validator
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, Document, NodeRelationship
from llama_index.core.utils import get_tokenizer, get_tqdm_iterable
from typing_extensions import override

from .chunks import Chunk, ChunkSizes
from .document_nodes import DocumentNodes, NodeOptions

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
