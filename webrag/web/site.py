"""Shared by the handlers of the page: who asks, which memory answers, how failures are shown."""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from ada_url import URL
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from webrag.argument_checks import shown_value
from webrag.corpus.models import FailedPage
from webrag.errors import (
    AccessDeniedError,
    DatabaseUnavailableError,
    FetchError,
    InputError,
    WebRAGError,
)
from webrag.ingestion.addresses import is_file, site_of
from webrag.presentation.reports import reason_beside
from webrag.settings import Settings
from webrag.settings.model import is_fixed
from webrag.settings.variables import is_loopback
from webrag.web.rendering import Templates
from webrag.web.runs import Runs, WatchedRun

if TYPE_CHECKING:
    from webrag.app import WebRAG


Enter: TypeAlias = Callable[[Request, str], AbstractAsyncContextManager["WebRAG"]]
"""Lets a request in to the memory it works on, given the tool that does the same over MCP.

Raises AccessDeniedError when its caller may not do that, or not now.
"""

COLLECTION_COOKIE: Final = "webrag-collection"


FORM_BYTES: Final = 1_048_576
"""Longest form that is taken."""


class NotKeptError(InputError):
    """Nothing is there, or not any more."""


class TooLargeError(InputError):
    """A form is longer than what is taken here."""


# The first that fits counts.
_STATUS = {
    NotKeptError: 404,
    TooLargeError: 413,
    InputError: 400,
    AccessDeniedError: 403,
    DatabaseUnavailableError: 503,
}


@dataclass(frozen=True)
class Site:
    """The page of one server, and what its settings and callers allow.

    `check` looks at no body and counts nothing; an owner is who sent a request, in the collection
    open to them, "" where everybody is the same. Nobody may change settings where `renew` is None.
    """

    enter: Enter
    check: Callable[[Request, str], None]
    owner_of: Callable[[Request], str]
    collection_of: Callable[[Request], str]
    templates: Templates
    runs: Runs
    may_forget: bool
    may_switch: bool
    settings: Callable[[], Settings]
    renew: Callable[[Settings], Awaitable[None]] | None

    @property
    def research_s(self) -> float:
        """Seconds after which what was found is used."""
        settings = self.settings()
        return min(settings.orchestration_timeout, settings.mcp_soft_deadline)

    def run_of(self, request: Request) -> WatchedRun:
        """Give the run that the path names; NotKeptError where there is none for this caller."""
        run = self.runs.get(request.path_params["run_id"], self.owner_of(request))
        if run is None:
            raise NotKeptError(
                "This is not kept any more: answers last as long as the server runs, and are those "
                "of the collection that is open. Ask again."
            )
        return run

    async def checked_form(self, request: Request) -> FormData:
        """Receive the form of a change, without a file and of 1 MiB at most."""
        if not came_from_here(request):
            raise _foreign_form()
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > FORM_BYTES:
            raise _too_large()
        form = await Request(request.scope, _limited(request)).form(max_files=0, max_fields=200)
        token = form.get("csrf")
        if not isinstance(token, str) or not self.templates.is_own(token, self.owner_of(request)):
            raise _foreign_form()
        return form

    def error(self, request: Request, error: WebRAGError) -> Response:
        """A page that says what was wrong."""
        return self.page(request, "error.html", status_code=status_of(error), error=error)

    def page(
        self, request: Request, name: str, *, status_code: int = 200, **values: Any
    ) -> Response:
        """A page for whoever sent the request."""
        owner = self.owner_of(request)
        values["collection"] = self.collection_of(request)
        return self.templates.page(request, name, owner=owner, status_code=status_code, **values)


def status_of(error: WebRAGError) -> int:
    """The HTTP status that tells programs of an error."""
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 502)


def number(text: object, name: str, most: int) -> int:
    """Read the whole number, from 1 to `most`, that somebody typed."""
    told = str(text)
    if not (told.isascii() and told.isdigit() and len(told) <= 8 and 1 <= int(told) <= most):
        raise InputError(f"{name} is {shown_value(told)}; give one from 1 to {most:,}.")
    return int(told)


