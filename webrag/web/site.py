"""What the handlers of the page share: who asks, which memory answers, and how errors are shown."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from webrag.errors import AccessDeniedError, DatabaseUnavailableError, InputError, WebRAGError
from webrag.settings.fields import is_loopback
from webrag.web.rendering import Templates
from webrag.web.runs import Runs, WatchedRun

if TYPE_CHECKING:
    from webrag.app import WebRAG

Enter: TypeAlias = Callable[[Request, str], AbstractAsyncContextManager["WebRAG"]]
"""Lets a request in to the memory it works on, given the tool that does the same over MCP.

Raises AccessDeniedError when its caller may not do that, or not now.
"""

COLLECTION_COOKIE: Final = "webrag-collection"


class NotKeptError(InputError):
    """What was asked for is not there, or not any more."""


# The first that fits counts.
_STATUS = {
    NotKeptError: 404,
    InputError: 400,
    AccessDeniedError: 403,
    DatabaseUnavailableError: 503,
}


@dataclass(frozen=True)
class Site:
    """The page of one server.

    Attributes:
        enter: Which memory a request works on.
        check: Whether its sender may do that at all; looks at no body and counts nothing.
        owner_of: Who sent it, in the collection that is open to them; forms and answers of
            another one are not theirs. "" where everybody is the same.
        collection_of: The name of that collection.
        may_forget: Whether pages can be deleted here.
        may_switch: Whether another collection can be opened here.
        research_s: After so many seconds what was found is used.
    """

    enter: Enter
    check: Callable[[Request, str], None]
    owner_of: Callable[[Request], str]
    collection_of: Callable[[Request], str]
    templates: Templates
    runs: Runs
    may_forget: bool
    may_switch: bool
    research_s: float

    def run_of(self, request: Request) -> WatchedRun:
        """The run that the path names.

        Raises:
            NotKeptError: There is none for this caller.
        """
        run = self.runs.get(request.path_params["run_id"], self.owner_of(request))
        if run is None:
            raise NotKeptError(
                "This is not kept any more: answers last as long as the server runs, and are those "
                "of the collection that is open. Ask again."
            )
        return run

    async def checked_form(self, request: Request, *, max_files: int = 0) -> FormData:
        """The form of a change.

        Raises:
            AccessDeniedError: It did not come from a page of this server.
        """
        form = await request.form(max_files=max_files, max_fields=200)
        token = form.get("csrf")
        given = token if isinstance(token, str) else ""
        if not came_from_here(request) or not self.templates.is_own(given, self.owner_of(request)):
            await form.close()
            raise AccessDeniedError(
                "The form did not come from this page, or the server was started again since; "
                "load the page and send it again."
            )
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


def came_from_here(request: Request) -> bool:
    """Whether a browser says that a page of this very server sent the request.

    The names that the server answers to include every port of this machine; this does not.
    """
    return request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def may_run(request: Request) -> bool:
    """Whether an address was typed, or followed from this server: a link elsewhere starts nothing.

    Browsers do not tell another machine over plain http where a link stood, but for its `Referer`,
    which this server's pages send to itself only.
    """
    if "sec-fetch-site" in request.headers or is_loopback(request.url.hostname or ""):
        return came_from_here(request)
    return urlsplit(request.headers.get("referer", "")).netloc == request.headers.get("host")
