"""Chooses the passages of a result to print, their form and order, but not how many fit."""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final
from uuid import UUID

from webrag.answering.guardrails import addresses_reader
from webrag.orchestration.models import AnswerUnit, OrchestrationResult, RankedChunk
from webrag.presentation.brief.models import BriefConfig, EvidenceBlock, Quote, Seen
from webrag.presentation.untrusted import clean_block, defuse, holds_forged_line
from webrag.retrieval.citations import extract_citation
from webrag.retrieval.markup import CELL_BAR, plain_span, plain_text, read_blocks
from webrag.retrieval.units import cut_units

Span = tuple[int, int]

# Judged on 80 questions over four documentation sites, with and without three other wordings and
# within 4,000 tokens, by what is kept of the gold: a share of .15 and eight passages keep the same
# answers of every site (80 with wordings, 55 without) for 100 and 500 tokens more.
_GAP_SHARE: Final = 0.3
# Answers stand below the first passage often enough that a steep fall after it proves little.
_LEAST_SHOWN: Final = 5
# Beside a passage as relevant as the second number, one below the first only costs.
_OFF_TOPIC: Final = 0.05
_ON_TOPIC: Final = 0.3
# A model quotes two or three; one of the first three is right in .9 of those called high.
_MOST_QUOTES: Final = 3
# How likely a part is answered is said of its first three, which the parts share in turn.
_QUOTES_A_PART: Final = 2
# In the logarithm of the odds. `benchmarks/fit_judge.py` prints what other distances show: with 2.5
# of 198 answerable questions called none 103 are quoted right, with the first unit alone 59.
_FAR_LESS_LIKELY: Final = {"high": 3.0, "medium": 2.5, "low": 2.5, "none": 2.5}
# What is longer stands alone where it very likely answers.
_ALONE_CHARS: Final = 200
# So near to a unit it costs little to print on: for a gap, a sign would save nearly nothing, and
# code leads to the sentence that explains it.
_NEAR: Final = 150
# Printed on either side of a unit, the best one first. Of 284 answers to questions with wordings
# called medium 271 are on the screen, as with (300, 200), for 680 instead of 910 characters.
_REACH: Final = {"high": (_NEAR, 0), "medium": (200, 100), "low": (200, 200), "none": (0, 0)}


def relevant_count(relevance: Sequence[float], floor: float) -> int:
    """Count the passages, best first, worth their tokens; at `floor` one is off the topic."""
    best = max(relevance, default=0.0)
    needed = floor + _GAP_SHARE * (best - floor) if best > floor else best
    worthy = sum(score >= needed for score in relevance)
    return min(len(relevance), max(worthy, _LEAST_SHOWN))


# Of a list item, before its words.
_MARK = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+")

_ROW = re.compile(r"[ \t>]*\|")
_ROW_CHARS: Final = 400  # as many as a unit has at most; cells of more are cut

_RULE = re.compile(r"[ \t>]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*\Z")

