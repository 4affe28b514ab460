"""Chooses the few words of a passage that say most about a question; it does not rank passages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from webrag.indexing.lexical import analyze, query_terms
from webrag.retrieval.markup import Block, read_blocks

__all__ = ["finest_quote", "quotable_units", "term_coverage"]

Span = tuple[int, int]

# A sentence ends at its mark, with closing brackets, before a blank and something that can begin
# a sentence; in scripts without blanks it ends at the mark alone.
_SENTENCE_END = re.compile(
    r"""(?:[.!?\u2026\u061f\u0964]["'\u2019\u201d)\]*_]*(?=\s+["'\u2018\u201c(\[*_`]*[^\W\d_a-z])"""
    r"""|[\u3002\uff01\uff1f]["\u201d\u300d\u300f\uff09]*)"""
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|e\.g|i\.e|etc|cf|vs|al|resp|approx|No|Fig|Eq|Dr|Mr|Mrs|Ms|St|ver)\.$"
)
_WORD_GAP = re.compile(r"\s+")
# Stands between a term and its definition, where pages have links ("[source]") that the stored
# text leaves out; a quotation across it would not be verbatim on the page.
_HARD_BREAK = re.compile(r" {2,}\n")
# What ends a line of code that pages show with a number before the next one, which the stored text
# leaves out; other code seldom has blanks there.
_NUMBERED_LINE = re.compile(r" +\r?\n")
# What stands between the header row of a table and the first row of its body.
_BELOW_HEADER = re.compile(r"[ \t|]*\r?\n[ \t>|]*:?-+[ \t:|-]*\r?\n")

# Of two quotations that cover the same words the fuller one is better: a sentence's neighbours hold
# what it refers to. At 0.2 (measured on documentation sites) it held the answer in .42 of the
# questions, at 0 in .33, and with a cost of 0.1 in .28.
_FULLNESS_GAIN = 0.2
_POSITION_COST = 0.02  # passages open with their point; only breaks near-ties
# A heading, or the header row of a table, names the subject and says nothing about it.
_HEADING_COST = 0.25


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring units of one block, as one candidate."""

    start: int
    end: int
    kind: str


def finest_quote(
    text: str,
    offset: int,
    query: str,
    term_idf: Mapping[str, float],
    *,
    max_chars: int = 400,
) -> Span | None:
    """Where the best quotation for a question stands.

    Whole sentences, table rows or code lines of one block, without list markers, fence lines,
    heading markers or table frames; only what alone exceeds `max_chars` is cut, between words.

    Args:
        text: Markdown of a passage.
        offset: Where the passage begins in its page.
        query: The question.
        term_idf: Weight of each query term; terms that are not in it count 1.0.
        max_chars: Longest quotation, at least 1.

    Returns:
        Start and end in the page, or None when the passage holds no text that can be quoted.
    """
    runs = list(_candidates(text, max(1, max_chars)))
    if not runs:
        return None
    terms = query_terms(query)
    weights = [max(0.0, term_idf.get(term, 1.0)) for term in terms]
    best = max(runs, key=lambda run: _value(text, run, terms, weights, max_chars))
    return offset + best.start, offset + best.end


def quotable_units(text: str) -> Iterator[tuple[int, int, str]]:
    """The sentences, code blocks and table rows of a passage, in page order.

    Args:
        text: Markdown of a passage.

    Returns:
        Start, end and kind of the block (`prose`, `heading`, `code` or `row`); the spans hold no
        list marker, fence line or outer table frame and do not overlap.
    """
    for block in read_blocks(text):
        if block.kind == "html":
            continue
        if block.kind == "row" or (block.kind == "code" and not _barriers(text, block)):
            yield block.start, block.end, block.kind
            continue
        for group in _unbroken(text, block, _units(text, block)):
            yield from ((start, end, block.kind) for start, end in group if end > start)


def term_coverage(text: str, query: str, term_idf: Mapping[str, float]) -> float:
    """Share of a question's weighted terms that a text holds, [0, 1]; 0 when it has no terms."""
    terms = query_terms(query)
    return _coverage(text, terms, [max(0.0, term_idf.get(term, 1.0)) for term in terms])


def _value(
    text: str, run: _Run, terms: Sequence[str], weights: Sequence[float], max_chars: int
) -> float:
    # Similarity of static embeddings was tried beside the words and gained nothing.
    fullness = _FULLNESS_GAIN * (run.end - run.start) / max_chars
    position = _POSITION_COST * run.end / len(text)
    heading = _HEADING_COST if run.kind == "heading" else 0.0
    return _coverage(text[run.start : run.end], terms, weights) + fullness - position - heading


