"""Words what the corpus holds, what was done to it, and stored pages."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from webrag.argument_checks import shown_moment
from webrag.corpus.models import (
    AcquiredPage,
    CollectionSize,
    CorpusStatus,
    PageStatus,
    SiteSize,
)
from webrag.crawling.report import ALIAS, SIZE_REASONS, CrawlProgress, SiteReport
from webrag.errors import InputError
from webrag.ingestion.addresses import FILES, is_local, site_of
from webrag.presentation.brief.models import Caller
from webrag.presentation.untrusted import frame_notice, framed, one_line
from webrag.retrieval.citation_checks import VERBATIM, CitationCheck, Finding

if TYPE_CHECKING:
    from webrag.corpus.maintenance.reembedding import ReindexReport
    from webrag.corpus.writer import ForgetReport
    from webrag.retrieval.reading import PageExcerpt


def counted(number: int, noun: str) -> str:
    """`1 page`, `2 pages`, `1,200 pages`; the noun must take a plain s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def crawl_line(at: CrawlProgress) -> str:
    """Say on one line how far a crawl is."""
    pace = f", {at.pages_per_second:.1f} pages/s" if at.pages_per_second else ""
    left = f", about {timedelta(seconds=round(at.seconds_left))} left" if at.seconds_left else ""
    return (
        f"{counted(at.done, 'page')} done, {at.queued:,} waiting, {at.failed:,} failed{pace}{left}"
    )


# What became of a page, in the words of every report.
OUTCOMES = {
    "indexed": "stored",
    "updated": "updated: the page had changed",
    "unchanged": "unchanged since it was last fetched",
    "stored": "already stored",
    ALIAS: "found under another address, too",
}

_LISTED_PAGES = 50

_ALL_VISITED = "Every page that was found has been visited."

_ENDINGS = {
    "complete": _ALL_VISITED,
    "limit": "The limit was reached: {queued:,} pages that were found have not been visited. "
    "Repeat the {again} with a higher {limit} to go on.",
    "unreachable": "The site stopped answering, so {queued:,} pages were not visited. Repeat the "
    "{again} later to go on.",
    "paused": "{queued:,} pages that were found wait for the next turn.",
}


