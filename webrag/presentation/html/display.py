"""Results, reports and the corpus as self-contained HTML for notebooks."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from webrag.corpus.models import AcquiredPage, CorpusStatus, PageStatus
from webrag.crawling.report import SiteReport
from webrag.orchestration.models import ExpansionStep, OrchestrationResult, RankedChunk
from webrag.presentation.brief.brief import evidence_blocks, format_brief
from webrag.presentation.brief.models import BriefConfig, EvidenceBlock
from webrag.presentation.brief.trace import expansion_trace
from webrag.presentation.html.stored_page import Mark, passage_html
from webrag.presentation.reports import OUTCOMES, counted, ending, format_site, format_status
from webrag.presentation.untrusted import clean_block, one_line

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
    link = block.citation.link if block.citation else block.url
    return (
        f"<details{' open' if is_open else ''}><summary>{number}. {_text(place)} {score}</summary>"
        f'<div class="passage">{_marked(chunk.text, chunk.char_start, block)}</div>'
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
    quote = block.citation
    marks = (
        [Mark(1, quote.char_start - offset, quote.char_end - offset)]
        if quote is not None and block.char_start <= quote.char_start < block.char_end
        else []
    )
    return passage_html(text, block.char_start - offset, block.char_end - offset, marks)


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
        f'<p class="muted">{counted(stats.total_documents, "page")} searched, '
        f"{result.timing.total_ms:.0f} ms, stopped by {_text(result.final_decision.rule)}: "
        f"{_text(result.final_decision.reason)}</p>"
    )


def _bar(value: float, colour: str = "#3f72af") -> str:
    width = round(100 * min(max(value, 0.0), 1.0))
    return f'<span class="bar"><i style="width:{width}%;background:{colour}"></i></span>'


def _text(text: str) -> str:
    return escape(clean_block(text))


_MOST_ROWS = 100

# JupyterLab puts the texts of tables to the right, with a rule that outweighs a single class.
_LEFT = "<style>table.webrag-report.webrag-report :is(th,td){text-align:left}</style>"


def status_html(status: CorpusStatus) -> str:
    """Totals, then a table of the newest pages; titles and addresses are escaped."""
    totals = (
        f"{status.documents:,} pages, {status.chunks:,} chunks, {status.tokens:,} tokens, "
        f"{status.embedding_model or 'no embedding model yet'}"
    )
    heads = ("page", "chunks", "tokens", "fetched")
    rows = [_status_cells(page) for page in status.pages]
    return _report(status.collection, totals, _table(heads, rows, "pages"))


def ingest_html(
    pages: Sequence[AcquiredPage], failed: Mapping[str, str], degraded: Sequence[str] = ()
) -> str:
    """How many pages were obtained, tables of these and of the others; page text is escaped.

    Args:
        pages: Pages that are in the corpus now.
        failed: URL to reason.
        degraded: Sentences about page sources that failed, so that another one was used.
    """
    totals = f"{len(pages):,} of {len(pages) + len(failed):,} pages are in the corpus"
    rows = [_ingest_cells(page) for page in pages]
    heads = ("page", "outcome", "chunks", "tokens")
    return _report(
        "Ingested",
        totals,
        _table(heads, rows, "pages"),
        _failures(failed),
        _paragraphs(degraded),
    )


def site_html(report: SiteReport) -> str:
    """How many pages a crawl obtained, tables of what it did and did not, and why it ended."""
    totals = (
        f"{report.obtained:,} pages are in the corpus, {sum(report.failed.values()):,} could not "
        f"be obtained ({report.seconds:.1f} s)"
    )
    counts = [(OUTCOMES[name], count) for name, count in report.pages.items() if count]
    counts += [(f"not obtained: {reason}", count) for reason, count in report.failed.items()]
    counts += [(f"left alone: {reason}", count) for reason, count in report.skipped.items()]
    return _report(
        f"{report.start_url}{' (continued)' if report.resumed else ''}",
        totals,
        _table(
            ("outcome", "pages"), [(_report_text(what), f"{n:,}") for what, n in counts], "outcomes"
        ),
        _failures(report.failures),
        _paragraphs((*report.degraded, ending(report))),
    )


def _status_cells(page: PageStatus) -> tuple[str, ...]:
    counts = (f"{page.chunk_count:,}", f"{page.token_count:,}")
    return (_link(page.url, page.title), *counts, f"{page.fetched_at:%Y-%m-%d %H:%M}")


def _ingest_cells(page: AcquiredPage) -> tuple[str, ...]:
    counts = (f"{page.chunk_count:,}", f"{page.token_count:,}")
    return (_link(page.url, page.title), OUTCOMES[page.outcome], *counts)


def _failures(reasons: Mapping[str, str]) -> str:
    rows = [(_link(url), _report_text(reason)) for url, reason in reasons.items()]
    return _table(("page", "not obtained because"), rows, "failures")


def _report(name: str, totals: str, *parts: str) -> str:
    return f"<div><p><b>{_report_text(name)}</b>: {_report_text(totals)}</p>{''.join(parts)}</div>"


def _table(heads: Iterable[str], rows: Sequence[Iterable[str]], things: str) -> str:
    """Rows of HTML cells, as many as a notebook can show; nothing when there are none."""
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in heads)
    shown = "".join(_report_row(cells) for cells in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    rest = f"<p>... and {more:,} more {things}</p>" if more > 0 else ""
    return f'{_LEFT}<table class="webrag-report"><tr>{head}</tr>{shown}</table>{rest}'


def _report_row(cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{_report_text(sentence)}</p>" for sentence in sentences)


def _link(url: str, title: str | None = None) -> str:
    return f'<a href="{escape(url)}">{_report_text(title or "") or escape(url)}</a>'


def _report_text(text: str) -> str:
    return escape(one_line(text))


_CONFIG = BriefConfig(include_guide=False, caller="cli")


def register_displays() -> bool:
    """Make results show themselves in the running IPython session.

    Returns:
        False, and nothing is done, outside IPython. Repeating it does no harm.
    """
    shell = _running_shell()
    if shell is None:
        return False
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(OrchestrationResult, _html)
    formatters["text/html"].for_type(CorpusStatus, status_html)
    formatters["text/html"].for_type(SiteReport, site_html)
    _register_text(formatters["text/plain"], OrchestrationResult, _brief)
    _register_text(formatters["text/plain"], CorpusStatus, format_status)
    _register_text(formatters["text/plain"], SiteReport, format_site)
    # By name: what answers in sentences is loaded when it is asked for.
    formatters["text/plain"].for_type_by_name(
        "webrag.answering.models", "ManagerResult", _shows_text(_answer)
    )
    return True


def _running_shell() -> Any:
    """IPython's shell; it is never imported here, only found when it runs already."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _register_text(formatter: Any, kind: type, as_text: Callable[[Any], str]) -> None:
    formatter.for_type(kind, _shows_text(as_text))


def _shows_text(as_text: Callable[[Any], str]) -> Callable[[Any, Any, bool], None]:
    def show(value: Any, printer: Any, _cycle: bool) -> None:
        printer.text(as_text(value))

    return show


def _answer(result: Any) -> str:
    from webrag.presentation.answer import format_answer

    return format_answer(result)


def _html(result: OrchestrationResult) -> str:
    return result_html(result, evidence_blocks(result, _CONFIG, count_tokens=_estimated_tokens))


def _brief(result: OrchestrationResult) -> str:
    return format_brief(result, _CONFIG, count_tokens=_estimated_tokens)


def _estimated_tokens(text: str) -> int:
    # The budget of a display is not a promise to anybody, so loading a tokenizer is not worth it.
    return len(text) // 4
