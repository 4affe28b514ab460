"""What ingesting and forgetting did, as text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from webrag.indexing.models import AcquiredPage
from webrag.orchestration.crawl_models import SiteReport
from webrag.presentation.counting import counted
from webrag.presentation.untrusted import one_line

if TYPE_CHECKING:
    from webrag.indexing.forgetting import ForgetReport

__all__ = ["OUTCOMES", "ending", "format_forget", "format_ingest", "format_site"]

# What became of a page, in the words of every report.
OUTCOMES = {
    "indexed": "indexed",
    "updated": "updated: the page had changed",
    "unchanged": "unchanged since it was last fetched",
    "stored": "already stored",
}
_ENDINGS = {
    "complete": "Every page that was found has been visited.",
    "limit": "The limit was reached: {queued:,} pages that were found have not been visited. "
    "Repeat the command with a higher --max-pages to go on.",
    "unreachable": "The site stopped answering, so {queued:,} pages were not visited. Repeat the "
    "command later to go on.",
}


def format_ingest(
    pages: Sequence[AcquiredPage],
    failed: Mapping[str, str],
    unfinished: Sequence[str] = (),
    degraded: Sequence[str] = (),
) -> str:
    """One entry per page asked for: what happened to it, or why it failed.

    Args:
        pages: Pages that are in the corpus now.
        failed: URL to reason.
        unfinished: URLs that time did not suffice for.
        degraded: Sentences about page sources that failed, so that another one was used.
    """
    total = len(pages) + len(failed) + len(unfinished)
    lines = ["[INGEST REPORT]", f"{len(pages):,} of {total:,} pages are in the corpus.", ""]
    lines += map(_ingest_line, pages)
    lines += [f"- {url}\n  (failed: {one_line(reason)})" for url, reason in failed.items()]
    lines += [f"- {url}\n  (not finished)" for url in unfinished]
    lines += _notes(degraded)
    if unfinished:
        lines += [
            "",
            f"Time ran out before {len(unfinished):,} of {total:,} pages were finished. Repeat the "
            "call to continue: what is in the corpus is kept.",
        ]
    return "\n".join(lines).rstrip()


def _ingest_line(page: AcquiredPage) -> str:
    return (
        f"- {one_line(page.title or '') or 'Untitled'} — {page.url}\n"
        f"  ({OUTCOMES[page.outcome]}; {counted(page.chunk_count, 'chunk')}, "
        f"{counted(page.token_count, 'token')})"
    )


def format_forget(report: "ForgetReport") -> str:
    """What was deleted, and which of the URLs named are not stored."""
    count = len(report.removed)
    lines = ["[FORGET REPORT]", "1 page deleted." if count == 1 else f"{count:,} pages deleted."]
    lines += [f"- {url}" for url in report.removed]
    if report.unknown:
        lines += ["", "Not stored:", *(f"- {url}" for url in report.unknown)]
    return "\n".join(lines)


def format_site(report: SiteReport) -> str:
    """What a crawl did: totals, failures and omissions by reason, and why it ended."""
    lines = [
        "[INGEST REPORT]",
        f"Site: {report.start_url}{' (continued)' if report.resumed else ''}",
        f"{report.obtained:,} pages are in the corpus, {sum(report.failed.values()):,} could not be"
        f" obtained ({report.seconds:.1f} s).",
    ]
    outcomes = [(report.pages.get(name, 0), words) for name, words in OUTCOMES.items()]
    lines += [f"- {count:,} {words}" for count, words in outcomes if count]
    lines += _reasons("Not obtained:", report.failed)
    lines += [f"  {url}: {one_line(reason)}" for url, reason in report.failures.items()]
    lines += _reasons("Left alone:", report.skipped)
    lines += _notes(report.degraded)
    return "\n".join([*lines, "", ending(report)])


def ending(report: SiteReport) -> str:
    """Why a crawl ended, and how to go on where that is possible."""
    return _ENDINGS[report.ended].format(queued=report.queued)


def _notes(degraded: Sequence[str]) -> list[str]:
    notes = [f"Note: {one_line(sentence)}" for sentence in degraded]
    return ["", *notes] if notes else []


def _reasons(title: str, counts: Mapping[str, int]) -> list[str]:
    if not counts:
        return []
    return ["", title, *(f"- {count:,}: {reason}" for reason, count in counts.items())]
