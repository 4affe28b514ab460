"""One markdown text to chunks: offsets, sizes, headings and rich content; it builds no nodes.

Imports nothing of LlamaIndex, which takes seconds: whoever cuts pages in a process of their own
can start it quickly. The cutting itself is in `segmentation`.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final, Literal

from .blocks import parse_outline
from .outline import Heading, Piece
from .rich_content import RichContent
from .segmentation import Segmenter, TokenCounter, trim

MAX_HEADING_CHARS: Final = 500
"""Characters of a heading that its chunks are told; 33,557 in manuals had 358 at most."""

MAX_PATH_CHARS: Final = 1_500
"""Characters of all headings above a chunk; the innermost ones are kept."""

MAX_NODES: Final = 20_000
"""Nodes of one document at most: five million tokens of prose, at about 5 kB a node."""

MAX_TEXT_CHARS: Final = 10_000_000
"""Characters of one document at most."""

_Level = Literal["parent", "child"]


class DocumentTooLargeError(ValueError):
    """A document is beyond what can be cut; the message says by how much."""


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Tokens of a parent and of a child at most."""

    parent_tokens: int = 1000
    child_tokens: int = 256


@dataclass(frozen=True, slots=True)
class Chunk:
    """A parent or child of one text, with what it holds of rich content.

    Attributes:
        index: Number among the chunks of its level.
        first_token: Tokens of the text before it.
        path: Headings above it, outermost first; last the columns of a table that it goes on with.
        heading: The nearest one above it.
        parent: Number of its parent among all chunks; a parent's own number.
        image_text: What its images say and the text does not.
        html: The HTML it came from, when it is a parent that markdown flattens.
    """

    level: _Level
    index: int
    start: int
    end: int
    first_token: int
    tokens: int
    path: tuple[str, ...]
    heading: str | None
    parent: int
    flags: dict[str, bool] = field(default_factory=dict)
    images: list[dict[str, Any]] = field(default_factory=list)
    image_text: str = ""
    html: str | None = None


