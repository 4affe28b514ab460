"""A page's own summary, its opening and its headings, for who asks what the page is about."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, compress, dropwhile, takewhile
from typing import TYPE_CHECKING, Final

from webrag.answering.guardrails import unquotable_spans
from webrag.orchestration.models import AnswerUnit, OrchestrationResult, RankedChunk
from webrag.pattern_file import PatternFile
from webrag.retrieval.citations import extract_citation
from webrag.retrieval.markup import Block, read_blocks
from webrag.retrieval.models import RetrievalResult, RetrievedChunk
from webrag.retrieval.units import cut_units

if TYPE_CHECKING:
    from webrag.retrieval.filters import SearchFilters
    from webrag.retrieval.search import Searcher

SURE: Final = 0.9
"""Confidence of a summary: what stands there is the page's own, if not all that is on it."""

_MOST_WORDS: Final = 12
_OPENING_CHARS: Final = 600
_DESCRIPTION_CHARS: Final = 400
_LEAST_CHARS: Final = 40  # what is shorter at the beginning of a page is a menu or a date
_MOST_HEADINGS: Final = 12
_FIRST_CHUNKS: Final = 3
_MARKS: Final = re.compile(r"#{1,6}(?=[ \t]{1,3}\Z)")
_MARKS_CHARS: Final = 9
_UNDERLINED: Final = 2
_CUT_MARKS: Final = " .\u2026"
_BELOW: Final = 5.0  # headings are told in one line and quoted only where everything is

_ASKS: Final = PatternFile(__package__, "questions.ini").patterns["asks_for_summary"]


def asks_for_summary(question: str) -> bool:
    """Tell whether a question is about a page as a whole and names nothing on it."""
    letters = unicodedata.normalize("NFKD", question[:200].casefold())
    words = re.findall(r"[^\W_]+", "".join(e for e in letters if not unicodedata.combining(e)))
    return len(words) <= _MOST_WORDS and _ASKS.fullmatch(" ".join(words)) is not None


@dataclass(frozen=True, slots=True)
class PageSummary:
    """The places where a page says what it is about: its first sentences, headings of one level.

    The chunks that hold them are in reading order; cut, more headings follow than are told. The
    description stands beside the text, so that it is told of the page and never cited.
    """

    chunks: tuple[RetrievedChunk, ...]
    opening: tuple[AnswerUnit, ...]
    outline: tuple[AnswerUnit, ...]
    is_cut: bool = False
    description: str = ""


async def page_summary(
    searcher: "Searcher", question: str, filters: "SearchFilters"
) -> tuple[PageSummary | None, int]:
    """Summarise the one page that filters leave, and count the pages they leave."""
    whole = await searcher.read_whole(question, filters=filters)
    assert whole is not None, "everything is read whatever its size"
    pages = whole.corpus_stats.total_documents
    return _summary_of(whole) if pages == 1 else None, pages


def _summary_of(page: RetrievalResult) -> PageSummary | None:
    """The summary that a page holds; None where nothing may be quoted."""
    opening, outline = _opening(page.chunks), _outline(page.chunks)
    if not opening:
        return None
    shown = outline[:_MOST_HEADINGS]
    held = {unit.chunk_id for unit in (*opening, *shown)}
    chunks = tuple(each for each in page.chunks if each.chunk_id in held)
    is_cut = page.truncated or len(outline) > len(shown)
    return PageSummary(chunks, opening, shown, is_cut, _description(page.chunks, opening))


def _description(chunks: Sequence[RetrievedChunk], opening: Sequence[AnswerUnit]) -> str:
    """The page's description of itself; empty where it gives orders or the opening says it all."""
    told = " ".join((chunks[0].description or "").split())
    said = " ".join(
        _text(e, unit) for unit in opening for e in chunks if e.chunk_id == unit.chunk_id
    )
    is_said = told.rstrip(_CUT_MARKS) in " ".join(said.split())
    if is_said or unquotable_spans(told, 0):
        return ""
    return told if len(told) <= _DESCRIPTION_CHARS else f"{told[: _DESCRIPTION_CHARS - 1]}\u2026"


