"""What the corpus holds, as self-contained HTML for notebooks."""

from html import escape

from webrag.indexing.models import CorpusStatus, PageStatus
from webrag.presentation.untrusted import one_line

__all__ = ["status_html"]

_MOST_PAGES = 100


def status_html(status: CorpusStatus) -> str:
    """Totals, then a table of the newest pages; titles and addresses are escaped."""
    totals = (
        f"{status.documents:,} pages, {status.chunks:,} chunks, {status.tokens:,} tokens, "
        f"{status.embedding_model or 'no embedding model yet'}"
    )
    heads = "".join(f"<th>{name}</th>" for name in ("page", "chunks", "tokens", "fetched"))
    rows = "".join(map(_row, status.pages[:_MOST_PAGES]))
    more = len(status.pages) - _MOST_PAGES
    return (
        f"<div><p><b>{escape(status.collection)}</b>: {escape(totals)}</p>"
        + (f"<table><tr>{heads}</tr>{rows}</table>" if rows else "")
        + (f"<p>... and {more:,} more pages</p>" if more > 0 else "")
        + "</div>"
    )


def _row(page: PageStatus) -> str:
    title = escape(one_line(page.title or "") or page.url)
    cells = (
        f'<a href="{escape(page.url)}">{title}</a>',
        f"{page.chunk_count:,}",
        f"{page.token_count:,}",
        f"{page.fetched_at:%Y-%m-%d %H:%M}",
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
