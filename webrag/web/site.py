"""What the handlers of the page share: who asks, which memory answers, and how errors are shown."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from webrag.errors import AccessDeniedError, DatabaseUnavailableError, InputError, WebRAGError
from webrag.web.rendering import Templates
from webrag.web.runs import Runs, WatchedRun

if TYPE_CHECKING:
    from webrag.app import WebRAG

__all__ = ["Enter", "Handler", "NotKeptError", "Site", "came_from_here", "may_run"]

Enter: TypeAlias = Callable[[Request, str], AbstractAsyncContextManager["WebRAG"]]
"""Lets a request in to the memory it works on, given the tool that does the same over MCP.

Raises AccessDeniedError when its caller may not do that, or not now.
"""

Handler = Callable[[Request], Awaitable[Response]]

_SIMPLE_STATUS = {AccessDeniedError: 403, InputError: 400, DatabaseUnavailableError: 503}


class NotKeptError(InputError):
    """What was asked for is not there, or not any more."""


@dataclass(frozen=True)
class Site:
    """The page of one server.

    Attributes:
        enter: Which memory a request works on.
        owner_of: Who sent it; "" where everybody is the same.
        may_forget: Whether pages can be deleted here.
    """

    enter: Enter
    owner_of: Callable[[Request], str]
    templates: Templates
    runs: Runs
    may_forget: bool

    def run_of(self, request: Request) -> WatchedRun:
        """The run that the path names.

        Raises:
            NotKeptError: There is none for this caller.
        """
        run = self.runs.get(request.path_params["run_id"], self.owner_of(request))
        if run is None:
            raise NotKeptError(
                "This is not kept any more: answers last as long as the server runs. Ask again."
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
            raise AccessDeniedError(
                "The form did not come from this page, or the server was started again since; "
                "load the page and send it again."
            )
        return form

    def showing_errors(self, handler: Handler) -> Handler:
        """The handler, whose errors become a page with a sentence."""

        async def handled(request: Request) -> Response:
            try:
                return await handler(request)
            except WebRAGError as error:
                return self.error(request, error)

        return handled

    def error(self, request: Request, error: WebRAGError) -> Response:
        """A page that says what was wrong."""
        kinds = (status for kind, status in _SIMPLE_STATUS.items() if isinstance(error, kind))
        status = 404 if isinstance(error, NotKeptError) else next(kinds, 502)
        return self.page(request, "error.html", status_code=status, error=error)

    def page(
        self, request: Request, name: str, *, status_code: int = 200, **values: Any
    ) -> Response:
        """A page for whoever sent the request."""
        owner = self.owner_of(request)
        return self.templates.page(request, name, owner=owner, status_code=status_code, **values)


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
    if "sec-fetch-site" in request.headers or _is_this_machine(request.url.hostname or ""):
        return came_from_here(request)
    return urlsplit(request.headers.get("referer", "")).netloc == request.headers.get("host")


def _is_this_machine(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
