"""Node parser for LlamaIndex: markdown to parents and children with exact offsets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .outline import (
    CHUNK_INDEX,
    CHUNK_LEVEL,
    FLAG_KEYS,
    HEADING,
    HEADING_PATH,
    HTML,
    IMAGE_TEXT,
    IMAGES,
    LINE,
    LOSSY_FLAGS,
    SECTION,
    TOKEN_END,
    TOKEN_START,
)

if TYPE_CHECKING:
    from .chunks import Chunk, ChunkSizes, DocumentTooLargeError, cut_chunks
    from .fields import NodeFields, NodeSource, node_fields
    from .parent_child import ParentChildNodeParser

__all__ = [
    "CHUNK_INDEX",
    "CHUNK_LEVEL",
    "FLAG_KEYS",
    "HEADING",
    "HEADING_PATH",
    "HTML",
    "IMAGES",
    "IMAGE_TEXT",
    "LINE",
    "LOSSY_FLAGS",
    "SECTION",
    "TOKEN_END",
    "TOKEN_START",
    "Chunk",
    "ChunkSizes",
    "DocumentTooLargeError",
    "NodeFields",
    "NodeSource",
    "ParentChildNodeParser",
    "cut_chunks",
    "node_fields",
]

_HOMES = {
    **dict.fromkeys(("Chunk", "ChunkSizes", "DocumentTooLargeError", "cut_chunks"), "chunks"),
    **dict.fromkeys(("NodeFields", "NodeSource", "node_fields"), "fields"),
    "ParentChildNodeParser": "parent_child",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: LlamaIndex takes seconds, which neither cutting nor names need."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
