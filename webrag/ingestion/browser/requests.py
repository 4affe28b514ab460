"""Which of the requests of a page in the browser are answered; pure, no I/O."""

from dataclasses import dataclass
from typing import Final

from ada_url import URL

MAX_REQUESTS: Final = 300
"""Files one page may ask for; large applications come in 200 pieces."""

# What adds nothing to the text. Frames have documents of their own, which are not read either.
_UNREAD: Final = frozenset(
    {"beacon", "cspreport", "eventsource", "font", "image", "media", "ping", "texttrack"}
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a page asks its browser for.

    Attributes:
        url: Absolute address.
        kind: The browser's word for its use, such as `script`.
        method: HTTP method.
        is_main: It is for the page itself, not for a frame in it.
    """

    url: str
    kind: str
    method: str = "GET"
    is_main: bool = True


def refusal(request: Request, page: str, *, other_sites: bool, count: int) -> str:
    """Why a request is not answered; "" when it is.

    Args:
        request: What is asked for.
        page: Address of the page that is drawn.
        other_sites: Whether files of other sites may be had.
        count: Requests answered before.

    Returns:
        `kind` for what adds no text, `method` for what might change something, `count` for one
        too many, `site` for a file of another site.
    """
    if request.kind in _UNREAD or (request.kind == "document" and not request.is_main):
        return "kind"
    if request.method not in ("GET", "HEAD"):
        return "method"
    if count >= MAX_REQUESTS:
        return "count"
    if not other_sites and not _are_related(URL(request.url).hostname, URL(page).hostname):
        return "site"
    return ""


def _are_related(host: str, page_host: str) -> bool:
    """The same host, or one below the other."""
    return host == page_host or host.endswith("." + page_host) or page_host.endswith("." + host)
