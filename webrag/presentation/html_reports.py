"""What the corpus holds and what ingesting did, as self-contained HTML for notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from webrag.indexing.models import AcquiredPage, CorpusStatus, PageStatus
from webrag.orchestration.crawl_models import SiteReport
from webrag.presentation.reports import OUTCOMES, ending
from webrag.presentation.untrusted import one_line

__all__ = ["ingest_html", "site_html", "status_html"]

_MOST_ROWS = 100


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
        _table(("outcome", "pages"), [(_text(what), f"{n:,}") for what, n in counts], "outcomes"),
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
    rows = [(_link(url), _text(reason)) for url, reason in reasons.items()]
    return _table(("page", "not obtained because"), rows, "failures")


def _report(name: str, totals: str, *parts: str) -> str:
    return f"<div><p><b>{_text(name)}</b>: {_text(totals)}</p>{''.join(parts)}</div>"


def _table(heads: Iterable[str], rows: Sequence[Iterable[str]], things: str) -> str:
    """Rows of HTML cells, as many as a notebook can show; nothing when there are none."""
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in heads)
    shown = "".join(_row(cells) for cells in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    rest = f"<p>... and {more:,} more {things}</p>" if more > 0 else ""
    return f"<table><tr>{head}</tr>{shown}</table>{rest}"


def _row(cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{_text(sentence)}</p>" for sentence in sentences)


def _link(url: str, title: str | None = None) -> str:
    return f'<a href="{escape(url)}">{_text(title or "") or escape(url)}</a>'


def _text(text: str) -> str:
    return escape(one_line(text))