def summarised(result: OrchestrationResult, summary: PageSummary) -> OrchestrationResult:
    """The result of a question about a page as a whole."""
    spans = [extract_citation(each, each.char_start, each.char_end) for each in summary.chunks]
    texts = {each.chunk_id: each for each in summary.chunks}
    names = [" ".join(_text(texts[unit.chunk_id], unit).split()) for unit in summary.outline]
    has = "begins with" if summary.is_cut else "has"
    told = [f"The page {has} the sections {'; '.join(names)}."] if names else []
    return result.model_copy(
        update={
            "chunks": tuple(RankedChunk(chunk=e, reranked_score=1.0) for e in summary.chunks),
            "citations": tuple(span for span in spans if span is not None),
            "units": (*summary.opening, *summary.outline),
            "parts": (),
            "also_searched": {},
            "absent_words": (),
            "next_links": (),
            "confidence": SURE,
            "confidence_band": "high",
            "description": summary.description,
            "warnings": (*told, *result.warnings),
        }
    )


def _text(chunk: RetrievedChunk, unit: AnswerUnit) -> str:
    return chunk.text[unit.char_start - chunk.char_start : unit.char_end - chunk.char_start]


def _opening(chunks: Sequence[RetrievedChunk]) -> tuple[AnswerUnit, ...]:
    """The paragraphs of the first section that has any; else what may be quoted first at all."""
    first = [(chunk, block) for chunk in chunks[:_FIRST_CHUNKS] for block in _quotable(chunk)]
    said = dropwhile(lambda each: not _is_paragraph(each[1]), first)
    told = takewhile(lambda each: each[1].kind != "heading", said)
    paragraphs = [each for each in told if _is_paragraph(each[1])]
    others = [each for each in first if each[1].kind != "heading"][:1]
    units = [_unit(chunk, block.start, _end(chunk, block)) for chunk, block in paragraphs or others]
    sizes = accumulate(unit.char_end - unit.char_start for unit in units)
    fits = (size <= _OPENING_CHARS or not place for place, size in enumerate(sizes))
    return tuple(compress(units, fits))


def _is_paragraph(block: Block) -> bool:
    chars = sum(len(piece.plain) for piece in block.pieces)
    return block.kind == "prose" and chars >= _LEAST_CHARS


def _end(chunk: RetrievedChunk, block: Block) -> int:
    """The end of a block, of a long one that of its first sentences."""
    units = cut_units(chunk.text).units
    ends = [unit.end for unit in units if unit.start == block.start and unit.end <= block.end]
    return max(ends, default=block.end)


def _outline(chunks: Sequence[RetrievedChunk]) -> tuple[AnswerUnit, ...]:
    """The headings of the highest level that several have."""
    levels: dict[int, list[AnswerUnit]] = {}
    for chunk in chunks:
        for block in _quotable(chunk):
            if block.kind == "heading":
                marks = _MARKS.search(chunk.text[: block.start][-_MARKS_CHARS:])
                own = levels.setdefault(len(marks[0]) if marks else _UNDERLINED, [])
                own.append(_unit(chunk, block.start, block.end, score=-_BELOW))
    several = (own for _, own in sorted(levels.items()) if len(own) > 1)
    return tuple(next(several, ()))


def _quotable(chunk: RetrievedChunk) -> list[Block]:
    spans = unquotable_spans(chunk.text, 0)
    blocks = read_blocks(chunk.text)
    return [b for b in blocks if not any(span.overlaps(b.start, b.end) for span in spans)]


def _unit(chunk: RetrievedChunk, start: int, end: int, *, score: float = 0.0) -> AnswerUnit:
    offset = chunk.char_start
    return AnswerUnit(
        chunk_id=chunk.chunk_id, char_start=offset + start, char_end=offset + end, score=score
    )
