"""A result as self-contained HTML for notebooks: passages with their quotations marked."""

from collections.abc import Iterable, Sequence
from html import escape

from webrag.orchestration.models import ExpansionStep, OrchestrationResult, RankedChunk
from webrag.presentation.counting import counted
from webrag.presentation.models import EvidenceBlock
from webrag.presentation.trace import expansion_trace
from webrag.presentation.untrusted import clean_block

__all__ = ["result_html"]

_BAND_COLOURS = {"high": "#2e7d32", "medium": "#b26a00", "low": "#b3541e", "none": "#9e2a2b"}
_OPEN_PASSAGES = 2

# Colours are relative to the notebook's own, so that light and dark themes both read well.
_STYLE = """<style>
.webrag{max-width:60em;line-height:1.45}
.webrag details{border:1px solid rgba(128,128,128,.35);border-radius:6px;margin:.5em 0}
.webrag details{padding:.4em .8em}
.webrag summary{cursor:pointer}
.webrag pre{white-space:pre-wrap;background:none;margin:.4em 0;font-size:.92em}
.webrag mark{background:rgba(255,213,79,.45);color:inherit;padding:.05em 0}
.webrag .bar{display:inline-block;width:6em;height:.7em;border-radius:3px}
.webrag .bar{background:rgba(128,128,128,.25)}
.webrag .bar i{display:block;height:100%;border-radius:3px;background:#3f72af}
.webrag .muted{opacity:.7;font-size:.9em}
.webrag table{border-collapse:collapse;font-size:.9em}
.webrag th,.webrag td{text-align:left;padding:.2em .6em}
.webrag td{border-bottom:1px solid rgba(128,128,128,.3)}
</style>"""


def result_html(result: OrchestrationResult, blocks: Sequence[EvidenceBlock]) -> str:
    """The result as HTML: confidence, passages in context, how they were found.

    Page text and addresses are escaped; nothing in them becomes markup. No script is used and
    nothing is loaded from elsewhere.

    Args:
        result: What to show.
        blocks: The passages of its brief, best first.
    """
    chunks = {item.chunk.chunk_id: item for item in result.chunks}
    passages = [
        _passage(number, block, chunks[block.chunk_id], is_open=number <= _OPEN_PASSAGES)
        for number, block in enumerate(blocks, start=1)
    ]
    return "".join(
        (
            '<div class="webrag">',
            _STYLE,
            _header(result),
            *(passages or ["<p>No stored passage matches the question.</p>"]),
            _loop(result),
            _figures(result),
            "</div>",
        )
    )


def _header(result: OrchestrationResult) -> str:
    band = result.confidence_band
    notes = [*result.warnings, *result.degraded]
    if result.partial:
        notes.insert(0, "Time ran out before the research was complete.")
    return (
        f"<p><b>{_text(result.query)}</b><br>"
        f"{_bar(result.confidence, _BAND_COLOURS.get(band, '#3f72af'))} "
        f"confidence {result.confidence:.2f} ({escape(band)})</p>"
        + "".join(f'<p class="muted">{_text(note)}</p>' for note in notes)
    )


def _passage(number: int, block: EvidenceBlock, item: RankedChunk, *, is_open: bool) -> str:
    chunk = item.chunk
    names = dict.fromkeys(part for part in (block.title, block.heading) if part)
    place = " / ".join(names) or block.url
    score = (
        '<span class="muted">adjacent context</span>'
        if block.is_adjacent
        else f"{_bar(block.relevance)} {block.relevance:.2f}"
    )
    columns = f'<p class="muted">{_text(block.columns)}</p>' if block.columns else ""
    link = block.citation.link if block.citation else block.url
    return (
        f"<details{' open' if is_open else ''}><summary>{number}. {_text(place)} {score}</summary>"
        f"{columns}<pre>{_marked(chunk.text, chunk.char_start, block)}</pre>"
        f'<p class="muted"><a href="{escape(link)}">{_text(block.url)}</a>, '
        f"{_offsets(block)}</p></details>"
    )


def _offsets(block: EvidenceBlock) -> str:
    """Where the passage stands, and the quotation that the link beside it opens."""
    passage = f"characters {block.char_start} to {block.char_end}"
    quote = block.citation
    return f"{passage}, quotation {quote.char_start} to {quote.char_end}" if quote else passage


def _marked(text: str, offset: int, block: EvidenceBlock) -> str:
    """The passage with its quotation marked; both by offsets, nothing is searched for."""
    start, end = block.char_start - offset, block.char_end - offset
    quote = block.citation
    if quote is None or not (block.char_start <= quote.char_start < block.char_end):
        return _text(text[start:end])
    first, last = quote.char_start - offset, quote.char_end - offset
    return (
        f"{_text(text[start:first])}<mark>{_text(text[first:last])}</mark>{_text(text[last:end])}"
    )


def _loop(result: OrchestrationResult) -> str:
    if not result.expansion_steps:
        return ""
    rows = "".join(_row(_step_cells(step)) for step in result.expansion_steps)
    heads = "".join(f"<th>{name}</th>" for name in ("round", "rule", "action", "top score", "why"))
    trace = expansion_trace(result)
    return (
        f"<details><summary>How it was found: {counted(len(result.urls_fetched), 'page')} fetched, "
        f"{counted(result.total_iterations, 'round')}</summary>"
        + (f"<pre>{_text(trace)}</pre>" if trace else "")
        + f"<table><tr>{heads}</tr>{rows}</table></details>"
    )


def _step_cells(step: ExpansionStep) -> Iterable[str]:
    change = f"{step.top_score_before:.2f} → {step.top_score_after:.2f}"
    return (str(step.iteration), step.rule, step.decision, change, step.reason)


def _row(cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"


def _figures(result: OrchestrationResult) -> str:
    stats = result.corpus_stats
    return (
        f'<p class="muted">{stats.total_documents} pages searched, '
        f"{result.timing.total_ms:.0f} ms, stopped by {_text(result.final_decision.rule)}: "
        f"{_text(result.final_decision.reason)}</p>"
    )


def _bar(value: float, colour: str = "#3f72af") -> str:
    width = round(100 * min(max(value, 0.0), 1.0))
    return f'<span class="bar"><i style="width:{width}%;background:{colour}"></i></span>'


def _text(text: str) -> str:
    return escape(clean_block(text))
