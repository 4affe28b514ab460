"""Ranked chunks to evidence blocks: order, form, quotation; how many fit is decided elsewhere."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from webrag.answering.injection import addresses_reader
from webrag.lexical.spelling import respelled
from webrag.orchestration.models import OrchestrationResult, RankedChunk
from webrag.presentation.brief.models import BriefConfig, EvidenceBlock, Quote
from webrag.presentation.html.converter import html_to_text
from webrag.presentation.untrusted import clean_block, defuse, holds_forged_line
from webrag.retrieval.citations import extract_citation
from webrag.retrieval.markup import CELL_BAR
from webrag.retrieval.quotes import Encode, Quotation, asked_weights, best_quotes

# Judged on 80 questions over four documentation sites, with and without three other wordings and
# within 4,000 tokens, by what is kept of the gold: a share of .15 and eight passages keep the same
# answers of every site (80 with wordings, 55 without) for 100 and 500 tokens more.
_GAP_SHARE: Final = 0.3
# Answers stand below the first passage often enough that a steep fall after it proves little.
_LEAST_SHOWN: Final = 5
# The same where the confidence is high: with wordings a share of .5 keeps 79 for 2,200 tokens, .4
# keeps 79 for 2,450, .35 keeps 80 for 2,550.
_SURE_GAP_SHARE: Final = 0.35
_SURE_LEAST_SHOWN: Final = 2
NOTHING_RELEVANT_SHOWN: Final = 3
# From this share of the best relevance on a passage may hold the answer as well as the best.
_STRONG_SHARE: Final = 0.5


def least_relevance(best: float, floor: float, *, is_sure: bool = False) -> float:
    """The relevance a passage needs beside the best one; it is never above that of the best.

    Args:
        best: Relevance of the best passage.
        floor: Score up to which a passage of this scorer is off the topic.
        is_sure: The best passages together very likely hold the answer.
    """
    share = _SURE_GAP_SHARE if is_sure else _GAP_SHARE
    return floor + share * (best - floor) if best > floor else best


def relevant_count(
    relevance: Sequence[float], floor: float, *, nothing_relevant: bool, is_sure: bool = False
) -> int:
    """How many of the passages are worth their tokens.

    Args:
        relevance: Of each passage, best first.
        floor: Score up to which a passage of this scorer is off the topic.
        nothing_relevant: The passages together answer nothing; then only the best few are shown.
        is_sure: The best passages together very likely hold the answer.
    """
    if nothing_relevant:
        return min(len(relevance), NOTHING_RELEVANT_SHOWN)
    needed = least_relevance(relevance[0], floor, is_sure=is_sure) if relevance else 0.0
    worthy = sum(score >= needed for score in relevance)
    return min(len(relevance), max(worthy, _SURE_LEAST_SHOWN if is_sure else _LEAST_SHOWN))


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
        wanted = _span(ranked, whole=rank < config.whole_results)
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
    """The blocks whose relevance is worth their tokens; all of them where whole pages are wanted.

    Args:
        blocks: Best first.
        result: What they are from.
        config: Says whether every passage is wanted.
    """
    if result.mode == "full_context" or config.every_passage:
        return blocks
    relevance = [block.relevance for block in blocks]
    count = relevant_count(
        relevance,
        result.relevance_floor,
        nothing_relevant=finds_nothing(result),
        is_sure=result.confidence_band == "high",
    )
    return blocks[:count]


def focus_form(block: EvidenceBlock, result: OrchestrationResult) -> EvidenceBlock | None:
    """The block reduced to its best child; None when it is that already or has none."""
    for ranked in result.chunks:
        focus = ranked.chunk.focus
        if ranked.chunk.chunk_id == block.chunk_id and focus is not None:
            span = (focus.char_start, focus.char_end)
            inside = block.char_start <= span[0] and span[1] <= block.char_end
            if inside and span != (block.char_start, block.char_end):
                return _block(ranked, span, result, block.source_number)
    return None


def cited(
    block: EvidenceBlock,
    result: OrchestrationResult,
    config: BriefConfig,
    encode: Encode | None = None,
) -> EvidenceBlock:
    """The block with its finest quotations, and whether it addresses a model that reads it.

    The quotations are taken from the markdown between the offsets of the block.

    Apart from `candidate_blocks` because choosing a quotation costs some milliseconds, and most
    blocks of a long result are never printed.
    """
    ranked = next(r for r in result.chunks if r.chunk.chunk_id == block.chunk_id)
    quotes = _quotes(ranked, (block.char_start, block.char_end), result, config, encode)
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


def _span(ranked: RankedChunk, *, whole: bool) -> Span:
    chunk, focus = ranked.chunk, ranked.chunk.focus
    if whole or focus is None or ranked.is_locality_expanded:
        return chunk.char_start, chunk.char_end
    return focus.char_start, focus.char_end


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
        heading=_heading(ranked, is_whole=is_whole),
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


def _heading(ranked: RankedChunk, *, is_whole: bool) -> str | None:
    focus = ranked.chunk.focus
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


_STRONG_QUOTES = 3
# What the relevance of a passage counts beside what a quotation says; at 0 as at 10 a tenth fewer
# answers are among the first three quotations.
_RELEVANCE_WEIGHT = 0.7


def _quotes(
    ranked: RankedChunk,
    span: Span,
    result: OrchestrationResult,
    config: BriefConfig,
    encode: Encode | None,
) -> tuple[Quote, ...]:
    best = max(each.reranked_score for each in result.chunks)
    floor = result.relevance_floor
    is_matched = result.mode == "chunk" and not ranked.is_locality_expanded
    if is_matched and ranked.reranked_score <= floor < best:
        return ()
    is_answer = is_matched and not finds_nothing(result)
    is_rich = is_answer and is_strong(ranked.reranked_score, best, floor)
    focus = ranked.chunk.focus
    question = respelled(ranked.source_sub_query or result.query, result.also_searched)
    asked = asked_weights(question, tuple(result.wordings), ranked.best_wording)
    found = best_quotes(
        _slice(ranked, span),
        span[0],
        tuple(asked),
        _term_weights(result),
        max_chars=config.max_quote_chars,
        most=_STRONG_QUOTES if is_rich else 1,
        encode=encode,
        focus=(focus.char_start, focus.char_end) if focus else None,
        weights=tuple(asked.values()),
    )
    worth = _RELEVANCE_WEIGHT * ranked.reranked_score / best if best > 0 else 0.0
    quotes = (_quote(ranked, each, worth) for each in found)
    return tuple(quote for quote in quotes if quote is not None)


def _term_weights(result: OrchestrationResult) -> dict[str, float]:
    weights = dict(result.term_idf)
    for terms in result.wordings.values():
        weights |= terms
    return weights


def _quote(ranked: RankedChunk, found: Quotation, worth: float) -> Quote | None:
    text = _slice(ranked, (found.start, found.end))
    span = without_forged_lines(text, found.start)
    citation = extract_citation(ranked.chunk, *span) if span else None
    if citation is None:
        return None
    lead = clean_block(_slice(ranked, found.lead)).strip() if found.lead else None
    columns = _columns(ranked, citation.char_start)
    return Quote(
        citation=citation,
        columns=columns,
        lead=lead,
        worth=worth + found.value,
        meaning=found.meaning,
    )


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
