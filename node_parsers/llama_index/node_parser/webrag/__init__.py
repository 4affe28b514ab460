"""Node parser for LlamaIndex: markdown to parents and children with exact offsets."""

from typing import TYPE_CHECKING, Any

from .chunks import Chunk, ChunkSizes, DocumentTooLargeError, cut_chunks
from .metadata import (
    CHUNK_INDEX,
    CHUNK_LEVEL,
    FLAG_KEYS,
    HEADING,
    HEADING_PATH,
    HTML,
    IMAGE_TEXT,
    IMAGES,
    LOSSY_FLAGS,
    SECTION,
    TOKEN_END,
    TOKEN_START,
)

if TYPE_CHECKING:
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
    "LOSSY_FLAGS",
    "SECTION",
    "TOKEN_END",
    "TOKEN_START",
    "Chunk",
    "ChunkSizes",
    "DocumentTooLargeError",
    "ParentChildNodeParser",
    "cut_chunks",
]


def __getattr__(name: str) -> Any:
    """Import the parser when it is asked for: LlamaIndex takes seconds, and cutting needs none."""
    if name == "ParentChildNodeParser":
        from .parent_child import ParentChildNodeParser

        return ParentChildNodeParser
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
