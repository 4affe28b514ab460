"""Page text made safe to print inside a brief; it never touches quotations or offsets."""

import re
import unicodedata

__all__ = ["DEFUSING_PREFIX", "clean_block", "defuse", "holds_forged_line", "one_line"]

DEFUSING_PREFIX = "(page text) "

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
    "VERIFICATION",
    "FORGET REPORT",
    "ABOUT THIS ANSWER",
)
_SECTION_LETTERS = frozenset("".join(filter(str.isalpha, name)).casefold() for name in _SECTIONS)
# Everything markdown or a typist may put before a header: quote marks, bullets, numbers, table
# pipes, emphasis, task boxes, doubled brackets. It never gives back what it took, so that
# matching takes linear time.
_LINE_PREFIX = re.compile(
    r"(?:[^\w\[<\uff1c\uff3b\u3010\u3014\u3016]|_"
    r"|(?:\d{1,9}+|[^\W\d_]{1,4}+)[.)\uff0e\uff09]"
    r"|\[[ xX]\](?!\()|\[(?=\W{0,9}\[))*+"
)
_HEADER = re.compile(
    r"[\[\u3010\u3014\u3016]([^\[\]\u3011\u3015\u3017]{1,120})[\]\u3011\u3015\u3017]"
)
_OTHER_STRUCTURE = re.compile(
    r"source[^\w\[]{0,9}\[\W{0,9}\d{1,9}|"
    r"\[\W{0,9}\d{1,9}\W{0,9}\][^\w\"\u201c]{0,9}[\"\u201c]|"
    r"<\W{0,9}page-",
    re.IGNORECASE,
)
# Compared are only the first characters after the prefix: no structure of a brief is longer.
_COMPARED_CHARS = 160
# Letters by category that are drawn as nothing.
_FILLERS = frozenset("\u115f\u1160\u17b4\u17b5\u3164\uffa0")
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
    return "\n".join(
        DEFUSING_PREFIX + line if _is_forged(line) else line for line in text.split("\n")
    )


def holds_forged_line(text: str) -> bool:
    """Whether some line, as a model would see it, imitates the brief's own structure."""
    return any(map(_is_forged, clean_block(text).split("\n")))


def _is_forged(line: str) -> bool:
    visible = _visible(line)
    shown = " ".join(visible[_prefix_end(visible) :].split())[:_COMPARED_CHARS]
    rest = unicodedata.normalize("NFKC", shown)
    if _OTHER_STRUCTURE.match(rest):
        return True
    header = _HEADER.match(rest)
    return header is not None and _letters(header[1]) in _SECTION_LETTERS


def _prefix_end(visible: str) -> int:
    match = _LINE_PREFIX.match(visible)
    return match.end() if match else 0


def _visible(line: str) -> str:
    """The line without characters that are drawn as nothing or onto their neighbour."""
    if line.isascii():
        return line
    return "".join(
        each
        for each in line
        if each not in _FILLERS and unicodedata.category(each) not in ("Cf", "Mn", "Me")
    )


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).casefold()


def one_line(text: str, *, max_chars: int = 200) -> str:
    """Page text as a single clean line, shortened with an ellipsis when it is longer."""
    line = " ".join(clean_block(text).split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"
