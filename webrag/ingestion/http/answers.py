"""Reads a complete HTTP answer: as a page, a redirect or a failure; it sends nothing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ada_url import URL
from selectolax.lexbor import LexborHTMLParser

from webrag.errors import (
    FetchError,
    InputError,
    PageGoneError,
    RefusedAddressError,
    UnusablePageError,
)
from webrag.ingestion.addresses import canonical_url
from webrag.ingestion.html.tree import ancestors, attribute
from webrag.ingestion.http.client import Answer
from webrag.ingestion.http.decode import (
    HTML_TYPES,
    UnreadableContent,
    charset_of_header,
    decode,
    media_type_of,
    page_kind,
)
from webrag.ingestion.models import FetchedPage, markdown_version
from webrag.ingestion.quality import wall_of_answer, wall_of_redirect

_GONE = frozenset({404, 410})
_CLOSED = frozenset({401, 403, 407, 451})
_TOO_OFTEN = 429
BUSY = frozenset({_TOO_OFTEN, 503})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_VALIDATOR_CHARS = 500
# A page that shows itself for longer than this wants to be read before it moves on.
_MAX_REFRESH_DELAY_S = 10.0
_REFRESH_SEARCHED_BYTES = 16_384
_FRAMESET = re.compile(rb"<frameset[\s>]", re.IGNORECASE)
_FRAMES_SEARCHED_BYTES = 100_000
_REFRESH = re.compile(
    r"\s*+(\d{0,6}+(?:\.\d*+)?+)(?:\s++[;,]?|[;,])\s*+(?:url\s*+=\s*+)?[\"']?([^\"']+)", re.I
)
_LINK = re.compile(r"<([^<>]{1,2000})>((?:\s*;\s*[\w-]+\s*=\s*(?:\"[^\"]*\"|[^\s;,]+))*)")
_LINK_PARAMETER = re.compile(r"(?<![\w-])([\w-]++)\s*+=\s*+(?:\"([^\"]*)\"|([^\s;,]+))")


def status_failure(url: str, status: int) -> FetchError:
    """The error that a status other than 2xx stands for."""
    if status in _GONE:
        message = f"The page {url} does not exist (HTTP {status})."
        return PageGoneError(message, url=url, status=status)
    message, hint = f"The page {url} answered HTTP {status}.", None
    if status in _CLOSED:
        message = f"The page {url} is not open to everyone (HTTP {status})."
        hint = "The site may want a login, or may turn automatic readers away."
    elif status == _TOO_OFTEN:
        hint = "The site wants to be asked less often; try again later."
    return FetchError(message, url=url, status=status, hint=hint)


def next_address(answer: Answer, *, had_login: bool = False) -> str | None:
    """Return where an answer sends its reader, by status, meta refresh or its only frame.

    Raises:
        RefusedAddressError: To something that is not a web address.
        UnusablePageError: To a login or consent page.
    """
    if answer.status in _REDIRECTS:
        location = answer.headers.get("location") or None
    else:
        location = _meta_refresh(answer) or _only_frame(answer)
    if location is None:
        return None
    try:
        target = canonical_url(location, answer.url, keep_tracking=True)
    except InputError as error:
        said = f"{answer.url} redirects to an address that is not followed. {error}"
        raise RefusedAddressError(said, url=answer.url, status=answer.status) from error
    wall = wall_of_redirect(answer.url, target, had_login=had_login)
    if wall is not None:
        raise wall.error(answer.url, answer.status)
    # A page that reloads or frames itself is the page.
    return None if answer.status not in _REDIRECTS and target == answer.url else target


def fetched_page(
    requested: str, answer: Answer, *, fetched_at: datetime, source: str, agent: str
) -> FetchedPage:
    """Return the page that an answer holds, or raise UnusablePageError where it is no prose.

    X-Robots-Tag may be addressed to this reader by its name, the `agent`.
    """
    content_type = answer.headers.get("content-type", "")
    try:
        kind = page_kind(content_type, answer.body, URL(answer.url).pathname)
    except UnreadableContent as error:
        readable = "HTML, Markdown, plain text, PDF and OpenDocument"
        said = f"{answer.url} is {error}; only {readable} are read."
        status = answer.status
        raise UnusablePageError(said, url=requested, status=status, kind="not_text") from error
    charset, host = charset_of_header(content_type), URL(answer.url).hostname
    is_text = kind not in ("office", "pdf")
    return FetchedPage(
        requested_url=requested,
        url=answer.url,
        status=answer.status,
        kind=kind,
        text=decode(answer.body, header_charset=charset, host=host) if is_text else "",
        body=b"" if is_text else answer.body,
        etag=validator(answer, "etag"),
        last_modified=validator(answer, "last-modified"),
        fetched_at=fetched_at,
        source=source,
        language=answer.headers.get("content-language", "")[:100],
        is_nofollow=_forbids_following(answer.headers.get("x-robots-tag", ""), agent),
        markdown_url=markdown_version(_linked_versions(answer), answer.url, answer.url),
    )


def raise_for_status(answer: Answer) -> None:
    """Raise what the status of an answer without a page in it stands for.

    Raises:
        PageGoneError: 404 or 410.
        UnusablePageError: A wall stands before the page, or there is nothing in the answer.
        FetchError: Any other status than 2xx.
    """
    status, url = answer.status, answer.url
    failure = None if 200 <= status < 300 else status_failure(url, status)
    if not isinstance(failure, PageGoneError):
        wall = wall_of_answer(status, answer.headers, answer.body)
        if wall is not None:
            raise wall.error(url, status)
    if failure is not None:
        raise failure
    if not answer.body.strip():
        raise UnusablePageError(f"The page {url} is empty.", url=url, status=status, kind="empty")


KEPT_S = 3_600.0
# A site in trouble is asked again soon; a working one at most once per hour.
FAILURE_KEPT_S = 60.0


@dataclass(frozen=True)
class RobotsAnswer:
    """A robots.txt, of which "" allows everything, or the reason why there is none to read."""

    text: str = ""
    failure: str | None = None


def robots_answer(url: str, answer: Answer) -> RobotsAnswer:
    """Return what the answer to a request for a robots.txt says (RFC 9309)."""
    if answer.status == _TOO_OFTEN or answer.status >= 500:
        return RobotsAnswer(
            failure=f"{url} answers HTTP {answer.status}, so nothing of the site may be fetched"
            " now; try again later."
        )
    if not 200 <= answer.status < 300:
        return RobotsAnswer()
    return RobotsAnswer(text=decode(answer.body, header_charset="utf-8"))


def validator(answer: Answer, name: str) -> str | None:
    """Return a header to make the next conditional request with, None when it is of no use."""
    value = answer.headers.get(name, "")
    return value if 0 < len(value) <= _MAX_VALIDATOR_CHARS else None


def _meta_refresh(answer: Answer) -> str | None:
    head = answer.body[:_REFRESH_SEARCHED_BYTES]
    if not _is_html_page(answer) or b"refresh" not in head.lower():
        return None
    for meta in LexborHTMLParser(head).css("meta[http-equiv][content]"):
        is_refresh = attribute(meta, "http-equiv").strip().lower() == "refresh"
        if is_refresh and all(above.tag != "noscript" for above in ancestors(meta)):
            refresh = _REFRESH.match(attribute(meta, "content"))
            delay = refresh[1] if refresh else ""
            seconds = float(delay) if any(map(str.isdigit, delay)) else 0.0
            return refresh[2].strip() if refresh and seconds <= _MAX_REFRESH_DELAY_S else None
    return None


def _is_html_page(answer: Answer) -> bool:
    media_type = media_type_of(answer.headers.get("content-type", ""))
    return 200 <= answer.status < 300 and media_type in ("", *HTML_TYPES)


def _only_frame(answer: Answer) -> str | None:
    """Give the address of the frame that is all of a page."""
    if not _is_html_page(answer) or not _FRAMESET.search(answer.body):
        return None
    frames = LexborHTMLParser(answer.body[:_FRAMES_SEARCHED_BYTES]).css("frameset frame[src]")
    return attribute(frames[0], "src").strip() or None if len(frames) == 1 else None


def _forbids_following(header: str, agent: str) -> bool:
    """Read directives for every reader and for this one; others may be addressed by name."""
    is_for_us = True
    for part in header.lower().split(",")[:50]:
        name, colon, rest = part.partition(":")
        if colon and "-" not in name and "unavailable_after" not in name:
            is_for_us = name.strip() in (agent.lower(), "*")
            part = rest
        if is_for_us and part.strip() in ("nofollow", "none"):
            return True
    return False


def _linked_versions(answer: Answer) -> Iterator[tuple[str, str]]:
    for target, parameters in _LINK.findall(answer.headers.get("link", "")[:20_000]):
        pairs = _LINK_PARAMETER.findall(parameters)
        values = {name.lower(): quoted or bare for name, quoted, bare in pairs}
        if "alternate" in values.get("rel", "").lower().split():
            yield target, values.get("type", "")
