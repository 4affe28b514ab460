"""Source code as Markdown: one fenced block for each declaration, under its first line."""

import re
from collections.abc import Iterator, Sequence

from webrag.ingestion.formats.markdown import fenced
from webrag.ingestion.models import Anchor

# Longer blocks are cut at what is declared inside them: a class at its methods.
_LONG_LINES = 60
# Shorter ones join the next: a heading for every import would tell nothing apart.
_SHORT_LINES = 4
_CLOSING = re.compile(r"[\s)\]}>;,]{0,100}+(?:end\b.*|fi|done|esac)?[\s)\]}>;,]{0,100}+\Z")
_COMMENT = re.compile(r"\s*(?:#(?!\[)|//|/\*|\*|--|;|%|\"\"\"|''')")
_DECORATOR = re.compile(r"\s*(?:@|#\[|\[[A-Z])")
_HEADING_CHARS = 120


def read_code(source: str, language: str) -> tuple[str, tuple[Anchor, ...]]:
    """Lay code out in fences marked with its language, anchored at the lines they begin with.

    Blocks are found by blank lines and margins, which tells declarations apart in every language
    that is written with them; no grammar is needed. Every line is in them, but blank margins.
    """
    lines = source.expandtabs(4).split("\n") if "\t" in source else source.split("\n")
    parts: list[str] = []
    anchors: list[Anchor] = []
    length = 0
    for start, end in blocks_of(lines):
        body = "\n".join(lines[start:end])
        block = fenced(body, language)
        heading, declared = _heading(lines, start, end)
        if heading:
            anchors.append(Anchor(char_start=length, fragment=f"L{declared + 1}"))
        head = f"## {heading}\n\n" if heading else ""
        first_line = length + len(head) + block.index("\n") + 1
        anchors.append(Anchor(char_start=first_line, fragment=f"L{start + 1}"))
        parts.append(f"{head}{block}")
        length += len(parts[-1]) + 2
    return "\n\n".join(parts), tuple(anchors)


def blocks_of(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Ranges of lines that belong together, in order; blank lines around them are in none."""
    return list(_joined(lines, _cut(lines, 0, len(lines))))


def _cut(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut where a line as far left as the first one follows a blank line."""
    start, end = _trimmed(lines, start, end)
    if start >= end:
        return
    margin = min(_margin(lines[at]) for at in range(start, end) if lines[at].strip())
    begin = start
    for at in range(start + 1, end):
        opens = lines[at].strip() and not lines[at - 1].strip()
        if opens and _margin(lines[at]) == margin and not _CLOSING.match(lines[at]):
            yield from _shortened(lines, begin, at, margin)
            begin = at
    yield from _shortened(lines, begin, end, margin)


def _shortened(
    lines: Sequence[str], start: int, end: int, margin: int
) -> Iterator[tuple[int, int]]:
    start, end = _trimmed(lines, start, end)
    inner = [
        at for at in range(start + 1, end) if _margin(lines[at]) > margin and lines[at].strip()
    ]
    if end - start <= _LONG_LINES or not inner or inner[-1] - inner[0] < _LONG_LINES // 2:
        yield start, end
        return
    step = min(_margin(lines[at]) for at in inner)
    begin = start
    for at in inner:
        if at > begin + 1 and _margin(lines[at]) == step and not lines[at - 1].strip():
            yield _trimmed(lines, begin, at)
            begin = at
    yield _trimmed(lines, begin, end)


def _joined(lines: Sequence[str], blocks: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    held: tuple[int, int] | None = None
    for start, end in blocks:
        if held is not None:
            # What holds nothing but a few lines or comments belongs to what follows.
            body = (line for line in lines[slice(*held)] if not _COMMENT.match(line))
            if end - held[0] <= _LONG_LINES and sum(map(bool, map(str.strip, body))) < _SHORT_LINES:
                held = (held[0], end)
                continue
            yield held
        held = (start, end)
    if held is not None:
        yield held


def _heading(lines: Sequence[str], start: int, end: int) -> tuple[str, int]:
    """The first line that declares something, as inline code, and which it is; "" for none."""
    for at in range(start, end):
        text = lines[at].strip()
        if text and not _COMMENT.match(text) and not _DECORATOR.match(text):
            text = text.rstrip("{:( ").replace("`", "'")[:_HEADING_CHARS].rstrip()
            return (f"`{text}`" if any(map(str.isalnum, text)) else ""), at
    return "", start


def _trimmed(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return start, end


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