def cut_chunks(
    text: str,
    sizes: ChunkSizes,
    tokenizer: Callable[[str], Sequence[Any]],
    *,
    html: str | None = None,
    base_url: str = "",
) -> list[Chunk]:
    """All chunks of a markdown text in page order, a parent before its children.

    Relative image addresses of the `html` that it was made from are resolved against `base_url`.

    Raises:
        DocumentTooLargeError: The text has more than `MAX_TEXT_CHARS` characters, or would become
            more than `MAX_NODES` chunks.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise DocumentTooLargeError(
            f"It has {len(text):,} characters; at most {MAX_TEXT_CHARS:,} can be cut."
        )
    return _Cutter(text, sizes, tokenizer).chunks(html, base_url)


class _Cutter:
    def __init__(
        self, text: str, sizes: ChunkSizes, tokenizer: Callable[[str], Sequence[Any]]
    ) -> None:
        self._text = text
        self._sizes = sizes
        self._counter = TokenCounter(tokenizer)
        self._segmenter = Segmenter(text, self._counter)
        self._outline = parse_outline(text)
        self._paths = _heading_paths(self._outline.headings)
        self._heading_starts = [heading.start for heading in self._outline.headings]
        self._table_starts = [table.start for table in self._outline.tables]

    def chunks(self, html: str | None, base_url: str) -> list[Chunk]:
        cuts: list[tuple[Chunk, int]] = []
        for cut in self._cuts():
            if len(cuts) == MAX_NODES:
                raise DocumentTooLargeError(
                    f"It would be cut into more than {MAX_NODES:,} pieces, which is the most a"
                    " document can have."
                )
            cuts.append(cut)
        rich = RichContent(self._text, self._outline, html, base_url)
        return [
            replace(
                chunk, **rich.of(chunk.start, chunk.end, after, with_html=chunk.level == "parent")
            )
            for chunk, after in cuts
        ]

    def _cuts(self) -> Iterator[tuple[Chunk, int]]:
        """Chunks without what is in them, and where the next one starts."""
        count = self._counter.count
        pieces = self._outline.units
        for piece in pieces:
            piece.tokens = count(self._text[piece.start : piece.end])
        if not pieces:
            return
        offset = count(self._text[: pieces[0].start]) if pieces[0].start else 0
        # A quarter of a child introduces; more is a passage of its own.
        lead = self._sizes.child_tokens // 4
        parents = _Planner(pieces, self._segmenter, self._sizes.parent_tokens, lead).plan()
        number = child_index = 0
        for index, group in enumerate(parents):
            parent = number
            parts = self._segmenter.split(group, self._sizes.child_tokens)
            # A piece has other tokens than the parts it is cut into: a parent is as long as its
            # children, or it would end behind the beginning of the next.
            whole = [piece for part in parts for piece in part]
            yield self._cut("parent", index, whole, offset, group[0].start, parent)
            number += 1
            for part in parts:
                begin = next((piece.start for piece in part if not piece.level), part[0].start)
                yield self._cut("child", child_index, part, offset, begin, parent)
                offset += sum(piece.tokens for piece in part)
                number += 1
                child_index += 1

    def _cut(
        self,
        level: _Level,
        index: int,
        pieces: Sequence[Piece],
        offset: int,
        begin: int,
        parent: int,
    ) -> tuple[Chunk, int]:
        start, end = trim(self._text, pieces[0].start, pieces[-1].end)
        tokens = sum(piece.tokens for piece in pieces)
        number = bisect_right(self._heading_starts, begin)
        headings = self._paths[number - 1] if number else ()
        path = self._with_columns(headings, begin)
        heading = headings[-1] if headings else None
        return Chunk(level, index, start, end, offset, tokens, path, heading, parent), pieces[
            -1
        ].end

    def _with_columns(self, path: tuple[str, ...], offset: int) -> tuple[str, ...]:
        """A path, and last the columns of a table whose rows go on at an offset."""
        at = bisect_right(self._table_starts, offset)
        table = self._outline.tables[at - 1] if at else None
        if table is None or not table.columns or offset >= table.end:
            return path
        return tuple(_shortened_path([*path, _shortened(table.columns)]))


def _heading_paths(headings: Sequence[Heading]) -> list[tuple[str, ...]]:
    """For each heading, the texts of those above it and its own; empty ones left out.

    Every chunk carries its path, so a long one costs its length as often as there are chunks.
    """
    paths: list[tuple[str, ...]] = []
    above: list[Heading] = []
    for heading in headings:
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        texts = [outer.text for outer in above if outer.text]
        paths.append(tuple(_shortened_path([_shortened(text) for text in texts])))
    return paths


def _shortened(heading: str) -> str:
    if len(heading) <= MAX_HEADING_CHARS:
        return heading
    kept = heading[: MAX_HEADING_CHARS - 1]
    return (kept.rpartition(" ")[0] or kept) + "\u2026"


def _shortened_path(path: list[str]) -> list[str]:
    while sum(map(len, path)) > MAX_PATH_CHARS:
        path = path[1:]
    return path


class _Planner:
    """Groups a page's pieces into parents.

    A section with all its subsections is one parent when it fits; otherwise its own text and its
    subsections are parents of their own. So no parent holds a heading of its own or a higher
    level, and an edit changes the parents of the sections around it only. Own text of a section
    up to `lead` tokens goes with its first subsection.
    """

    def __init__(
        self, pieces: Sequence[Piece], segmenter: Segmenter, limit: int, lead: int
    ) -> None:
        self._pieces = pieces
        self._segmenter = segmenter
        self._limit = limit
        self._lead = lead
        self._sums = [0, *accumulate(piece.tokens for piece in pieces)]
        self._headings = [index for index, piece in enumerate(pieces) if piece.level]

    def plan(self) -> Iterator[list[Piece]]:
        first = self._place(0)
        if first:
            yield from self._split(0, first)
        for begin, end in self._sections(0, len(self._headings)):
            yield from self._section(self._headings[begin], begin, end)

    def _sections(self, first: int, after: int) -> list[tuple[int, int]]:
        """Sections, as ranges of heading numbers, none of which lies in another."""
        found: list[tuple[int, int]] = []
        begin = first
        for number in range(first + 1, after + 1):
            if number == after or self._level(number) <= self._level(begin):
                if begin < number:
                    found.append((begin, number))
                begin = number
        return found

    def _level(self, number: int) -> int:
        return self._pieces[self._headings[number]].level

    def _place(self, number: int) -> int:
        return self._headings[number] if number < len(self._headings) else len(self._pieces)

    def _section(self, start: int, first: int, after: int) -> Iterator[list[Piece]]:
        """Parents of the section of heading `first`, which begins with the lead at `start`."""
        end = self._place(after)
        whole = self._pieces[start:end] if self._size(start, end) <= self._limit else ()
        if whole and self._segmenter.fits(whole, self._limit):
            yield list(whole)
            return
        own_end = self._place(first + 1)
        inner = self._sections(first + 1, after) if first + 1 < after else []
        if inner and self._size(start, own_end) <= self._lead:
            own_end = start
        else:
            yield from self._split(start, own_end)
        for number, (begin, stop) in enumerate(inner):
            place = own_end if number == 0 else self._place(begin)
            yield from self._section(place, begin, stop)

    def _size(self, start: int, end: int) -> int:
        return self._sums[end] - self._sums[start]

    def _split(self, start: int, end: int) -> list[list[Piece]]:
        return self._segmenter.split(self._pieces[start:end], self._limit)
