"""Node parser for LlamaIndex: markdown to parents and children with exact offsets."""

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
    "ParentChildNodeParser",
]
