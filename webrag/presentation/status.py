"""What the corpus holds and what ingesting did, as text."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from webrag.indexing.models import AcquiredPage, CollectionSize, CorpusStatus, PageStatus
from webrag.presentation.untrusted import one_line

__all__ = ["format_ingest", "format_status"]

_MOST_COLLECTIONS = 50
_OUTCOMES = {
    "indexed": "indexed",
    "updated": "updated: the page had changed",
    "unchanged": "unchanged since it was last fetched",
    "stored": "already stored",
}


def format_status(status: CorpusStatus, *, max_pages: int = 200) -> str:
    """Totals of the corpus, then its pages, newest first.

    Args:
        status: What the corpus reported.
        max_pages: Pages listed at most; a line says how many more there are.
    """
    lines = [
        "[CORPUS STATUS]",
        f"Documents indexed: {status.documents:,}",
        f"Total chunks: {status.chunks:,}",
        f"Total tokens: {status.tokens:,}",
        f"Links known: {status.links:,}",
    ]
    if status.gone:
        lines.append(f"Pages gone from their sites (not searched): {status.gone:,}")
    lines += [
        f"Collection: {status.collection}",
        f"Embedding model: {_embedding(status)}",
        f"Database: {status.database}",
    ]
    if status.available_embedding_model:
        lines.append(
            f"Note: {status.available_embedding_model} is available; `webrag reindex` re-embeds "
            "the stored text with it."
        )
    if status.other_collections:
        lines.append(f"Other collections: {_others(status.other_collections)}")
    return "\n".join([*lines, *_listing(status, max_pages)])


def _others(collections: Sequence[CollectionSize]) -> str:
    shown = collections[:_MOST_COLLECTIONS]
    names = [
        each.name if each.documents is None else f"{each.name} ({_pages(each.documents)})"
        for each in shown
    ]
    more = len(collections) - len(shown)
    return ", ".join([*names, f"and {more:,} more"] if more else names)


def _pages(count: int) -> str:
    return "1 page" if count == 1 else f"{count:,} pages"


def _embedding(status: CorpusStatus) -> str:
    if status.embedding_model is None:
        return "none yet (the corpus is empty)"
    return f"{status.embedding_model} ({status.embedding_dimensions} dimensions)"


def _listing(status: CorpusStatus, max_pages: int) -> list[str]:
    if not status.pages:
        empty = not status.documents and not status.gone
        return ["", "Nothing is indexed yet: `answer` or `ingest` add pages."] if empty else []
    shown = status.pages[:max_pages]
    lines = ["", "Indexed URLs:", *map(_page_line, shown)]
    more = len(status.pages) - len(shown)
    return [*lines, f"... and {more:,} more pages"] if more > 0 else lines


def _page_line(page: PageStatus) -> str:
    gone = f", gone since {_time(page.gone_at)}" if page.gone_at else ""
    return (
        f"- {one_line(page.title or '') or 'Untitled'} — {page.url}\n"
        f"  ({page.chunk_count:,} chunks, {page.token_count:,} tokens, "
        f"fetched {_time(page.fetched_at)}{gone})"
    )


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def format_ingest(pages: Sequence[AcquiredPage], failed: Mapping[str, str]) -> str:
    """One entry per page asked for: what happened to it, or why it failed.

    Args:
        pages: Pages that are in the corpus now.
        failed: URL to reason.
    """
    total = len(pages) + len(failed)
    lines = ["[INGEST REPORT]", f"{len(pages):,} of {total:,} pages are in the corpus.", ""]
    lines += map(_ingest_line, pages)
    lines += [f"- {url}\n  (failed: {one_line(reason)})" for url, reason in failed.items()]
    return "\n".join(lines).rstrip()


def _ingest_line(page: AcquiredPage) -> str:
    return (
        f"- {one_line(page.title or '') or 'Untitled'} — {page.url}\n"
        f"  ({_OUTCOMES[page.outcome]}; {page.chunk_count:,} chunks, {page.token_count:,} tokens)"
    )