def _foreign_form() -> AccessDeniedError:
    return AccessDeniedError(
        "The form did not come from this page, or the server was started again since; load the "
        "page and send it again."
    )


def _too_large() -> TooLargeError:
    return TooLargeError(
        f"What was sent is longer than the {FORM_BYTES:,} bytes that are taken here."
    )


def _limited(request: Request) -> Receive:
    """Give the body of a request until it is too long."""
    size = 0

    async def receive() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > FORM_BYTES:
            raise _too_large()
        return message

    return receive


def came_from_here(request: Request) -> bool:
    """Tell whether a page of this very server, port and all, sent the request."""
    headers = request.headers
    # Old browsers send an origin only, as all do to another machine over plain http.
    if "sec-fetch-site" not in headers and "origin" in headers:
        return urlsplit(headers["origin"]).netloc == headers.get("host")
    return headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def is_part_of_another_site(request: Request) -> bool:
    """Tell whether a page of another site wants it, as its image, script or frame."""
    headers = request.headers
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != (
        "navigate",
        "document",
    )


def may_run(request: Request) -> bool:
    """Tell an address that was typed, or followed here: a link elsewhere starts nothing.

    Browsers do not tell another machine over plain http where a link stood, but for its `Referer`,
    which this server's pages send to itself only.
    """
    # No browser adds a bearer token by itself; that of somebody who signed in goes with a cookie.
    is_program = request.headers.get("authorization", "").lower().startswith("bearer ")
    if is_program and "cookie" not in request.headers:
        return True
    if "sec-fetch-site" in request.headers or is_loopback(request.url.hostname or ""):
        return came_from_here(request)
    return urlsplit(request.headers.get("referer", "")).netloc == request.headers.get("host")


Remedy = Literal["again", "allow", "login", "none"]

# Whole sentences: an address in a reason is the site's choice, but holds no space.
_REFUSED: Final = re.compile(
    r"'\S+' may not be contacted: .* set WEBRAG_ALLOW_HOSTS=([^\s,]+)\.", re.DOTALL
)
_WANTS_LOGIN: Final = re.compile(
    r"The page \S+ cannot be read:"
    r" (?:the site wants a login first|\S+ does not accept the stored login)\b"
)
_NEEDS_LOGIN: Final = (401, 403)
_MAY_PASS: Final = (None, 408, 425, 429)
# What no further request changes, although no status says so.
_FOR_GOOD: Final = re.compile(r"\AThe robots\.txt of |larger than allowed|unpacks to too much")


class Failure(NamedTuple):
    """A page that was not obtained: asking again, its `host` allowed, or a login to that helps."""

    page: FailedPage
    reason: str
    remedy: Remedy
    host: str


def failure_of(page: FailedPage) -> Failure:
    """Tell what helps with a page that was not obtained."""
    is_remote = not is_file(page.url)
    host = site_of(page.url) if is_remote else ""
    remedy: Remedy = "none"
    if refused := _REFUSED.fullmatch(page.reason):
        # Where a page leads elsewhere, the other host was not the user's choice.
        if is_remote and refused[1] == URL(page.url).host:
            remedy, host = "allow", refused[1]
    elif is_remote and (page.status in _NEEDS_LOGIN or _WANTS_LOGIN.match(page.reason)):
        remedy = "login"
    elif not _FOR_GOOD.search(page.reason) and (page.status in _MAY_PASS or page.status >= 500):
        remedy = "again"
    return Failure(page, reason_beside(page.url, page.reason), remedy, host)


def failure_of_error(error: FetchError, named: Sequence[str]) -> Failure:
    """Tell what helps with a page that a question named, also where it led elsewhere."""
    now, url = datetime.now(UTC), next(iter(named), error.url)
    return failure_of(FailedPage(url=url, reason=str(error), checked_at=now, status=error.status))


def may_allow_hosts(site: "Site") -> bool:
    """Tell whether a host that is allowed on the page is allowed from then on."""
    return site.renew is not None and not is_fixed(site.settings(), "allow_hosts")
