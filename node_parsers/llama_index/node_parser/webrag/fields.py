"""Makes the fields of a document's nodes from its chunks; imports nothing of LlamaIndex."""

import json
import re
import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from . import outline as keys
from .chunks import Chunk

PREVIOUS: Final = "2"
NEXT: Final = "3"
PARENT: Final = "4"
CHILD: Final = "5"
"""Values of LlamaIndex's `NodeRelationship`."""

TEMPLATES: Final = {
    "metadata_template": "{value}",
    "metadata_separator": "\n",
    "text_template": "{metadata_str}\n\n{content}",
}
"""How a node shows its metadata before its text."""

_NAMESPACE: Final = uuid.UUID("6f1f2d0e-5f0b-5b8c-9a55-3d6f0b0b7a10")


@dataclass(frozen=True, slots=True)
class NodeSource:
    """The document that nodes are of, with metadata that every node takes over, the title first.

    Nodes of a document without an address say in which line they begin. Keys of `not_embedded`
    stay out of the embedding text.
    """

    document_id: str
    text: str
    metadata: dict[str, Any]
    title_key: str = "title"
    has_address: bool = True
    not_embedded: tuple[str, ...] = ()


@dataclass(slots=True)
class NodeFields:
    """The fields of a node; relationships are ids of related nodes, by the kind of relationship."""

    node_id: str
    text: str
    start: int
    end: int
    metadata: dict[str, Any]
    excluded_embed_metadata_keys: list[str]
    excluded_llm_metadata_keys: list[str]
    relationships: dict[str, str | list[str]] = field(default_factory=dict)

    @property
    def embedded_text(self) -> str:
        """The embedding text: title, headings, words of images, then the text itself."""
        left_out = set(self.excluded_embed_metadata_keys)
        values = [str(value) for key, value in self.metadata.items() if key not in left_out]
        lead = TEMPLATES["metadata_separator"].join(values).strip()
        return f"{lead}\n\n{self.text}".strip() if lead else self.text


def node_fields(
    source: NodeSource,
    chunks: Sequence[Chunk],
    ids: Sequence[str] | None = None,
    *,
    links_rows: bool = True,
) -> list[NodeFields]:
    """Make the nodes of a document in page order, a parent before its children.

    Without `ids` they derive from document id, headings and text; `links_rows` gives nodes of
    one level PREVIOUS and NEXT.
    """
    if ids is None:
        ids = _ids(source, chunks)
    line_ends = [] if source.has_address else [m.start() for m in re.finditer("\n", source.text)]
    nodes = []
    for chunk, node_id in zip(chunks, ids, strict=True):
        line = None if source.has_address else bisect_left(line_ends, chunk.start) + 1
        nodes.append(_fields(source, chunk, node_id, line))
    _link_family(chunks, nodes)
    if links_rows:
        for level in ("parent", "child"):
            row = [node for chunk, node in zip(chunks, nodes, strict=True) if chunk.level == level]
            for before, after in pairwise(row):
                before.relationships[NEXT] = after.node_id
                after.relationships[PREVIOUS] = before.node_id
    return nodes


def _ids(source: NodeSource, chunks: Sequence[Chunk]) -> list[str]:
    seen: Counter[str] = Counter()
    ids: list[str] = []
    for chunk in chunks:
        text = source.text[chunk.start : chunk.end]
        name = json.dumps([source.document_id, chunk.level, chunk.path, text])
        ids.append(str(uuid.uuid5(_NAMESPACE, f"{name}{seen[name]}")))
        seen[name] += 1
    return ids


def _fields(source: NodeSource, chunk: Chunk, node_id: str, line: int | None) -> NodeFields:
    data = dict(source.metadata)
    if section := _section(source, chunk.path):
        data[keys.SECTION] = section
    if chunk.image_text:
        data[keys.IMAGE_TEXT] = chunk.image_text
    data[keys.CHUNK_LEVEL] = chunk.level
    data[keys.CHUNK_INDEX] = chunk.index
    data[keys.HEADING] = chunk.heading
    data[keys.HEADING_PATH] = list(chunk.path)
    data[keys.TOKEN_START] = chunk.first_token
    data[keys.TOKEN_END] = chunk.first_token + chunk.tokens
    data |= chunk.flags
    data[keys.IMAGES] = chunk.images
    if line is not None:
        data[keys.LINE] = line
    if chunk.html:
        data[keys.HTML] = chunk.html
    embedded = {source.title_key, keys.SECTION, keys.IMAGE_TEXT}.difference(source.not_embedded)
    return NodeFields(
        node_id=node_id,
        text=source.text[chunk.start : chunk.end],
        start=chunk.start,
        end=chunk.end,
        metadata=data,
        excluded_embed_metadata_keys=[key for key in data if key not in embedded],
        excluded_llm_metadata_keys=list(data),
    )


def _section(source: NodeSource, path: tuple[str, ...]) -> str:
    """Write headings as one line, without a first one that only repeats the title."""
    title = source.metadata.get(source.title_key)
    if path and isinstance(title, str) and path[0].casefold() == title.strip().casefold():
        path = path[1:]
    return " > ".join(path)


def _link_family(chunks: Sequence[Chunk], nodes: Sequence[NodeFields]) -> None:
    children: dict[int, list[str]] = {}
    for chunk, node in zip(chunks, nodes, strict=True):
        if chunk.level == "child":
            node.relationships[PARENT] = nodes[chunk.parent].node_id
            children.setdefault(chunk.parent, []).append(node.node_id)
    for number, family in children.items():
        nodes[number].relationships[CHILD] = family
