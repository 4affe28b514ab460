"""Ranked chunks to evidence blocks: order, form, quotation; how many fit is decided elsewhere."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final
from uuid import UUID

from webrag.answering.injection import addresses_reader
from webrag.orchestration.models import AnswerUnit, OrchestrationResult, RankedChunk
from webrag.presentation.brief.models import BriefConfig, EvidenceBlock, Quote
from webrag.presentation.html.converter import html_to_text
from webrag.presentation.untrusted import clean_block, defuse, holds_forged_line
from webrag.retrieval.citations import extract_citation
from webrag.retrieval.markup import CELL_BAR, plain_span, read_blocks
from webrag.retrieval.units import cut_units

# Judged on 80 questions over four documentation sites, with and without three other wordings and
# within 4,000 tokens, by what is kept of the gold: a share of .15 and eight passages keep the same
# answers of every site (80 with wordings, 55 without) for 100 and 500 tokens more.
_GAP_SHARE: Final = 0.3
# Answers stand below the first passage often enough that a steep fall after it proves little.
_LEAST_SHOWN: Final = 5
NOTHING_RELEVANT_SHOWN: Final = 3
# Beside a passage as relevant as the second number, one below the first only costs.
_OFF_TOPIC: Final = 0.05
_ON_TOPIC: Final = 0.3
# From this share of the best relevance on a passage may hold the answer as well as the best.
_STRONG_SHARE: Final = 0.5


def least_relevance(best: float, floor: float) -> float:
    """The relevance a passage needs beside the best one; it is never above that of the best.

    Args:
        best: Relevance of the best passage.
        floor: Score up to which a passage of this scorer is off the topic.
    """
    return floor + _GAP_SHARE * (best - floor) if best > floor else best


def relevant_count(relevance: Sequence[float], floor: float, *, nothing_relevant: bool) -> int:
    """How many of the passages are worth their tokens.

    Args:
        relevance: Of each passage, best first.
        floor: Score up to which a passage of this scorer is off the topic.
        nothing_relevant: The passages together answer nothing; then only the best few are shown.
    """
    if nothing_relevant:
        return min(len(relevance), NOTHING_RELEVANT_SHOWN)
    needed = least_relevance(relevance[0], floor) if relevance else 0.0
    worthy = sum(score >= needed for score in relevance)
    return min(len(relevance), max(worthy, _LEAST_SHOWN))


def is_off_topic(relevance: float, best: float) -> bool:
    """Whether a passage is worth neither its tokens nor a line beside one so much better."""
    return relevance < _OFF_TOPIC and best > _ON_TOPIC


def is_strong(relevance: float, best: float, floor: float) -> bool:
    """Whether several quotations of a passage are worth their tokens."""
    return relevance > floor and relevance >= _STRONG_SHARE * best


_ROW = re.compile(r"[ \t>]*\|")

_RULE = re.compile(r"[ \t>]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*\Z")

_FENCE = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}(?=[^`]*\Z)|~{3,})(.*)")


def columns_at(text: str, offset: int) -> str | None:
    """The header of the table in whose body an offset lies, as `Name | Default`.

    Args:
        text: Markdown around the offset.
        offset: Where the part that is shown begins.

    Returns:
        None outside tables, in code, at the header itself, and when the text does not reach back
        to it.
    """
    begin = text.rfind("\n", 0, offset) + 1
    if not _ROW.match(text, begin):
        return None
    above = text[:begin].splitlines()
    if _ends_in_code(above):
        return None
    while above and _ROW.match(above[-1]):
        line = above.pop()
        if _RULE.match(line):
            return _joined(above[-1]) if above and _ROW.match(above[-1]) else None
    return None


def _ends_in_code(lines: Iterable[str]) -> bool:
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if found is None:
            continue
        if not fence:
            fence = found[1]
        elif found[1].startswith(fence) and not found[2].strip():
            fence = ""
    return bool(fence)


def _joined(row: str) -> str | None:
    cells = [cell.strip() for cell in CELL_BAR.split(row)[1:-1]]
    return " | ".join(cells) if any(cells) else None


Span = tuple[int, int]


def source_numbers(chunks: Sequence[RankedChunk]) -> dict[str, int]:
    """URL to its number in [SOURCES], in order of first appearance."""
    urls = dict.fromkeys(ranked.chunk.source_url for ranked in chunks)
    return {url: number for number, url in enumerate(urls, 1)}


def candidate_blocks(result: OrchestrationResult, config: BriefConfig) -> Iterator[EvidenceBlock]:
    """Every passage worth printing, best first, adjacent context last; without citations.

    No character of a page is yielded twice.
    """
    numbers = source_numbers(result.chunks)
    printed: dict[str, list[Span]] = {}
    for rank, ranked in enumerate(_in_print_order(result.chunks)):
        chunk = ranked.chunk
        covered = printed.setdefault(chunk.source_url, [])
        spans = _around_quotes(ranked, result) if _is_enough(result, config) else []
        whole = rank < config.whole_results and not _is_enough(result, config)
        for wanted in spans or [_span(ranked, result.units[:_MOST_QUOTES], whole=whole)]:
            for span in _uncovered(wanted, covered):
                block = _block(ranked, span, result, numbers[chunk.source_url])
                if block.text.strip():
                    yield block
            covered.append(wanted)


def finds_nothing(result: OrchestrationResult) -> bool:
    """Whether what was found is only what comes closest to the question."""
    return result.mode == "chunk" and result.confidence_band == "none"


def relevant_blocks(
    blocks: Sequence[EvidenceBlock], result: OrchestrationResult, config: BriefConfig
) -> Sequence[EvidenceBlock]:
    """The blocks whose relevance is worth their tokens, and those that hold what is quoted first.

    All of them where whole pages are wanted; where the quotations are enough, only what holds
    them, in their order.

    Args:
        blocks: Best first.
        result: What they are from.
        config: Says whether every passage is wanted.
    """
    if result.mode == "full_context" or config.every_passage:
        return blocks
    if _is_enough(result, config):
        quoted = [block for block in blocks if _is_quoted(block, result)]
        return sorted(quoted, key=lambda block: _first_place(block, result)) or blocks[:1]
    nothing = finds_nothing(result)
    relevance = [block.relevance for block in blocks]
    count = relevant_count(relevance, result.relevance_floor, nothing_relevant=nothing)
    if nothing:
        return blocks[:count]
    best = max(relevance, default=0.0)
    return [
        block
        for place, block in enumerate(blocks)
        if _is_quoted(block, result)
        or (place < count and (block.is_adjacent or not is_off_topic(block.relevance, best)))
    ]


def _is_enough(result: OrchestrationResult, config: BriefConfig) -> bool:
    """Whether the quotations, with what stands around them, are all that a reader needs.

    Of questions called high, .95 have their answer in the first three quotations.
    """
    is_brief = config.detail == "brief" and not config.every_passage
    return is_brief and result.mode == "chunk" and result.confidence_band == "high"


def _is_quoted(block: EvidenceBlock, result: OrchestrationResult) -> bool:
    return _first_place(block, result) < _MOST_QUOTES


def _first_place(block: EvidenceBlock, result: OrchestrationResult) -> int:
    """The place of the best of the first quotations that a block holds, or one behind them all."""
    span = (block.char_start, block.char_end)
    units = enumerate(result.units[:_MOST_QUOTES])
    held = (place for place, unit in units if _holds(block.chunk_id, span, unit))
    return next(held, _MOST_QUOTES)


def _holds(chunk_id: UUID, span: Span, unit: AnswerUnit) -> bool:
    return unit.chunk_id == chunk_id and span[0] <= unit.char_start < unit.char_end <= span[1]


def focus_form(block: EvidenceBlock, result: OrchestrationResult) -> EvidenceBlock | None:
    """The block reduced to its best child with what is quoted first; None when it is that already.

    None also for a passage that has no children.
    """
    for ranked in result.chunks:
        if ranked.chunk.chunk_id == block.chunk_id and ranked.chunk.focus is not None:
            span = _span(ranked, result.units[:_MOST_QUOTES], whole=False)
            inside = block.char_start <= span[0] and span[1] <= block.char_end
            if inside and span != (block.char_start, block.char_end):
                return _block(ranked, span, result, block.source_number)
    return None


def cited(
    block: EvidenceBlock, result: OrchestrationResult, *, max_chars: int | None = None
) -> EvidenceBlock:
    """The block with the best units that lie in it, and whether it addresses a model that reads it.

    Apart from `candidate_blocks` because most blocks of a long result are never printed.

    Args:
        block: From `candidate_blocks`.
        result: What it is from.
        max_chars: Longest quotation, for budgets that hold no whole unit; None for whole ones.
    """
    ranked = next(r for r in result.chunks if r.chunk.chunk_id == block.chunk_id)
    quotes = _quotes(ranked, (block.char_start, block.char_end), result, max_chars)
    update = {
        "citation": quotes[0].citation if quotes else None,
        "quoted_columns": quotes[0].columns if quotes else None,
        "quotes": quotes,
        "addresses_reader": _addresses_reader(block),
    }
    return block.model_copy(update=update)


def _addresses_reader(block: EvidenceBlock) -> bool:
    return any(map(addresses_reader, (block.text, block.title or "", block.heading or "")))


def _in_print_order(chunks: Sequence[RankedChunk]) -> list[RankedChunk]:
    return sorted(chunks, key=lambda ranked: (ranked.is_locality_expanded, -ranked.reranked_score))


def _span(ranked: RankedChunk, units: Sequence[AnswerUnit], *, whole: bool) -> Span:
    """The whole chunk, or its best child with the units of it that are quoted first."""
    chunk, focus = ranked.chunk, ranked.chunk.focus
    if whole or focus is None or ranked.is_locality_expanded:
        return chunk.char_start, chunk.char_end
    own = [unit for unit in units if unit.chunk_id == chunk.chunk_id]
    start = min([focus.char_start, *(unit.char_start for unit in own)])
    return start, max([focus.char_end, *(unit.char_end for unit in own)])


def _around_quotes(ranked: RankedChunk, result: OrchestrationResult) -> list[Span]:
    """What a chunk holds of the first quotations, each with the sentence or row on either side."""
    chunk = ranked.chunk
    own = [unit for unit in result.units[:_MOST_QUOTES] if unit.chunk_id == chunk.chunk_id]
    pieces = cut_units(chunk.text).pieces if own else ()
    spans: list[Span] = []
    for unit in sorted(own, key=lambda each: each.char_start):
        start, end = unit.char_start - chunk.char_start, unit.char_end - chunk.char_start
        before = [piece for piece in pieces if piece.end <= start][-1:]
        after = [piece for piece in pieces if piece.start >= end][:1]
        low = min([start, *(each.start for each in before if each.kind != "heading")])
        high = max([end, *(each.end for each in after if each.kind != "heading")])
        low, high = low + chunk.char_start, high + chunk.char_start
        if spans and low <= spans[-1][1]:
            low, high = spans[-1][0], max(spans.pop()[1], high)
        spans.append((low, high))
    return spans


def _uncovered(span: Span, covered: Sequence[Span]) -> list[Span]:
    left = [span]
    for start, end in covered:
        left = [
            piece
            for low, high in left
            for piece in ((low, min(high, start)), (max(low, end), high))
            if piece[0] < piece[1]
        ]
    return left


def _block(
    ranked: RankedChunk, span: Span, result: OrchestrationResult, number: int
) -> EvidenceBlock:
    chunk = ranked.chunk
    is_whole = span == (chunk.char_start, chunk.char_end)
    is_of_part = ranked.source_sub_query in {part.text for part in result.parts}
    return EvidenceBlock(
        source_number=number,
        url=chunk.source_url,
        title=chunk.title,
        heading=_heading(ranked, span, is_whole=is_whole),
        text=_printed_text(ranked, span, is_whole=is_whole),
        char_start=span[0],
        char_end=span[1],
        relevance=ranked.reranked_score,
        confidence=ranked.confidence,
        is_whole=is_whole,
        is_adjacent=ranked.is_locality_expanded,
        sub_query=ranked.source_sub_query if is_of_part else None,
        chunk_id=chunk.chunk_id,
        columns=_columns(ranked, span[0]),
    )


def _heading(ranked: RankedChunk, span: Span, *, is_whole: bool) -> str | None:
    focus = ranked.chunk.focus
    if focus is not None and not focus.char_start <= span[0] < focus.char_end:
        above = _heading_above(ranked, span[0])
        return above or ranked.chunk.section_heading
    if not is_whole and focus is not None and focus.heading_path:
        return focus.heading_path[-1]
    return ranked.chunk.section_heading


def _columns(ranked: RankedChunk, offset: int) -> str | None:
    return columns_at(ranked.chunk.text, offset - ranked.chunk.char_start)


def _slice(ranked: RankedChunk, span: Span) -> str:
    chunk = ranked.chunk
    return chunk.text[span[0] - chunk.char_start : span[1] - chunk.char_start]


def _printed_text(ranked: RankedChunk, span: Span, *, is_whole: bool) -> str:
    chunk = ranked.chunk
    text = ""
    if is_whole and chunk.surface == "html":
        text = html_to_text(chunk.selected_text, chunk.source_url).text
    return defuse(clean_block(text if text.strip() else _slice(ranked, span)))


_MOST_QUOTES: Final = 3


def _quotes(
    ranked: RankedChunk, span: Span, result: OrchestrationResult, max_chars: int | None
) -> tuple[Quote, ...]:
    inside = (
        _quote(ranked, unit, place, max_chars)
        for place, unit in enumerate(result.units)
        if _holds(ranked.chunk.chunk_id, span, unit)
    )
    return tuple(islice((quote for quote in inside if quote is not None), _MOST_QUOTES))


def _quote(
    ranked: RankedChunk, unit: AnswerUnit, place: int, max_chars: int | None
) -> Quote | None:
    text = _slice(ranked, (unit.char_start, unit.char_end))
    if max_chars is not None and len(text) > max_chars:
        parts = cut_units(text, max_chars=max_chars).units
        text = text[: parts[0].end] if parts else ""
    span = without_forged_lines(text, unit.char_start)
    citation = extract_citation(ranked.chunk, *span) if span else None
    if citation is None:
        return None
    columns = _columns(ranked, citation.char_start)
    lead = clean_block(_slice(ranked, unit.lead)).strip() if unit.lead and not columns else None
    heading = _heading_above(ranked, citation.char_start)
    return Quote(citation=citation, columns=columns, lead=lead, heading=heading, place=place)


def _heading_above(ranked: RankedChunk, offset: int) -> str | None:
    text, at = ranked.chunk.text, offset - ranked.chunk.char_start
    above = [each for each in read_blocks(text) if each.kind == "heading" and each.end <= at]
    return plain_span(text, above[-1].start, above[-1].end).strip() or None if above else None


def without_forged_lines(text: str, offset: int) -> Span | None:
    """The longest part of a quotation that imitates none of the brief's structure.

    A quotation is never altered, so what would forge a section is left out of it instead.
    """
    if not holds_forged_line(text):
        return offset, offset + len(text)
    spans: list[Span] = []
    start = position = 0
    for line in text.splitlines(keepends=True):
        position += len(line)
        if holds_forged_line(line):
            spans.append((start, position - len(line)))
            start = position
    spans.append((start, position))
    best = max(((low, low + len(text[low:high].rstrip())) for low, high in spans), key=_length)
    return (offset + best[0], offset + best[1]) if _length(best) else None


def _length(span: Span) -> int:
    return span[1] - span[0]
