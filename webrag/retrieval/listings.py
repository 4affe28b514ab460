"""Tells source listings from prose and from the examples in it; it ranks and cites nothing itself.

A listing is a file of a program shown as a page: numbered line by line, as Doxygen and code hosts
do, or in one block that goes on over several chunks. Its comments repeat the words of the
documentation, and it has many more chunks.
"""

import re
from collections.abc import Iterable
from typing import Final

from webrag.retrieval.markup import NUMBERED_LINE, read_blocks

_FENCE: Final = re.compile(r"^[ \t>]*+(?:```|~~~)", re.MULTILINE)
_NUMBERED: Final = re.compile(r"(?<! ) \r?\Z")
# Within a long block of code no fence says that it is one.
_LIKE_CODE: Final = re.compile(r"[ \t]|[#/*@<}\])]|[^\n]*+(?<=[;{}()\[\],:>\\])\Z")

# Shorter code is an example, numbered or not.
_LEAST_LINES: Final = 15
# Of the characters of a chunk: with less code in it, it explains; from the second share on it is
# nothing but code, but for its headings.
_MOST_CODE_OF_PROSE: Final = 0.7
_LEAST_CODE_OF_LISTING: Final = 0.9
# Reranked scores of good matches lie close together: .990 for each of five chunks of a listing
# beside .996 for the paragraph that answers. At .75 the paragraphs behind it are seen as well.
_FACTOR: Final = 0.75

_CODE_WORDS: Final = re.compile(
    r"\b(?:source (?:files?|listings?)|in the source|code|snippets?|examples?|implement\w{0,10}"
    r"|listings?|signatures?|prototypes?|declar(?:e[sd]?|ations?)|macros?|headers?|structs?"
    r"|typedefs?|enums?|(?:quell|programm)(?:code|text)|code source|c[oó]digo|codice|kode|kod)\b"
    r"|исходн|код|源[码碼代]|代码|程式碼|コード|実装|코드",
    re.IGNORECASE,
)
_IDENTIFIERS: Final = re.compile(
    r"\w\(\)|\w(?:::|->)\w|[a-z0-9][A-Z][a-z]|[^\W_]_[^\W_]|#\w|\w\.(?:[ch]|cc|cpp|hpp|py|rs|go|java|js|ts)\b"
)


def asks_for_code(question: str) -> bool:
    """Tell whether a question wants code, or names a part of it as code writes it."""
    return bool(_CODE_WORDS.search(question) or _IDENTIFIERS.search(question))


def listing_factor(text: str, *, has_code: bool) -> float:
    """Give the factor of a chunk's score for a question that asks for no code, (0, 1].

    Below 1.0 hardly anything but code stands in it, numbered, or begun or ended in another chunk.
    """
    if not has_code:
        return 1.0
    code, is_cut = _code_lines(text)
    numbered = sum(map(bool, map(_NUMBERED.search, code)))
    if len(code) < _LEAST_LINES or not (is_cut or 2 * numbered >= len(code)):
        return 1.0
    shown = (line for line in text.split("\n") if not _FENCE.match(line))
    share = _length(code) / _length(shown)
    beyond = (share - _MOST_CODE_OF_PROSE) / (_LEAST_CODE_OF_LISTING - _MOST_CODE_OF_PROSE)
    return 1.0 - (1.0 - _FACTOR) * min(1.0, max(0.0, beyond))


def longest_piece(text: str) -> tuple[int, int]:
    """Find the longest part of a chunk, as start and end, that no number of a line interrupts."""
    breaks: list[tuple[int, int]] = []
    for block in read_blocks(text):
        numbers = _numbers_in(text, block.start, block.end) if block.kind == "code" else []
        if numbers:
            # The first line has a number as well, between it and what stands above the block.
            above = len(text[: block.start].rstrip().rpartition("\n")[0].rstrip())
            breaks += [(above, block.start), *(found.span() for found in numbers)]
    starts = [0, *(end for _, end in breaks)]
    ends = [*(start for start, _ in breaks), len(text)]
    return max(zip(starts, ends, strict=True), key=lambda span: len(text[slice(*span)].split()))


def _numbers_in(text: str, start: int, end: int) -> list[re.Match[str]]:
    """Find the line numbers in a block of code; blanks at the end of a few lines are none."""
    found = list(NUMBERED_LINE.finditer(text, start, end))
    return found if 2 * len(found) >= text.count("\n", start, end) else []


def _code_lines(text: str) -> tuple[list[str], bool]:
    """The lines of code, and whether the code begins before the text or goes on behind it."""
    fences = len(_FENCE.findall(text))
    if not fences:
        lines = text.split("\n")
        return [line for line in lines if line.strip() and _LIKE_CODE.match(line.rstrip())], True
    blocks = [block for block in read_blocks(text) if block.kind == "code"]
    code = [line for block in blocks for line in text[block.start : block.end].split("\n")]
    return [line for line in code if line.strip()], fences % 2 == 1


def _length(lines: Iterable[str]) -> int:
    return sum(len(line.strip()) for line in lines)
