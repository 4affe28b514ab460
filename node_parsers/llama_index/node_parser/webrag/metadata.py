"""Names of the metadata keys that parsed nodes carry; no behaviour."""

from typing import Final, Literal

Flag = Literal[
    "has_table", "has_code", "has_math", "has_definition_list", "has_admonition", "has_steps"
]

CHUNK_LEVEL: Final = "chunk_level"
CHUNK_INDEX: Final = "chunk_index"
HEADING: Final = "heading"
HEADING_PATH: Final = "heading_path"
SECTION: Final = "section"
TOKEN_START: Final = "token_start"  # noqa: S105 - counts, not secrets
TOKEN_END: Final = "token_end"  # noqa: S105 - counts, not secrets
LINE: Final = "line"
IMAGES: Final = "images"
IMAGE_TEXT: Final = "image_text"
HTML: Final = "html"

FLAG_KEYS: Final[tuple[Flag, ...]] = (
    "has_table",
    "has_code",
    "has_math",
    "has_definition_list",
    "has_admonition",
    "has_steps",
)
# Numbered steps survive as markdown; everything else loses structure that HTML keeps.
LOSSY_FLAGS: Final[frozenset[Flag]] = frozenset(FLAG_KEYS) - {"has_steps"}