def _coverage(text: str, terms: Sequence[str], weights: Sequence[float]) -> float:
    total = sum(weights)
    if not total:
        return 0.0
    found = set(analyze(text))
    return sum(w for term, w in zip(terms, weights, strict=True) if term in found) / total


def _candidates(text: str, max_chars: int) -> Iterator[_Run]:
    blocks = read_blocks(text)
    for block, following in zip_longest(blocks, blocks[1:]):
        if block.kind == "html":
            continue
        kind = "heading" if _is_header_row(text, block, following) else block.kind
        for group in _unbroken(text, block, _units(text, block)):
            if block.kind == "row" and group[-1][1] - group[0][0] <= max_chars:
                yield _Run(group[0][0], group[-1][1], kind)  # a cell alone says little
            else:
                yield from _runs(text, group, block.kind, max_chars)


def _is_header_row(text: str, block: Block, following: Block | None) -> bool:
    """Whether a row stands above the body of its table; a header without one may be quoted."""
    has_body = following is not None and following.kind == block.kind == "row"
    return has_body and _BELOW_HEADER.match(text, block.end) is not None


def _units(text: str, block: Block) -> list[Span]:
    """What is quoted whole: code lines, cells, or sentences."""
    if block.kind == "code":
        return [(piece.start, piece.end) for piece in block.pieces]
    if block.kind == "row":
        return block.cells
    return list(_sentences(text, block))


def _sentences(text: str, block: Block) -> Iterator[Span]:
    start = block.start
    for mark in _SENTENCE_END.finditer(text, block.start, block.end):
        cut = mark.end()
        is_inside = any(first < cut < last for first, last in block.atoms)
        if is_inside or _ABBREVIATION.search(text, start, cut):
            continue
        yield _strip(text, start, cut)
        start = cut
    yield _strip(text, start, block.end)


def _unbroken(text: str, block: Block, units: list[Span]) -> Iterator[list[Span]]:
    """Groups of units with no barrier inside or between them; a unit that holds one is split."""
    barriers = _barriers(text, block)
    whole = [part for unit in units for part in _without(text, barriers, unit)]
    group = whole[:1]
    for left, right in pairwise(whole):
        if any(left[1] <= start < right[0] for start, _ in barriers):
            yield group
            group = []
        group.append(right)
    if group:
        yield group


def _barriers(text: str, block: Block) -> list[Span]:
    """HTML tags, hard line breaks and line numbers, in order."""
    if block.kind == "row":
        return list(block.tags)
    if block.kind == "code":
        return [match.span() for match in _NUMBERED_LINE.finditer(text, block.start, block.end)]
    breaks = [match.span() for match in _HARD_BREAK.finditer(text, block.start, block.end)]
    return sorted([*block.tags, *breaks])


def _without(text: str, barriers: Sequence[Span], unit: Span) -> Iterator[Span]:
    start, stop = unit
    for first, last in barriers:
        if start <= first < stop:
            yield from (part for part in [_strip(text, start, first)] if _has_word(text, *part))
            start = last
    yield from (part for part in [_strip(text, start, stop)] if _has_word(text, *part))


def _runs(text: str, units: Sequence[Span], kind: str, max_chars: int) -> Iterator[_Run]:
    """Every run of neighbouring units that fits; a unit that does not fit is cut into words."""
    for first, (start, stop) in enumerate(units):
        if stop - start > max_chars:
            yield from (_Run(*part, kind) for part in _cut(text, start, stop, max_chars))
            continue
        for _, end in units[first:]:
            if end - start > max_chars:
                break
            yield _Run(start, end, kind)


def _cut(text: str, start: int, end: int, max_chars: int) -> Iterator[Span]:
    """Parts of at most `max_chars`, from word to word; each begins half a part after the last."""
    starts = [start, *(gap.end() for gap in _WORD_GAP.finditer(text, start, end))]
    ends = [*(gap.start() for gap in _WORD_GAP.finditer(text, start, end)), end]
    position = start
    while position < end:
        fitting = [stop for stop in ends if position < stop <= position + max_chars]
        stop = fitting[-1] if fitting else min(position + max_chars, end)
        yield position, stop
        if stop >= end:
            return
        later = [each for each in starts if position + (max_chars + 1) // 2 <= each <= stop]
        position = later[0] if later else stop + len(text[stop:end]) - len(text[stop:end].lstrip())


def _strip(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def _has_word(text: str, start: int, end: int) -> bool:
    return any(char.isalnum() for char in text[start:end])
