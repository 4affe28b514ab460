"""Page text made safe to print inside a brief; it never touches quotations or offsets."""

import re

__all__ = ["DEFUSING_PREFIX", "clean_block", "defuse", "holds_forged_line", "one_line"]

DEFUSING_PREFIX = "| "

_SECTIONS = (
    "PRESENTATION GUIDE",
    "SOURCES",
    "EVIDENCE",
    "IMAGES",
    "EXPANSION TRACE",
    "CITATIONS",
    "STATS",
    "FOLLOW-UP OPTIONS",
    "ERROR",
    "CORPUS STATUS",
    "INGEST REPORT",
)
_MARKUP = r"[^\S\n]*[>#*_`~\-]*[^\S\n]*[*_`]*"
_FORGED = re.compile(
    rf"^(?={_MARKUP}(?:"
    rf"[\[\uff3b\u3010][^\S\n]*(?:{'|'.join(_SECTIONS)})[^\S\n]*[\]\uff3d\u3011]"
    r"|source[^\S\n]+\[\d+\]"
    r'|\[\d+\][^\S\n]*["“]'
    r"|</?page-"
    r"))",
    re.IGNORECASE | re.MULTILINE,
)
# C0 and C1 controls except tab and newline, bidirectional controls, line and paragraph
# separators, byte order marks, and the invisible "tag" characters that smuggle instructions.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


def clean_block(text: str) -> str:
    """Page text with controls, bidirectional overrides and invisible characters removed."""
    return _INVISIBLE.sub("", _BREAKS.sub("\n", text))


def defuse(text: str) -> str:
    """Mark every line that imitates the brief's own structure with a prefix."""
    return _FORGED.sub(DEFUSING_PREFIX, text)


def holds_forged_line(text: str) -> bool:
    """Whether some line, as a model would see it, imitates the brief's own structure."""
    return _FORGED.search(clean_block(text)) is not None


def one_line(text: str, *, max_chars: int = 200) -> str:
    """Page text as a single clean line, shortened with an ellipsis when it is longer."""
    line = " ".join(clean_block(text).split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"