def format_ingest(
    pages: Sequence[AcquiredPage],
    failed: Mapping[str, str],
    unfinished: Sequence[str] = (),
    degraded: Sequence[str] = (),
    gone: Sequence[str] = (),
    left_out: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """Give an entry per page asked for, of many only of those that failed: what became of it."""
    total = len(pages) + len(failed) + len(unfinished)
    lines = ["[INGEST REPORT]", f"{len(pages):,} of {total:,} pages are stored.", ""]
    if len(pages) > _LISTED_PAGES:
        counts = Counter(page.outcome for page in pages)
        lines += [f"- {number:,} {OUTCOMES[outcome]}" for outcome, number in counts.items()]
    else:
        lines += map(_ingest_line, pages)
    lines += [f"- {url}\n  (gone: there is no such file any more)" for url in gone]
    lines += [
        f"- {url}\n  (failed: {reason_beside(url, reason)})" for url, reason in failed.items()
    ]
    lines += [f"- {url}\n  (not finished)" for url in unfinished]
    if left_out:
        counted_out = ", ".join(f"{count:,} {why}" for why, count in sorted(left_out.items()))
        lines += ["", f"Left out: {counted_out}."]
    lines += _notes(degraded)
    if unfinished:
        lines += [
            "",
            f"Time ran out before {len(unfinished):,} of {total:,} pages were finished. Repeat the "
            "call to continue: what is stored is kept.",
        ]
    return "\n".join(lines).rstrip()


def reason_beside(url: str, reason: str) -> str:
    """Word a failure on a line that names the page already."""
    said = reason.removeprefix(f"The page {url} ").removeprefix(f"{url} ")
    return one_line(said, max_chars=300).removesuffix(".")


def _ingest_line(page: AcquiredPage) -> str:
    how = "; read with your login" if page.with_login else ""
    return (
        f"- {one_line(page.title or '') or 'Untitled'} — {page.url}\n"
        f"  ({OUTCOMES[page.outcome]}{how})"
    )


def format_forget(report: "ForgetReport") -> str:
    """Name what was deleted, and the URLs that are not stored."""
    lines = ["[FORGET REPORT]", f"{counted(len(report.removed), 'page')} deleted."]
    lines += [f"- {url}" for url in report.removed]
    if report.unknown:
        lines += ["", "Not stored:", *(f"- {url}" for url in report.unknown)]
    return "\n".join(lines)


def format_reindexing(report: "ReindexReport") -> str:
    """Report a reindexing."""
    if report.was_current:
        return f"The collection is made with {report.model} already; nothing was done."
    return (
        f"Searches use {report.model} in place of {report.previous_model}:"
        f" {counted(report.chunks, 'passage')}, {report.embedded:,} of them embedded now."
    )


def format_site(report: SiteReport, *, caller: Caller = "cli") -> str:
    """Say what a crawl did: totals, failures and omissions by reason, and why it ended."""
    are = "is" if report.obtained == 1 else "are"
    lines = [
        "[INGEST REPORT]",
        f"Site: {report.start_url}{' (continued)' if report.resumed else ''}",
        f"{counted(report.obtained, 'page')} {are} stored, {sum(report.failed.values()):,}"
        f" could not be fetched ({report.seconds:.1f} s).",
    ]
    if report.before:
        lines.append(f"Runs before this one had visited {counted(report.before, 'page')}.")
    outcomes = [(report.pages.get(name, 0), words) for name, words in OUTCOMES.items()]
    lines += [f"- {count:,} {words}" for count, words in outcomes if count]
    lines += _reasons("Could not be fetched:", report.failed)
    failures = list(report.failures.items())
    lines += [
        f"  {url}: {reason_beside(url, reason)}" for url, reason in failures[:_LATEST_FAILURES]
    ]
    if len(failures) > _LATEST_FAILURES:
        hosts = dict.fromkeys(urlsplit(url).netloc for url, _ in failures)
        status = "webrag status " if caller == "cli" else "status source_url="
        named_by = " and ".join(f"`{status}{host}`" for host in hosts)
        lines.append(f"  {named_by} list{'s' if len(hosts) == 1 else ''} them all.")
    lines += _reasons("Left alone:", report.skipped)
    lines += _notes(report.degraded)
    return "\n".join([*lines, "", ending(report, caller=caller)])


def format_unfinished_site(url: str, done: int, queued: int) -> str:
    """Report a crawl whose time was over before it ended: pages visited, pages that wait."""
    return (
        f"[INGEST REPORT]\nSite: {_url(url)}\n{counted(done, 'page')} visited, {queued:,} wait.\n\n"
        "Time ran out. Repeat the call to go on where this one stopped: what is stored is kept."
    )


# What a crawl is called there, the limit of its pages, and what stores a page alone.
_CALLERS = {
    "mcp": ("call", "max_pages", "`ingest` with `url` stores"),
    "cli": ("command", "--max-pages", "`webrag ingest URL` stores"),
    "page": ("crawl", "number of pages", "adding a page alone stores"),
}


def ending(report: SiteReport, *, caller: Literal["mcp", "cli", "page"] = "cli") -> str:
    """Say why a crawl ended, and how to go on where that is possible."""
    again, limit, one = _CALLERS[caller]
    said = _ENDINGS[report.ended].format(queued=report.queued, again=again, limit=limit)
    if report.skipped:
        said = said.replace(_ALL_VISITED, f"Every other page {_ALL_VISITED[11:]}")
    left = report.left_alone - report.not_pages
    if not left:
        return said
    alone = "1 address of the site was" if left == 1 else f"{left:,} addresses of the site were"
    more = f", and the {again} with a higher {limit} takes more of those that were too many"
    are_many = not report.skipped.keys().isdisjoint(SIZE_REASONS.values())
    return (
        f"{said} {alone} left alone, for the reasons above: {one} any of them"
        f"{more if are_many else ''}."
    )


def _notes(degraded: Sequence[str]) -> list[str]:
    notes = [f"Note: {one_line(sentence)}" for sentence in degraded]
    return ["", *notes] if notes else []


def _reasons(title: str, counts: Mapping[str, int]) -> list[str]:
    if not counts:
        return []
    return ["", title, *(f"- {count:,}: {reason}" for reason, count in counts.items())]


_MOST_COLLECTIONS = 50


STATUS_PAGES = 50
"""Pages that one `status` of a server lists."""

_LATEST_FAILURES = 5


def pages_with(status: CorpusStatus, contains: str) -> CorpusStatus:
    """The status with only those pages listed whose URL or title holds a text."""
    wanted = contains.casefold()
    pages = tuple(
        page for page in status.pages if wanted in f"{page.url} {page.title or ''}".casefold()
    )
    failures = tuple(page for page in status.failures if wanted in page.url.casefold())
    return status.model_copy(update={"sites": (), "pages": pages, "failures": failures})


def status_of(status: CorpusStatus, place: str) -> CorpusStatus:
    """Give the status of one host, or of files below a folder, from one that lists its pages."""
    try:
        site = None if is_local(place) else site_of(f"http://{place}/")
    except ValueError:
        raise InputError(f"{one_line(place)!r} is not a host.") from None

    def is_of(url: str) -> bool:
        return url.startswith(f"{place}/") if site is None else site_of(url) == site

    pages = tuple(page for page in status.pages if is_of(page.url))
    here = [page for page in pages if page.gone_at is None]
    failures = tuple(page for page in status.failures if is_of(page.url))
    numbers = {
        "only_url": place,
        "documents": len(here),
        "other_documents": status.documents - len(here),
        "gone": len(pages) - len(here),
        "chunks": sum(page.chunk_count for page in here),
        "tokens": sum(page.token_count for page in here),
        "failed": len(failures),
        "outcomes": Counter(page.outcome for page in pages),
        "sites": tuple(each for each in status.sites if each.site == site),
    }
    return status.model_copy(update={**numbers, "pages": pages, "failures": failures})


def format_status(
    status: CorpusStatus,
    *,
    max_pages: int = 200,
    page: int = 1,
    is_listed: bool = True,
    caller: Caller = "cli",
) -> str:
    """Say how much is stored, of which sites, what could not be fetched, then what is listed.

    Listed is the `page`th portion, from 1, of `max_pages`; if pages were not asked for, the latest
    failures alone. A model does without what only who runs it can change.
    """
    lines = ["[CORPUS STATUS]"]
    if caller == "cli":
        lines += [f"Pages stored: {status.documents:,}", f"Passages: {status.chunks:,}"]
    else:
        lines += [f"Documents indexed: {status.documents:,}", f"Total chunks: {status.chunks:,}"]
        lines.append(f"Total tokens: {status.tokens:,}")
    if status.gone:
        lines.append(f"Gone from their sites, not searched: {status.gone:,}")
    if status.failed:
        lines.append(f"Could not be fetched: {status.failed:,}")
    lines += _work(status)
    if caller == "cli":
        lines += _setup(status)
    if not status.documents and not status.gone and not status.failed:
        return "\n".join([*lines, "", _nothing(status, caller)])
    lines += _sites(status, caller)
    return "\n".join([*lines, *_listing(status, max_pages, page, caller, is_listed=is_listed)])


def _setup(status: CorpusStatus) -> Iterator[str]:
    yield f"Collection: {status.collection}"
    if status.other_collections:
        yield f"Other collections: {_others(status.other_collections)}"
    if status.embedding_model is not None:
        yield f"Embedding model: {status.embedding_model}"
    yield f"Database: {status.database}"
    if status.page_source not in ("", "builtin"):
        yield f"Pages are fetched by: {one_line(status.page_source)}"
    if status.available_embedding_model:
        yield (
            f"Note: {status.available_embedding_model} is available; `webrag reindex` makes what is"
            " stored searchable with it."
        )


def _sites(status: CorpusStatus, caller: Caller) -> list[str]:
    """A line for each site, the smallest of hundreds counted only, and how to list pages."""
    lines = ["", "Sites:"] if status.sites else []
    for site in status.sites[:_MOST_SITES]:
        since = shown_moment(site.fetched_at)
        lines.append(
            f"- {site_name(site.site)}: {counted(site.documents, 'page')}, fetched since {since}"
        )
        lines += [f"  {each}" for each in _versions(site)]
    if (more := len(status.sites) - _MOST_SITES) > 0:
        lines.append(f"... and {counted(more, 'more site')}")
    if status.sites and status.only_url is None and not status.pages:
        named = {"cli": "`webrag status --pages` lists the", "mcp": "`status` of a host lists its"}
        lines += ["", f"{named[caller]} pages."]
    return lines


def site_name(site: str) -> str:
    """Name a site as people do."""
    return "files of this machine" if site == FILES else one_line(site)


def _versions(site: SiteSize) -> Iterator[str]:
    for library, versions in list(site.versions.items())[:_MOST_LIBRARIES]:
        of = "" if library == site.site else f" of {one_line(library)}"
        more = len(versions) - _MOST_VERSIONS
        named = ", ".join(map(one_line, versions[:_MOST_VERSIONS]))
        yield f"versions{of}: {named}" + (f" and {more:,} more" if more > 0 else "")
    if len(site.versions) > _MOST_LIBRARIES:
        yield f"versions of {len(site.versions) - _MOST_LIBRARIES:,} more"


_MOST_SITES = 40
_MOST_LIBRARIES = 5
_MOST_VERSIONS = 12


def _work(status: CorpusStatus) -> list[str]:
    lines = [f"Jobs that wait or run: {status.jobs:,}"] if status.jobs else []
    if status.schedules:
        overdue = f", {status.schedules_overdue:,} overdue" if status.schedules_overdue else ""
        lines.append(
            f"Sites visited again and again: {status.schedules:,} ({status.schedules_due:,} due"
            f"{overdue}, {status.schedules_failing:,} failing)"
        )
    return lines


def _others(collections: Sequence[CollectionSize]) -> str:
    shown = collections[:_MOST_COLLECTIONS]
    names = [
        each.name if each.documents is None else f"{each.name} ({counted(each.documents, 'page')})"
        for each in shown
    ]
    more = len(collections) - len(shown)
    return ", ".join([*names, f"and {more:,} more"] if more else names)


def _listing(
    status: CorpusStatus,
    max_pages: int,
    portion: int,
    caller: Caller,
    *,
    is_listed: bool,
) -> list[str]:
    first = (portion - 1) * max_pages
    window = slice(first, first + max_pages)
    pages = [_page_line(page, caller) for page in status.pages[window]]
    failures = status.failures[window] if is_listed else status.failures[:_LATEST_FAILURES]
    listed = [
        *_section(
            "Pages:" if caller == "cli" else "Indexed URLs:", pages, len(status.pages) - first
        ),
        *_section(
            "Could not be fetched:",
            [
                f"- {page.url}\n  (failed {shown_moment(page.checked_at)}:"
                f" {reason_beside(page.url, page.reason)})"
                for page in failures
            ],
            len(status.failures) - first,
        ),
    ]
    if portion > 1 and not listed:
        total = counted(-(-max(len(status.pages), len(status.failures)) // max_pages), "page")
        return ["", f"Page {portion} of the listing is empty; it has {total}."]
    return listed


def _nothing(status: CorpusStatus, caller: Caller) -> str:
    webrag = "webrag " if caller == "cli" else ""
    if status.only_url is None or not status.other_documents:
        return f"Nothing is stored yet: `{webrag}answer` or `{webrag}ingest` add pages."
    are = "is" if status.other_documents == 1 else "are"
    others = counted(status.other_documents, "page").replace(" page", " other page")
    return (
        f"{status.only_url} is not stored; {others} {are}. `{webrag}status` without an address"
        f" lists what is stored, `{webrag}ingest` adds a page."
    )


def _section(title: str, lines: list[str], total: int) -> list[str]:
    if not lines:
        return []
    more = total - len(lines)
    return ["", title, *lines, *([f"... and {more:,} more pages"] if more > 0 else [])]


def _page_line(page: PageStatus, caller: Caller) -> str:
    size = f"{counted(page.chunk_count, 'chunk')}, {counted(page.token_count, 'token')}"
    size = counted(page.chunk_count, "passage") if caller == "cli" else size
    by = f" by {one_line(page.source)}" if page.source not in ("", "builtin") else ""
    by += " with your login" if page.with_login else ""
    gone = f", gone since {shown_moment(page.gone_at)}" if page.gone_at else ""
    return (
        f"- {one_line(page.title or '') or 'Untitled'} — {page.url}\n"
        f"  ({size}, fetched {shown_moment(page.fetched_at)}{by}{gone}){_last_request(page)}"
    )


def _last_request(page: PageStatus) -> str:
    # Else it is the one that fetched the page.
    if page.checked_at is None or page.outcome in ("indexed", "updated"):
        return ""
    reason = f": {one_line(page.reason)}" if page.reason else ""
    return f"\n  (last request {shown_moment(page.checked_at)}: {page.outcome}{reason})"


_STORED = {
    "exact": "exact, word for word",
    "moved": "exact, but at other offsets than given",
    "reformatted": "the same words, with other white space, markup or quotation marks",
    "changed": "NOT verbatim; the page has a similar passage",
    "absent": "NOT there; the page holds nothing like it",
    "not_stored": "unknown, as the page is not stored (`ingest` or `answer` store it)",
}

LIVE = {
    "exact": "still there",
    "moved": "still there, at another place",
    "reformatted": "still there, formatted differently",
    "changed": "changed; the page has a similar passage now",
    "absent": "not there; the page holds nothing like it",
    "gone": "gone; the site says that the page does not exist",
    "unreachable": "unknown, as the page could not be read",
    "unchecked": "not checked",
    "not_stored": "not checked, as the page is not stored any more",
}
"""What became of a quotation on the live page, in words."""

SHOWN_CHARS = 1500


def format_verification(
    checks: Sequence[CitationCheck],
    *,
    nonce: str | None = None,
    refused: Mapping[int, str] = MappingProxyType({}),
    shown_chars: int = SHOWN_CHARS,
) -> str:
    """Give a line for each quotation: what each version of its page holds.

    `refused` says why citations, by their place in the call from 1, are not among the checks; page
    text of `shown_chars` at most is framed by the nonce, if there is one.
    """
    total = len(checks) + len(refused)
    stored = sum(check.stored.state in VERBATIM for check in checks)
    lines = ["[VERIFICATION]", f"{stored} of {total} are verbatim in the stored version."]
    asked = [check for check in checks if check.live.state not in ("unchecked", "unreachable")]
    if asked:
        live = sum(check.live.state in VERBATIM for check in asked)
        lines.append(f"{live} of {len(asked)} are verbatim on the live page.")
    places = (number for number in count(1) if number not in refused)
    entries = {
        number: _entry(number, check, nonce, shown_chars)
        for number, check in zip(places, checks, strict=False)
    }
    entries |= {
        number: f"[{number}] Not checked: {one_line(refused[number])}" for number in refused
    }
    told = [entry for _, entry in sorted(entries.items())]
    notice = frame_notice(nonce) if any("\n<page-" in entry for entry in told) else ""
    return "\n\n".join(filter(None, ["\n".join(lines), notice, *told]))


def _entry(number: int, check: CitationCheck, nonce: str | None, shown_chars: int) -> str:
    """One line, and below it what the page has in place of a quotation that is not verbatim."""
    given = one_line(check.citation.quote, max_chars=max(1, min(shown_chars, _TITLE_CHARS)))
    line = f"[{number}] {_found(_STORED, check.stored)}"
    if check.page_unchanged:
        line += "; live: the page is unchanged"
    elif check.live.state != "unchecked" or check.live.reason is not None:
        line += f"; live: {_found(LIVE, check.live)}"
    lines = [f'{line} \u2014 "{given}", {_url(check.url)}']
    if check.last_seen_at is not None and check.missing_since is not None:
        lines.append(
            f"It disappeared between {shown_moment(check.last_seen_at)}, when a text with"
            f" it was last confirmed, and {shown_moment(check.missing_since)}."
        )
    known = {check.citation.quote, None}
    for name, finding in (("Stored", check.stored), ("Live", check.live)):
        if finding.text not in known and finding.state not in VERBATIM:
            known.add(finding.text)
            text = finding.text or ""
            text = text if len(text) <= shown_chars else f"{text[:shown_chars]}…"
            lines.append(f"{name} text:\n{framed(text, nonce)}")
    return "\n".join(lines)


def _found(words: Mapping[str, str], finding: Finding) -> str:
    when = "" if finding.seen_at is None else f" ({shown_moment(finding.seen_at)})"
    place = "" if finding.text is None else f" (chars {finding.char_start}-{finding.char_end})"
    reason = "" if finding.reason is None else f" ({one_line(finding.reason, max_chars=300)})"
    return f"{words[finding.state]}{place}{when}{reason}"


def _url(url: str) -> str:
    return "".join(one_line(url, max_chars=2000).split())


_TITLE_CHARS = 160


def page_uri(document_id: object) -> str:
    """Stable address of a stored page, for MCP clients."""
    return f"webrag://page/{document_id}"


def format_excerpt(
    excerpt: "PageExcerpt",
    *,
    token_budget: int,
    count_tokens: Callable[[str], int],
    nonce: str | None = None,
) -> "tuple[str, PageExcerpt]":
    """Say where part of a page stands, give its text, framed by a nonce, and how to read on.

    The excerpt, returned too, is cut where it does not fit the budget; what names the page may
    exceed that.
    """
    # Imported here: clients wait for the tool list, and it brings the database's driver.
    from webrag.retrieval.reading import cut_to_tokens, last_end

    shown, lines = excerpt, _MOST_OUTLINED
    while lines and count_tokens(_outline(excerpt, lines)) > token_budget * _OUTLINE_SHARE:
        lines //= 2
    while count_tokens(text := _excerpt(shown, nonce, lines)) > token_budget:
        if len(shown.text) <= _LEAST_SHOWN_CHARS:
            break  # whoever reads on must get on, whatever the address of the page takes
        size = len(shown.text)
        cut = cut_to_tokens(
            shown.text,
            0,
            max(count_tokens(shown.text) - (count_tokens(text) - token_budget), 1),
            count_tokens,
        )
        cut = cut if len(cut) < size else cut[: size - 1]
        if len(cut) < _LEAST_SHOWN_CHARS:
            cut = shown.text[: last_end(shown.text, 0, _LEAST_SHOWN_CHARS)]
        end = shown.char_start + len(cut)
        shown = shown.model_copy(update={"text": cut, "char_end": end})
    return text, shown


def _excerpt(excerpt: "PageExcerpt", nonce: str | None, lines: int) -> str:
    page, total = excerpt.page, excerpt.page_chars
    title = one_line(page.title or "", max_chars=_TITLE_CHARS) or "Untitled"
    how = " with your login" if page.with_login else ""
    gone = "" if page.gone_at is None else f", gone since {shown_moment(page.gone_at)}"
    head = [f"Title: {title}", f"URL: {_url(page.url)}"]
    head.append(f"Fetched: {shown_moment(page.fetched_at)}{how}{gone}")
    more = "" if excerpt.next_offset is None else f"; read on with offset={excerpt.next_offset}"
    head.append(f"Shown: chars {excerpt.char_start}-{excerpt.char_end} of {total}{more}")
    if excerpt.note:
        head.append(f"Note: {excerpt.note}")
    outline = _outline(excerpt, lines)
    parts = ["\n".join(["[PAGE]", *head]), frame_notice(nonce)]
    parts += [f"Outline, with offsets:\n{framed(outline, nonce)}"] if outline else []
    parts.append(framed(excerpt.text, nonce))
    return "\n\n".join(part for part in parts if part)


_MOST_OUTLINED = 30
_LEAST_OUTLINED = 5
_OUTLINE_SHARE = 0.25
_LEAST_SHOWN_CHARS = 200
_OUTLINED_CHARS = 80


def _outline(excerpt: "PageExcerpt", most: int) -> str:
    """Offsets and headings, the upper levels; only where a page begins that goes on."""
    if not most or excerpt.char_start or excerpt.next_offset is None:
        return ""
    by_level = sorted(excerpt.headings, key=lambda each: each.level)
    kept = by_level[:most]
    if len(by_level) > most:
        whole = [each for each in kept if each.level < by_level[most].level]
        kept = whole if len(whole) >= _LEAST_OUTLINED else kept
    lines = [
        f"{'  ' * (each.level - kept[0].level)}"
        f"{one_line(each.text, max_chars=_OUTLINED_CHARS)} ({each.char_start})"
        for each in sorted(kept, key=lambda each: each.char_start)
    ]
    more = len(excerpt.headings) - len(lines)
    return "\n".join([*lines, *([f"({more:,} more headings)"] if more else [])])
