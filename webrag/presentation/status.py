"""What the corpus holds, as text."""

from collections.abc import Sequence
from datetime import UTC, datetime

from webrag.indexing.models import (
    CollectionSize,
    CorpusStatus,
    FailedPage,
    PageStatus,
)
from webrag.presentation.counting import counted
from webrag.presentation.untrusted import one_line

__all__ = ["format_status"]

_MOST_COLLECTIONS = 50


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
    if status.failed:
        lines.append(f"Pages that could not be obtained: {status.failed:,}")
    if status.outcomes:
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in status.outcomes.items())
        lines.append(f"Last requests: {counts}")
    lines += [
        f"Collection: {status.collection}",
        f"Embedding model: {_embedding(status)}",
        f"Database: {status.database}",
    ]
    if status.page_source:
        lines.append(f"Pages are fetched by: {one_line(status.page_source)}")
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
    if not status.documents and not status.gone and not status.failed:
        return ["", _nothing(status)]
    pages = [_page_line(page) for page in status.pages[:max_pages]]
    failures = [_failure_line(page) for page in status.failures[:max_pages]]
    return [
        *_section("Indexed URLs:", pages, len(status.pages)),
        *_section("Not obtained:", failures, len(status.failures)),
    ]


def _nothing(status: CorpusStatus) -> str:
    if status.only_url is None or not status.other_documents:
        return "Nothing is indexed yet: `answer` or `ingest` add pages."
    are = "is" if status.other_documents == 1 else "are"
    others = _pages(status.other_documents).replace(" page", " other page")
    return (
        f"{status.only_url} is not stored; {others} {are}. `status` without an address lists what "
        "is stored, `ingest` adds a page."
    )


def _section(title: str, lines: list[str], total: int) -> list[str]:
    if not lines:
        return []
    more = total - len(lines)
    return ["", title, *lines, *([f"... and {more:,} more pages"] if more > 0 else [])]


def _page_line(page: PageStatus) -> str:
    by = f" by {one_line(page.source)}" if page.source not in ("", "builtin") else ""
    gone = f", gone since {_time(page.gone_at)}" if page.gone_at else ""
    return (
        f"- {one_line(page.title or '') or 'Untitled'} — {page.url}\n"
        f"  ({counted(page.chunk_count, 'chunk')}, {counted(page.token_count, 'token')}, "
        f"fetched {_time(page.fetched_at)}{by}{gone}){_last_request(page)}"
    )


def _last_request(page: PageStatus) -> str:
    if page.checked_at is None:
        return ""
    reason = f": {one_line(page.reason)}" if page.reason else ""
    return f"\n  (last request {_time(page.checked_at)}: {page.outcome}{reason})"


def _failure_line(page: FailedPage) -> str:
    return f"- {page.url}\n  (failed {_time(page.checked_at)}: {one_line(page.reason)})"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