_FENCE = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}(?=[^`]*\Z)|~{3,})(.*)")


def columns_at(text: str, offset: int, begun: str | None = None) -> str | None:
    """Give the header of the table in whose body an offset lies, as `Name | Default`.

    It is None outside tables, in code and at the header itself. Where the text begins with rows of
    a table, its header is `begun`.
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
    return None if above else begun


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
    cells = [plain_text(cell.strip()) for cell in CELL_BAR.split(row)[1:-1]]
    return " | ".join(cell.replace("|", "\\|") for cell in cells) if any(cells) else None


def most_quotes(result: OrchestrationResult) -> int:
    """Count the units to quote at most: three, or two for each part of the question."""
    return max(_MOST_QUOTES, _QUOTES_A_PART * len(result.parts))


def first_units(result: OrchestrationResult, seen: Sequence[Seen] = ()) -> list[AnswerUnit]:
    """Give the units to quote, none that was `seen`, nor one far less likely than the best."""
    most = most_quotes(result)
    far = math.inf if result.parts else _FAR_LESS_LIKELY[result.confidence_band]
    first = [each for each in result.units if each.score >= result.units[0].score - far]
    new = (each for each in first if not _is_seen(each.chunk_id, _place(each), seen))
    return list(islice(new, most))


def seen_units(result: OrchestrationResult, seen: Sequence[Seen]) -> list[AnswerUnit]:
    """Give the first units that are passed over because the reader has them."""
    first = first_units(result)
    return [each for each in first if _is_seen(each.chunk_id, _place(each), seen)]


def _place(unit: AnswerUnit) -> Span:
    return unit.char_start, unit.char_end


def _is_seen(chunk_id: UUID, span: Span, seen: Sequence[Seen]) -> bool:
    return any(of == chunk_id and low <= span[0] and span[1] <= high for of, low, high in seen)


def quoted_blocks(result: OrchestrationResult, config: BriefConfig) -> list[EvidenceBlock]:
    """Give what holds the first units, in their order, and as much around as the reader needs.

    The less likely the units answer, the more sentences or rows stand on either side; where they
    answer nothing, none. Where whole pages or a full brief are wanted it is the whole passage.
    """
    numbers = source_numbers(result.chunks)
    spans: dict[UUID, list[Span]] = {}
    ranked = {each.chunk.chunk_id: each for each in result.chunks}
    for place, unit in enumerate(first_units(result, config.seen)):
        if unit.chunk_id in ranked:
            wanted = _around(ranked[unit.chunk_id], unit, result, config, is_best=not place)
            own = spans.setdefault(unit.chunk_id, [])
            own[:] = _joined_spans((*own, wanted), gap=_NEAR)
    covered: dict[str, list[Span]] = {}
    blocks: list[EvidenceBlock] = []
    for chunk_id, own in spans.items():
        printed = covered.setdefault(ranked[chunk_id].chunk.source_url, [])
        pieces = [piece for span in own for piece in _uncovered(span, printed)]
        blocks += [
            cited(_block(ranked[chunk_id], each, result, numbers), result) for each in pieces
        ]
        printed += own
    found = [block for block in blocks if block.quotes]
    return sorted(found, key=lambda block: block.quotes[0].place)


def further_blocks(
    result: OrchestrationResult, config: BriefConfig, printed: Sequence[EvidenceBlock] = ()
) -> list[EvidenceBlock]:
    """Give every other passage, best first, adjacent context last; no character of a page twice.

    Nothing of `printed` is given again, nor the rest of their passages.
    """
    numbers = source_numbers(result.chunks)
    covered: dict[str, list[Span]] = {}
    quoted = {block.chunk_id for block in printed}
    for block in printed:
        covered.setdefault(block.url, []).append((block.char_start, block.char_end))
    found: list[EvidenceBlock] = []
    whole = 2 if config.every_passage else int(config.detail == "full")
    for rank, ranked in enumerate(by_rank(result.chunks)):
        own = covered.setdefault(ranked.chunk.source_url, [])
        wanted = _span(ranked, first_units(result), whole=rank < whole)
        chunk_id = ranked.chunk.chunk_id
        if chunk_id in quoted or _is_seen(chunk_id, wanted, config.seen):
            continue
        blocks = (_block(ranked, span, result, numbers) for span in _uncovered(wanted, own))
        found += [block for block in blocks if block.text.strip()]
        own.append(wanted)
    return found


def worthy(
    blocks: Sequence[EvidenceBlock], result: OrchestrationResult, config: BriefConfig
) -> Sequence[EvidenceBlock]:
    """Keep further passages worth their tokens: all for whole pages, none beside quotations.

    A full brief has them beside quotations, too.
    """
    if result.mode == "full_context" or config.every_passage:
        return blocks
    if config.detail == "brief" and first_units(result):
        return ()
    if config.detail == "brief" and result.confidence_band == "none":
        return blocks[:1]
    best = max((ranked.reranked_score for ranked in result.chunks), default=0.0)
    count = relevant_count([best, *(block.relevance for block in blocks)], result.relevance_floor)
    return [
        block
        for block in blocks[:count]
        if block.is_adjacent or block.relevance >= _OFF_TOPIC or best <= _ON_TOPIC
    ]


def shortest(block: EvidenceBlock, result: OrchestrationResult, most: int) -> EvidenceBlock:
    """Cut the block to the beginning of its best quotation, or its own, ending between words."""
    ranked = next(r for r in result.chunks if r.chunk.chunk_id == block.chunk_id)
    start, end = block.char_start, block.char_end
    if block.quotes:
        span = block.quotes[0].citation
        start, end = span.char_start, span.char_end
    text = _slice(ranked, (start, end))
    if len(text) > most:
        cut = max(text.rfind(" ", 0, most), text.rfind("\n", 0, most))
        end = start + (cut if cut > most // 2 else most)
    less = _block(ranked, (start, end), result, source_numbers(result.chunks))
    quotes = block.quotes[:1]
    citation = extract_citation(ranked.chunk, start, end) if quotes else None
    kept = [each.model_copy(update={"citation": citation}) for each in quotes if citation]
    return less.model_copy(
        update={
            "quotes": tuple(kept),
            "is_cut": end < block.char_end,
            "addresses_reader": block.addresses_reader,
        }
    )


def spanned(block: EvidenceBlock, result: OrchestrationResult, count: int) -> EvidenceBlock:
    """Cut the block to what its first quotations, so many, stand in."""
    ranked = next(r for r in result.chunks if r.chunk.chunk_id == block.chunk_id)
    spans = [quote.citation for quote in block.quotes[:count]]
    span = min(each.char_start for each in spans), max(each.char_end for each in spans)
    less = _block(ranked, span, result, source_numbers(result.chunks))
    return cited(less.model_copy(update={"is_cut": span[1] < block.char_end}), result)


def cited(block: EvidenceBlock, result: OrchestrationResult) -> EvidenceBlock:
    """Give a block with the best units in it, and whether it addresses a model that reads it.

    Apart from `further_blocks` because most blocks of a long result are never printed.
    """
    ranked = next(r for r in result.chunks if r.chunk.chunk_id == block.chunk_id)
    span = (block.char_start, block.char_end)
    inside = (
        _quote(ranked, unit, place)
        for place, unit in enumerate(result.units)
        if _holds(block.chunk_id, span, unit)
    )
    quotes = tuple(islice(filter(None, inside), most_quotes(result)))
    texts = (block.text, block.title or "", block.heading or "")
    return block.model_copy(
        update={"quotes": quotes, "addresses_reader": any(map(addresses_reader, texts))}
    )


def source_numbers(chunks: Sequence[RankedChunk]) -> dict[str, int]:
    """URL to its number in [SOURCES], in order of first appearance."""
    urls = dict.fromkeys(ranked.chunk.source_url for ranked in chunks)
    return {url: number for number, url in enumerate(urls, 1)}


def _holds(chunk_id: UUID, span: Span, unit: AnswerUnit) -> bool:
    return unit.chunk_id == chunk_id and span[0] <= unit.char_start < unit.char_end <= span[1]


def by_rank(chunks: Sequence[RankedChunk]) -> list[RankedChunk]:
    """Order passages by relevance, adjacent context last."""
    return sorted(chunks, key=lambda ranked: (ranked.is_locality_expanded, -ranked.reranked_score))


def _span(ranked: RankedChunk, units: Sequence[AnswerUnit], *, whole: bool) -> Span:
    """The whole chunk, or its best child with the units of it that are quoted first."""
    chunk, focus = ranked.chunk, ranked.chunk.focus
    if whole or focus is None or ranked.is_locality_expanded:
        return chunk.char_start, chunk.char_end
    own = [unit for unit in units if unit.chunk_id == chunk.chunk_id]
    start = min([focus.char_start, *(unit.char_start for unit in own)])
    return start, max([focus.char_end, *(unit.char_end for unit in own)])


def _around(
    ranked: RankedChunk,
    unit: AnswerUnit,
    result: OrchestrationResult,
    config: BriefConfig,
    *,
    is_best: bool,
) -> Span:
    """Find what is printed around a unit."""
    chunk, own = ranked.chunk, (unit.char_start, unit.char_end)
    if result.mode == "full_context" or config.detail == "full" or config.every_passage:
        return chunk.char_start, chunk.char_end
    band = result.confidence_band
    # A word of the question stands nowhere: more of what is near does not answer it.
    of_best, of_others = _REACH["none" if band == "low" and result.absent_words else band]
    reach = of_best if is_best else of_others
    if band == "none" or (band == "high" and own[1] - own[0] > _ALONE_CHARS):
        return own
    start, end = own[0] - chunk.char_start, own[1] - chunk.char_start
    pieces = [each for each in cut_units(chunk.text).pieces if each.kind != "heading"]
    is_code = any(e.kind == "code" and e.start < end and start < e.end for e in pieces)
    further = _NEAR if is_code and band == "high" else reach
    if not further:
        return own
    before = [each.start for each in pieces if start - reach <= each.start and each.end <= start]
    after = [each.end for each in pieces if end <= each.start and each.end <= end + further]
    low, high = min([start, *before]), max([end, *after])
    rest = chunk.text[high:].split("\n\n", 1)[0].rstrip()
    if len(rest) <= further:
        high += len(rest)
    line = chunk.text.rfind("\n", 0, low) + 1
    is_row = _ROW.match(chunk.text, line) and low - line <= _ROW_CHARS
    if is_row or _MARK.fullmatch(chunk.text[line:low]):
        low = line
    rest = chunk.text[high:].split("\n", 1)[0]
    if _ROW.match(chunk.text, chunk.text.rfind("\n", 0, high) + 1) and len(rest) <= _ROW_CHARS:
        high += len(rest)
    if _ends_in_code(chunk.text[low:high].splitlines()):
        high += _fence_length(chunk.text[high:])
    return low + chunk.char_start, high + chunk.char_start


def _fence_length(rest: str) -> int:
    """Characters up to the end of the next line where that is a fence."""
    line = rest.lstrip("\n").split("\n", 1)[0]
    return rest.index(line) + len(line) if line and _FENCE.match(line) else 0


def _joined_spans(spans: Iterable[Span], *, gap: int) -> list[Span]:
    joined: list[Span] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1] + gap:
            low, high = joined[-1][0], max(joined.pop()[1], high)
        joined.append((low, high))
    return joined


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
    ranked: RankedChunk, span: Span, result: OrchestrationResult, numbers: dict[str, int]
) -> EvidenceBlock:
    chunk = ranked.chunk
    best_for = [part.text for part in result.parts if part.chunk_id == chunk.chunk_id]
    is_of_part = ranked.source_sub_query in {part.text for part in result.parts}
    return EvidenceBlock(
        source_number=numbers[chunk.source_url],
        url=chunk.source_url,
        title=chunk.title,
        heading=_heading(ranked, span),
        text=defuse(clean_block(_slice(ranked, span))),
        char_start=span[0],
        char_end=span[1],
        relevance=ranked.reranked_score,
        confidence=ranked.confidence,
        rest=0 if result.confidence_band == "none" else len(chunk.text) - (span[1] - span[0]),
        is_adjacent=ranked.is_locality_expanded,
        sub_query=ranked.source_sub_query if is_of_part and len(best_for) < 2 else None,
        chunk_id=chunk.chunk_id,
        columns=_columns(ranked, span[0]),
    )


def _heading(ranked: RankedChunk, span: Span) -> str | None:
    """Nearest heading above what is printed, within its passage or as its child has it."""
    focus, is_whole = ranked.chunk.focus, span[0] == ranked.chunk.char_start
    above = _heading_above(ranked, span[0])
    if above is None and not is_whole and focus is not None:
        goes_on = _columns(ranked, focus.char_start) is not None  # with a table: its last part
        headings = focus.heading_path[:-1] if goes_on else focus.heading_path
        above = headings[-1] if headings and focus.char_start <= span[0] < focus.char_end else None
    return above or ranked.chunk.section_heading


def _columns(ranked: RankedChunk, offset: int) -> str | None:
    """The columns of a table that goes on from another chunk are the last part of the path."""
    chunk = ranked.chunk
    last = chunk.heading_path[-1] if chunk.heading_path else None
    begun = last if last != chunk.section_heading else None
    return columns_at(chunk.text, offset - chunk.char_start, begun)


def _slice(ranked: RankedChunk, span: Span) -> str:
    chunk = ranked.chunk
    return chunk.text[span[0] - chunk.char_start : span[1] - chunk.char_start]


def _quote(ranked: RankedChunk, unit: AnswerUnit, place: int) -> Quote | None:
    text = _slice(ranked, (unit.char_start, unit.char_end))
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
    """Give the longest part of a quotation that imitates none of the brief's structure.

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
