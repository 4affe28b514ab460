"""Gives nodes of a pipeline a place among the rows of a page. Does no I/O.

Offsets cut the exact text out of the page's markdown, which grows by what it lacks.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship
from llama_index.core.utils import get_tokenizer

from webrag.errors import InputError
from webrag.indexing.lexical import analyze
from webrag.indexing.page_rows import (
    ChildRow,
    ParentRow,
    child_row,
    parent_id_of,
    parent_row,
    row_id,
)
from webrag.ingestion.links import canonical_url

__all__ = ["AddedPage", "PageEnd", "PlacedNodes", "pages_of_nodes", "place_nodes"]


class PageEnd(NamedTuple):
    """Where the stored page ends that nodes are added to; all empty for one that is not stored."""

    markdown: str = ""
    next_ordinal: int = 0
    next_chunk: int = 0
    next_token: int = 0


@dataclass(frozen=True, slots=True)
class AddedPage:
    """The nodes of one page, made into rows as far as that goes without knowing the page.

    Attributes:
        url: The page's address, or `node:` and the id of its document.
        title: The page's, from the metadata.
        parents: Rows of the nodes that have children; their positions are still open.
        children: Rows of the searched nodes; their positions are still open.
        lone_parents: A row for each searched node that is a parent's only child, by its id, to be
            used unless its parent is stored.
        tokens: How long each parent is, lone ones included.
        terms: What the lexical index holds of each searched node.
        embeddings: The vector of each searched node.
    """

    url: str
    title: str | None
    parents: list[ParentRow]
    children: list[ChildRow]
    lone_parents: dict[str, ParentRow]
    tokens: dict[UUID, int]
    terms: list[list[str]]
    embeddings: list[list[float]]


@dataclass(frozen=True, slots=True)
class PlacedNodes:
    """Rows in their places, and the text of the page they belong to."""

    parents: list[ParentRow]
    children: list[ChildRow]
    markdown: str

    @property
    def token_count(self) -> int:
        """How long the page is."""
        return max((parent.token_end for parent in self.parents), default=0)


def pages_of_nodes(nodes: Sequence[BaseNode]) -> list[AddedPage]:
    """Give the pages that nodes belong to, in one order of their addresses.

    Of nodes that have children only the lowest become parents. This does nearly all the work of
    storing nodes, and takes about a millisecond for each.
    """
    leaves = [node for node in nodes if NodeRelationship.CHILD not in node.relationships]
    inner = [node for node in nodes if NodeRelationship.CHILD in node.relationships]
    inner_ids = {node.node_id for node in inner}
    lowest = [node for node in inner if not inner_ids & {c.node_id for c in node.child_nodes or []}]
    by_page: dict[str, tuple[list[BaseNode], list[BaseNode]]] = defaultdict(lambda: ([], []))
    for place, group in enumerate((lowest, leaves)):
        for node in group:
            by_page[_page_key(node)][place].append(node)
    return [_page(url, *by_page[url]) for url in sorted(by_page)]


def place_nodes(page: AddedPage, end: PageEnd, stored_parents: Set[UUID]) -> PlacedNodes:
    """Give every node a place in the page's text, behind what it holds.

    Args:
        page: Its new nodes.
        end: Where the page ends.
        stored_parents: Rows that stand already and may be the parents of new nodes.
    """
    known = stored_parents | {parent.id for parent in page.parents}
    lone = [
        page.lone_parents[child.node_id] for child in page.children if child.parent_id not in known
    ]
    markdown, token = end.markdown, end.next_token
    parents: list[ParentRow] = []
    for index, row in enumerate([*page.parents, *lone], end.next_chunk):
        markdown, start = _located(markdown, row.text, row.char_start)
        token_end = token + page.tokens[row.id]
        parents.append(
            replace(
                row,
                chunk_index=index,
                char_start=start,
                char_end=start + len(row.text),
                token_start=token,
                token_end=token_end,
            )
        )
        token = token_end
    spans = {row.id: (row.char_start, row.char_end) for row in parents}
    children: list[ChildRow] = []
    for ordinal, child in enumerate(page.children, end.next_ordinal):
        parent_id = child.parent_id
        if parent_id not in known:
            parent_id = page.lone_parents[child.node_id].id
        around = spans.get(parent_id, (0, None))
        markdown, start = _located(markdown, child.text, child.char_start, *around)
        children.append(
            replace(
                child,
                parent_id=parent_id,
                ordinal=ordinal,
                char_start=start,
                char_end=start + len(child.text),
            )
        )
    return PlacedNodes(parents, children, markdown)


def _page(url: str, inner: Sequence[BaseNode], leaves: Sequence[BaseNode]) -> AddedPage:
    children = [child_row(leaf, 0) for leaf in leaves]
    present = {row_id(node.node_id) for node in inner}
    alone = [leaf for leaf in leaves if parent_id_of(leaf) not in present]
    count_tokens = get_tokenizer()
    return AddedPage(
        url=url,
        title=(*inner, *leaves)[0].metadata.get("title"),
        parents=[parent_row(node, 0) for node in inner],
        children=children,
        lone_parents={leaf.node_id: parent_row(leaf, 0) for leaf in alone},
        tokens={row_id(node.node_id): _tokens(node, count_tokens) for node in (*inner, *alone)},
        terms=[analyze(child.indexed_text) for child in children],
        embeddings=[leaf.get_embedding() for leaf in leaves],
    )


def _tokens(node: BaseNode, count_tokens: Callable[[str], Sequence[Any]]) -> int:
    """Of a node's text; counting takes longer than all else, so what the parser noted will do."""
    start, end = _number(node.metadata, "token_start"), _number(node.metadata, "token_end")
    if start is not None and end is not None and end > start:
        return end - start
    return len(count_tokens(node.get_content(MetadataMode.NONE)))


def _number(metadata: Mapping[str, Any], key: str) -> int | None:
    value = metadata.get(key)
    return value if isinstance(value, int) else None


def _located(
    markdown: str, text: str, hint: int, start: int = 0, end: int | None = None
) -> tuple[str, int]:
    """Where a text stands: as its node says, else within a range, else behind all the rest."""
    if start <= hint and markdown.startswith(text, hint, end):
        return markdown, hint
    found = markdown.find(text, start, end)
    if found >= 0:
        return markdown, found
    joined = f"{markdown}\n\n" if markdown else ""
    return joined + text, len(joined)


def _page_key(node: BaseNode) -> str:
    """The address nodes of one document are stored under."""
    source_url = node.metadata.get("source_url")
    if isinstance(source_url, str):
        try:
            return canonical_url(source_url)
        except InputError:
            return f"node:{source_url}"
    return f"node:{node.ref_doc_id or node.node_id}"
