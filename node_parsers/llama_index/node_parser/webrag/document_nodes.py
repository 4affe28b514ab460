"""One markdown document to parent and child nodes with exact offsets.

Joins structure, sizes, rich content and identity; the cutting itself is in `segmentation`.
"""

import json
import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)

from . import metadata as keys
from .blocks import parse_outline
from .outline import Heading
from .rich_content import RichContent
from .sections import plan_parents
from .segmentation import Piece, Segmenter, trim
from .tokens import TokenCounter

__all__ = ["DocumentNodes", "NodeOptions"]

_NAMESPACE: Final = uuid.UUID("6f1f2d0e-5f0b-5b8c-9a55-3d6f0b0b7a10")
_Level = Literal["parent", "child"]


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
    metadata_keys: tuple[str, ...]
    title_key: str
    html_key: str
    source_url_key: str
    links_rows: bool
    id_func: Callable[[int, BaseNode], str] | None


@dataclass(frozen=True, slots=True)
class _Chunk:
    level: _Level
    index: int
    start: int
    end: int
    after: int
    first_token: int
    tokens: int
    path: tuple[str, ...]
    parent: int


class DocumentNodes:
    """Parses one document."""

    def __init__(self, document: BaseNode, options: NodeOptions) -> None:
        self._options = options
        self._document = document
        self._text = document.get_content(metadata_mode=MetadataMode.NONE)
        self._counter = TokenCounter(options.tokenizer)
        self._segmenter = Segmenter(self._text, self._counter)
        self._outline = parse_outline(self._text)
        self._paths = _heading_paths(self._outline.headings)
        self._heading_starts = [heading.start for heading in self._outline.headings]
        self._inherited = self._inherited_metadata()
        self._source = RelatedNodeInfo(
            node_id=document.node_id,
            node_type=ObjectType.DOCUMENT,
            metadata=self._inherited,
            hash=document.hash,
        )

    def nodes(self) -> list[BaseNode]:
        """All nodes in page order, a parent before its children."""
        chunks = list(self._chunks())
        ids = self._ids(chunks)
        rich = RichContent(
            self._text,
            self._outline,
            self._document.metadata.get(self._options.html_key),
            str(self._document.metadata.get(self._options.source_url_key) or ""),
        )
        nodes = [self._node(chunk, id_, rich) for chunk, id_ in zip(chunks, ids, strict=True)]
        _link_family(chunks, nodes)
        if self._options.links_rows:
            for level in ("parent", "child"):
                _link_row([n for c, n in zip(chunks, nodes, strict=True) if c.level == level])
        return list(nodes)

    def _chunks(self) -> Iterator[_Chunk]:
        pieces = self._pieces()
        if not pieces:
            return
        offset = self._counter.count(self._text[: pieces[0].start]) if pieces[0].start else 0
        parents = plan_parents(
            pieces,
            self._segmenter,
            limit=self._options.parent_tokens,
            # A quarter of a child introduces; more is a passage of its own.
            lead=self._options.child_tokens // 4,
        )
        number = child_index = 0
        for index, group in enumerate(parents):
            parent = number
            path = self._path_at(group[0].start)
            yield self._chunk("parent", index, group, offset, path, parent)
            number += 1
            for part in self._segmenter.split(group, self._options.child_tokens):
                begin = next((piece.start for piece in part if not piece.level), part[0].start)
                path = self._path_at(begin)
                yield self._chunk("child", child_index, part, offset, path, parent)
                offset += sum(piece.tokens for piece in part)
                number += 1
                child_index += 1

    def _pieces(self) -> list[Piece]:
        count = self._counter.count
        return [
            Piece(
                unit.start,
                unit.end,
                count(self._text[unit.start : unit.end]),
                unit.cost,
                unit.prose,
                unit.level,
            )
            for unit in self._outline.units
        ]

    def _chunk(
        self,
        level: _Level,
        index: int,
        pieces: Sequence[Piece],
        offset: int,
        path: tuple[str, ...],
        parent: int,
    ) -> _Chunk:
        start, end = trim(self._text, pieces[0].start, pieces[-1].end)
        tokens = sum(piece.tokens for piece in pieces)
        return _Chunk(level, index, start, end, pieces[-1].end, offset, tokens, path, parent)

    def _path_at(self, offset: int) -> tuple[str, ...]:
        number = bisect_right(self._heading_starts, offset)
        return self._paths[number - 1] if number else ()

    def _ids(self, chunks: Sequence[_Chunk]) -> list[str]:
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

    def _node(self, chunk: _Chunk, node_id: str, rich: RichContent) -> TextNode:
        stretch = rich.stretch(chunk.start, chunk.end, after=chunk.after)
        section = self._section(chunk.path)
        data: dict[str, Any] = dict(self._inherited)
        if section:
            data[keys.SECTION] = section
        if stretch.image_text:
            data[keys.IMAGE_TEXT] = stretch.image_text
        data[keys.CHUNK_LEVEL] = chunk.level
        data[keys.CHUNK_INDEX] = chunk.index
        data[keys.HEADING] = chunk.path[-1] if chunk.path else None
        data[keys.HEADING_PATH] = list(chunk.path)
        data[keys.TOKEN_START] = chunk.first_token
        data[keys.TOKEN_END] = chunk.first_token + chunk.tokens
        data |= stretch.flags
        data[keys.IMAGES] = stretch.images
        if chunk.level == "parent" and stretch.is_lossy:
            html = rich.html(chunk.start, chunk.end)
            if html:
                data[keys.HTML] = html
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
        found = self._document.metadata
        order = sorted(self._options.metadata_keys, key=lambda key: key != self._options.title_key)
        return {key: found[key] for key in order if found.get(key) is not None}

    def _section(self, path: tuple[str, ...]) -> str:
        """Headings as one line, without a first one that only repeats the title."""
        title = self._inherited.get(self._options.title_key)
        if path and isinstance(title, str) and path[0].casefold() == title.strip().casefold():
            path = path[1:]
        return " > ".join(path)


def _heading_paths(headings: Sequence[Heading]) -> list[tuple[str, ...]]:
    """For each heading, the texts of those above it and its own; empty ones left out."""
    paths: list[tuple[str, ...]] = []
    above: list[Heading] = []
    for heading in headings:
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        paths.append(tuple(outer.text for outer in above if outer.text))
    return paths


def _related(node: BaseNode) -> RelatedNodeInfo:
    return RelatedNodeInfo(node_id=node.node_id, node_type=ObjectType.TEXT)


def _link_family(chunks: Sequence[_Chunk], nodes: Sequence[TextNode]) -> None:
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
