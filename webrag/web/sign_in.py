"""Lets browsers, which cannot send a bearer token, show the one that somebody typed in."""

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webrag.errors import AccessDeniedError, WebRAGError
from webrag.web.rendering import Templates
from webrag.web.site import came_from_here

SIGN_IN_PATH: Final = "/sign-in"

_COOKIE: Final = "webrag-session"
_MOST_SESSIONS: Final = 1000
_LONGEST_FORM: Final = 16_384
_WRONG: Final = "This token is not accepted. Check it, and try again."


@dataclass(eq=False, repr=False)
class SignIn:
    """An application around the one that checks tokens; it knows none that is right.

    A token typed in is kept in this process, and the browser gets a cookie in its place that no
    script can read and no other site's page can send. Requests to `api_path` bring a token of their
    own.
    """

    app: ASGIApp
    templates: Templates
    _: KW_ONLY
    accepts: Callable[[str], Awaitable[bool]]
    api_path: str
    tokens: OrderedDict[str, str] = field(default_factory=OrderedDict, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] != "http" or scope["path"] == self.api_path:
            await self.app(scope, receive, send)
            return
        if scope["path"] == SIGN_IN_PATH:
            response = await self._form(Request(scope, receive))
            await response(scope, receive, send)
            return
        await self.app(self._with_token(scope), receive, _redirecting(scope, send))

    def _with_token(self, scope: Scope) -> Scope:
        if "authorization" in Headers(scope=scope):
            return scope
        token = self.tokens.get(Request(scope).cookies.get(_COOKIE, ""))
        if token is None:
            return scope
        value = f"Bearer {token}".encode("latin-1", "replace")
        return {**scope, "headers": [*scope["headers"], (b"authorization", value)]}

    async def _form(self, request: Request) -> Response:
        if request.method != "POST" or not came_from_here(request):
            return self._asking(request, _WRONG if "wrong" in request.query_params else "")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _LONGEST_FORM:
                return Response("The token is too long.", status_code=413)
        token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        try:
            is_accepted = await self.accepts(token)
        except WebRAGError as error:
            status_code = 403 if isinstance(error, AccessDeniedError) else 503
            return self._asking(request, str(error), status_code)
        if not is_accepted:
            return RedirectResponse(f"{SIGN_IN_PATH}?wrong", status_code=303)
        session = secrets.token_urlsafe(32)
        self.tokens[session] = token
        while len(self.tokens) > _MOST_SESSIONS:
            self.tokens.popitem(last=False)
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(
            _COOKIE,
            session,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    def _asking(self, request: Request, problem: str, status_code: int = 200) -> Response:
        return self.templates.page(
            request, "sign_in.html", owner="", status_code=status_code, problem=problem
        )


def _redirecting(scope: Scope, send: Send) -> Send:
    """Sends people without a token to the form, and programs what they would be told."""
    headers = Headers(scope=scope)
    if scope["method"] != "GET" or "text/html" not in headers.get("accept", ""):
        return send

    async def redirecting(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 401:
            message = {**message, "status": 303, "headers": list(message["headers"])}
            MutableHeaders(raw=message["headers"])["location"] = SIGN_IN_PATH
        await send(message)

    return redirecting
