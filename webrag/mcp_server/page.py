"""The page for people as a part of the HTTP server: the same memory, callers and limits."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from webrag.errors import AccessDeniedError, WebRAGError
from webrag.mcp_server.assembly import AssembledServer
from webrag.mcp_server.authorization.callers import (
    InvalidTokenError,
    UncheckedTokenError,
    missing_scopes,
)
from webrag.mcp_server.authorization.gate import UNCHECKED, Admission
from webrag.mcp_server.authorization.setup import caller_of
from webrag.settings import Settings
from webrag.web.rendering import Templates
from webrag.web.routes import page_routes
from webrag.web.runs import Runs
from webrag.web.sign_in import SignIn
from webrag.web.site import COLLECTION_COOKIE, Site, is_part_of_another_site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webrag.app import WebRAG

# The form for a token needs them, and they say nothing.
STATIC_PATHS = ("/static/icon.svg", "/static/page.js", "/static/style.css")


def add_page(
    app: Starlette, assembled: AssembledServer, settings: Settings, *, is_local: bool
) -> Templates:
    """Serve the page at `/`; gives what renders it.

    Args:
        app: The application of the server.
        assembled: Whose memory, callers and running calls are used.
        settings: The collection, limits, and whether pages can be forgotten.
        is_local: Whoever opens the page sits at this machine: they may delete pages and open other
            collections, as the commands do.
    """
    access = assembled.access
    assert access is not None, "the server was assembled for stdio"
    entry = access.entry

    templates = Templates(collection=settings.collection)
    may_switch = is_local and assembled.admission is None

    def switched(request: Request) -> str | None:
        """The collection that was opened in place of the server's own."""
        chosen = templates.read_signed(request.cookies.get(COLLECTION_COOKIE, ""))
        return chosen if may_switch and chosen != settings.collection else None

    def collection_of(request: Request) -> str:
        caller = caller_of(request)
        own = None if caller is None else caller.collection
        return switched(request) or own or settings.collection

    @asynccontextmanager
    async def enter(request: Request, tool: str) -> "AsyncIterator[WebRAG]":
        if is_part_of_another_site(request):
            raise AccessDeniedError("A page of another site cannot show this as a part of itself.")
        caller = caller_of(request)
        async with entry.admitted(caller, tool, collection=switched(request)) as runtime:
            yield await runtime.memory()

    def check(request: Request, tool: str) -> None:
        entry.check_scopes(caller_of(request), tool)

    def owner_of(request: Request) -> str:
        caller = caller_of(request)
        # No name of a collection has a blank.
        return f"{collection_of(request)} {'' if caller is None else caller.name}"

    site = Site(
        enter=enter,
        check=check,
        owner_of=owner_of,
        collection_of=collection_of,
        templates=templates,
        runs=Runs(assembled.calls.entered),
        may_forget=is_local or settings.mcp_enable_forget,
        may_switch=may_switch,
        research_s=min(settings.orchestration_timeout, settings.mcp_soft_deadline),
    )

    async def show_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, WebRAGError)
        return site.error(request, error)

    app.add_exception_handler(WebRAGError, show_error)
    app.router.routes.extend(page_routes(site))
    return templates


def add_sign_in(
    app: Starlette, templates: Templates, admission: Admission, *, api_path: str
) -> None:
    """Let browsers show a token; must be added outside of the check of tokens."""

    async def accepts(token: str) -> bool:
        try:
            caller = await admission.caller(token)
        except InvalidTokenError:
            return False
        except UncheckedTokenError as error:
            raise WebRAGError(UNCHECKED) from error
        if missing := missing_scopes(caller, None):
            raise AccessDeniedError(f"The token lacks {' and '.join(sorted(missing))}.")
        return True

    app.add_middleware(SignIn, templates=templates, accepts=accepts, api_path=api_path)
