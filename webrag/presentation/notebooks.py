"""Shows results as self-contained HTML in notebooks, and reports as their text."""

import sys
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from webrag.corpus.models import CorpusStatus
from webrag.crawling.report import SiteReport
from webrag.orchestration.models import OrchestrationResult, RankedChunk
from webrag.presentation.brief.brief import evidence_blocks, format_brief
from webrag.presentation.brief.models import BriefConfig, EvidenceBlock
from webrag.presentation.brief.trace import expansion_trace
from webrag.presentation.reports import counted, format_site, format_status
from webrag.presentation.results import description_lines
from webrag.presentation.stored_page import Mark, passage_html
from webrag.presentation.untrusted import clean_block

_BAND_COLOURS = {"high": "#2e7d32", "medium": "#b26a00", "low": "#b3541e", "none": "#9e2a2b"}

_OPEN_PASSAGES = 2

# Colours are relative to the notebook's own, so that light and dark themes both read well.
_STYLE = """<style>
.webrag{max-width:60em;line-height:1.45}
.webrag details{border:1px solid rgba(128,128,128,.35);border-radius:6px;margin:.5em 0}
.webrag details{padding:.4em .8em}
.webrag summary{cursor:pointer}
.webrag pre{white-space:pre-wrap;word-break:normal;background:none;margin:.4em 0;font-size:.92em}
.webrag .passage{overflow-wrap:break-word;margin:.6em 0}
.webrag .passage :is(p,ul,ol,dl,blockquote){margin:.4em 0}
.webrag .passage :is(h2,h3,h4,h5,h6){font-size:1.05em;line-height:1.3;margin:.7em 0 .3em}
.webrag .passage :is(h2,h3,h4,h5,h6){font-weight:600}
.webrag .passage pre{white-space:pre;overflow-x:auto;padding:.5em .7em;border-radius:4px}
.webrag .passage :is(pre,:not(pre)>code){background:rgba(128,128,128,.13);color:inherit}
.webrag .passage pre code{background:none;color:inherit;padding:0}
.webrag .passage :not(pre)>code{padding:0}
.webrag .passage .wide{overflow-x:auto}
.webrag .passage blockquote{border-left:3px solid rgba(128,128,128,.35);padding-left:.8em}
.webrag mark{background:rgba(255,213,79,.45);color:inherit;padding:.05em 0}
.webrag .bar{display:inline-block;width:6em;height:.7em;border-radius:3px}
.webrag .bar{background:rgba(128,128,128,.25)}
.webrag .bar i{display:block;height:100%;border-radius:3px;background:#3f72af}
.webrag .muted{opacity:.7;font-size:.9em}
.webrag table{border-collapse:collapse;font-size:.9em}
div.webrag.webrag :is(th,td){text-align:left;padding:.2em .6em}
.webrag td{border-bottom:1px solid rgba(128,128,128,.3)}
</style>"""


def result_html(result: OrchestrationResult, blocks: Sequence[EvidenceBlock]) -> str:
    """Show the result as HTML in which no text of pages is markup, and which loads nothing."""
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
    notes = [*description_lines(result), *result.warnings, *result.degraded]
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
    quote = block.citation
    link = quote.link if quote else block.url
    offsets = f"characters {block.char_start} to {block.char_end}"
    offsets += f", quotation {quote.char_start} to {quote.char_end}" if quote else ""
    return (
        f"<details{' open' if is_open else ''}><summary>{number}. {_text(place)} {score}</summary>"
        f'<div class="passage">{_marked(chunk.text, chunk.char_start, block)}</div>'
        f'<p class="muted"><a href="{escape(link)}">{_text(block.url)}</a>, '
        f"{offsets}</p></details>"
    )


def _marked(text: str, offset: int, block: EvidenceBlock) -> str:
    """The passage with its quotations marked; all by offsets, nothing is searched for."""
    spans = [quote.citation for quote in block.quotes]
    marks = [
        Mark(number, span.char_start - offset, span.char_end - offset)
        for number, span in enumerate(spans, start=1)
        if block.char_start <= span.char_start < block.char_end
    ]
    return passage_html(text, block.char_start - offset, block.char_end - offset, marks)


def _loop(result: OrchestrationResult) -> str:
    trace = expansion_trace(result)
    if not trace:
        return ""
    return (
        f"<details><summary>How it was found: {counted(len(result.urls_fetched), 'page')} fetched, "
        f"{counted(result.total_iterations, 'round')}</summary><pre>{_text(trace)}</pre></details>"
    )


def _figures(result: OrchestrationResult) -> str:
    stats = result.corpus_stats
    return (
        f'<p class="muted">{counted(stats.total_documents, "page")} searched, '
        f"{result.timing.total_ms:.0f} ms, stopped by {_text(result.final_decision.rule)}: "
        f"{_text(result.final_decision.reason)}</p>"
    )


def _bar(value: float, colour: str = "#3f72af") -> str:
    width = round(100 * min(max(value, 0.0), 1.0))
    return f'<span class="bar"><i style="width:{width}%;background:{colour}"></i></span>'


def _text(text: str) -> str:
    return escape(clean_block(text))


# A person reads on in a passage; a brief for a model leaves most of it out.
_CONFIG = BriefConfig(caller="cli", detail="full")


def register_displays() -> bool:
    """Make results show themselves in IPython; False, and nothing is done, outside it."""
    ipython = sys.modules.get("IPython")  # never imported here, only found when it runs already
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return False
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(OrchestrationResult, _html)
    shown_as: dict[type, Callable[[Any], str]] = {
        OrchestrationResult: lambda result: format_brief(
            result, _CONFIG, count_tokens=_estimated_tokens
        ),
        CorpusStatus: format_status,
        SiteReport: format_site,
    }
    for kind, as_text in shown_as.items():
        formatters["text/plain"].for_type(kind, _shows_text(as_text))
    # By name: what answers in sentences is loaded when it is asked for.
    formatters["text/plain"].for_type_by_name(
        "webrag.answering.models", "ManagerResult", _shows_text(_answer)
    )
    formatters["text/plain"].for_type_by_name("webrag.ingesting", "IngestReport", _shows_text(str))
    return True


def _shows_text(as_text: Callable[[Any], str]) -> Callable[[Any, Any, bool], None]:
    def show(value: Any, printer: Any, _cycle: bool) -> None:
        printer.text(as_text(value))

    return show


def _answer(result: Any) -> str:
    from webrag.presentation.answer import format_answer

    return format_answer(result)


def _html(result: OrchestrationResult) -> str:
    return result_html(result, evidence_blocks(result, _CONFIG, count_tokens=_estimated_tokens))


def _estimated_tokens(text: str) -> int:
    # The budget of a display is not a promise to anybody, so loading a tokenizer is not worth it.
    return len(text) // 4
