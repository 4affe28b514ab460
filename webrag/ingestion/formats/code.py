"""Source code and Jupyter notebooks as Markdown, and the lines of a file that a text leads to."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from webrag.ingestion.characters import storable
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
    """Blocks of the least margin, and of long ones those inside them."""
    start, end = _trimmed(lines, start, end)
    if start >= end:
        return
    margin = min(_margin(lines[at]) for at in range(start, end) if lines[at].strip())
    for begin, stop in _parts(lines, start, end, margin):
        inner = [at for at in range(begin + 1, stop) if lines[at].strip()]
        inner = [at for at in inner if _margin(lines[at]) > margin]
        if stop - begin > _LONG_LINES and inner and inner[-1] - inner[0] >= _LONG_LINES // 2:
            yield from _parts(lines, begin, stop, min(_margin(lines[at]) for at in inner))
        else:
            yield begin, stop


def _parts(lines: Sequence[str], start: int, end: int, margin: int) -> Iterator[tuple[int, int]]:
    """Ranges that begin at the lines of a margin that stand below a blank line."""
    begin = start
    for at in range(start + 1, end):
        opens = lines[at].strip() and not lines[at - 1].strip()
        if opens and _margin(lines[at]) == margin and not _CLOSING.match(lines[at]):
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


_OUTPUT_CHARS = 2_000
_NAME = re.compile(r"[\w+#-]{1,20}")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def markdown_from_notebook(source: str) -> str:
    """The cells in their order, or ValueError; an output of more than 2,000 characters is cut.

    Pictures and HTML of outputs are left out, as is everything in a cell's metadata.
    """
    try:
        notebook = json.loads(source)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(notebook, dict):
        raise ValueError("it is no notebook")  # noqa: TRY004 - as what is no JSON
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise ValueError("it has no cells")  # noqa: TRY004 - as what is no JSON
    language = _language(notebook)
    parts = [part for cell in cells if isinstance(cell, dict) for part in _cell(cell, language)]
    return storable("\n\n".join(parts))


def _cell(cell: dict[str, Any], language: str) -> list[str]:
    text = _text(cell.get("source")).strip("\n")
    match cell.get("cell_type"):
        case "markdown":
            return [text]
        case "code":
            outputs = cell.get("outputs")
            printed = [_output(each) for each in outputs] if isinstance(outputs, list) else []
            shown = "\n".join(filter(None, printed)).strip("\n")
            if len(shown) > _OUTPUT_CHARS:
                shown = f"{shown[:_OUTPUT_CHARS].rstrip()}\n[...]"
            blocks = ((text, language), (shown, ""))
            return [fenced(held, mark) for held, mark in blocks if held.strip()]
    return []


def _output(output: Any) -> str:
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") == "error":
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    data = output.get("data")
    plain = data.get("text/plain") if isinstance(data, dict) else output.get("text")
    return _ANSI.sub("", _text(plain)).rstrip("\n")


def _language(notebook: dict[str, Any]) -> str:
    match notebook:
        case {"metadata": {"language_info": {"name": str(name)}}} if _NAME.fullmatch(name):
            return name
    return "python"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


_NOT_WORDS = re.compile(r"[\W_]+")
# Where links lead, and the roles of words: in the source, and in no stored text.
_UNSEEN = re.compile(
    r":(?:[a-z]{1,20}+:){1,3}+(?=`)|\b(?:man|link[a-z]{1,20}+):(?=[\w.+-]{1,100}+\[\d)|"
    r"\]\([^)\s]{0,1000}+(?:\s[^)]{0,500}+)?\)|\]\[[^\]]{0,500}+\]|<https?:[^>]{0,1000}+>"
)
# Letters and digits of a line that are looked for: all of it first, then its beginning.
_WHOLE, _BEGINNING = 32, 12
# How far ahead: a chapter for words that stand only once, some lines for those that do not. Few
# words found far ahead are mostly another place's, and all between would lead nowhere.
_FAR, _NEAR = 20_000, 400
# Shorter beginnings of lines stand anywhere; so many in a row that are not found end a paragraph.
_LEAST, _MISSES = 4, 3


def line_anchors(source: str, text: str) -> tuple[Anchor, ...]:
    """Anchors `L<number>` for the lines of a text that is stored in its source's order.

    A place without one of its own counts on from the last anchor before it, one for each line end
    between them, so text that was taken over as it is needs a single anchor; a paragraph that was
    wrapped has one for each line that it was wrapped in. What is not found in the source, such as
    a heading made of a title, gets none.
    """
    lines = _Lines([_words(_UNSEEN.sub("]", line)) for line in source.splitlines()])
    anchors: list[Anchor] = []
    offset = expected = 0
    for line in text.split("\n"):
        for place, number in lines.of(line):
            if number != expected or place:
                anchors.append(Anchor(char_start=offset + place, fragment=f"L{number}"))
            expected = number
        offset += len(line) + 1
        expected += 1
    return tuple(anchors)


class _Lines:
    """The letters and digits of a source, walked through from its beginning."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._joined = "".join(words)
        self._starts = [0, *accumulate(map(len, words))]
        self._at = 0

    def of(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield the place in a stored line where each line of the source begins, and its number."""
        words = _words(line)
        found = _find(self._joined, words, self._at)
        if found is None:
            return
        start, self._at = found
        number = bisect_right(self._starts, start)
        yield 0, number
        if number < len(self._words) and self._starts[number] < start + len(words):
            yield from self._wrapped(line, words, number)

    def _wrapped(self, line: str, words: str, number: int) -> Iterator[tuple[int, int]]:
        places = [place for place, char in enumerate(line) for _ in _words(char)]
        if len(places) != len(words):
            return
        done = missed = 0
        while number < len(self._words) and done < len(words) and missed < _MISSES:
            wanted = self._words[number][:_WHOLE]
            at = words.find(wanted, done, done + _NEAR) if len(wanted) >= _LEAST else -1
            missed += at < 0
            number += 1
            if at >= 0:
                missed, done = 0, at + len(wanted)
                self._at = self._starts[number - 1] + len(wanted)
                yield places[at], number


def _find(joined: str, words: str, at: int) -> tuple[int, int] | None:
    for length in (_WHOLE, _BEGINNING):
        wanted = words[:length]
        if not wanted:
            return None
        reach = _FAR if len(wanted) == _WHOLE else _NEAR
        found = joined.find(wanted, at, at + reach)
        if found >= 0:
            return found, found + len(wanted)
    return None


def _words(line: str) -> str:
    return _NOT_WORDS.sub("", line.casefold())
