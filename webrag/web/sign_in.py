"""Lets browsers, which cannot send a bearer token, show the one that somebody typed in."""

import secrets
from collections import OrderedDict
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webrag.web.rendering import Templates
from webrag.web.site import came_from_here

__all__ = ["SIGN_IN_PATH", "SignIn"]

SIGN_IN_PATH: Final = "/sign-in"

_COOKIE: Final = "webrag-session"
_MOST_SESSIONS: Final = 1000
_LONGEST_FORM: Final = 16_384


class SignIn:
    """An application around the one that checks tokens; it knows none that is right.

    A token typed in is kept in this process, and the browser gets a cookie in its place that no
    script can read and no other site's page can send.

    Args:
        app: Answers 401 to requests without a token that it accepts.
        templates: For the form.
        api_path: Requests to it are left alone: programs send a token of their own.
    """

    def __init__(self, app: ASGIApp, templates: Templates, *, api_path: str) -> None:
        self._app = app
        self._templates = templates
        self._api_path = api_path
        self._tokens: OrderedDict[str, str] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] != "http" or scope["path"] == self._api_path:
            await self._app(scope, receive, send)
            return
        if scope["path"] == SIGN_IN_PATH:
            response = await self._form(Request(scope, receive))
            await response(scope, receive, send)
            return
        await self._app(self._with_token(scope), receive, _redirecting(scope, send))

    async def _accepts(self, token: str, scope: Scope) -> bool:
        """Whether the application lets a token in; wrong ones are kept nowhere."""
        statuses: list[int] = []

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        host = [(name, value) for name, value in scope["headers"] if name == b"host"]
        # Nothing stands there, and it is behind the check of tokens all the same.
        path = f"{SIGN_IN_PATH}/check"
        asked = {"method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
        await self._app({**scope, **asked, "headers": [*host, _bearer(token)]}, receive, send)
        return 401 not in statuses

    def _with_token(self, scope: Scope) -> Scope:
        if "authorization" in Headers(scope=scope):
            return scope
        token = self._tokens.get(Request(scope).cookies.get(_COOKIE, ""))
        if token is None:
            return scope
        return {**scope, "headers": [*scope["headers"], _bearer(token)]}

    async def _form(self, request: Request) -> Response:
        if request.method != "POST" or not came_from_here(request):
            is_wrong = "wrong" in request.query_params
            return self._templates.page(request, "sign_in.html", owner="", is_wrong=is_wrong)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _LONGEST_FORM:
                return Response("The token is too long.", status_code=413)
        token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        if not await self._accepts(token, request.scope):
            return RedirectResponse(f"{SIGN_IN_PATH}?wrong", status_code=303)
        session = secrets.token_urlsafe(32)
        self._tokens[session] = token
        while len(self._tokens) > _MOST_SESSIONS:
            self._tokens.popitem(last=False)
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(
            _COOKIE,
            session,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response


def _bearer(token: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {token}".encode("latin-1", "replace")


def _redirecting(scope: Scope, send: Send) -> Send:
    """Sends people without a token to the form, and programs what they would be told."""
    headers = Headers(scope=scope)
    if scope["method"] != "GET" or "text/html" not in headers.get("accept", ""):
        return send
    wrong = "?wrong" if _COOKIE in Request(scope).cookies else ""

    async def redirecting(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 401:
            message = {**message, "status": 303, "headers": list(message["headers"])}
            MutableHeaders(raw=message["headers"])["location"] = f"{SIGN_IN_PATH}{wrong}"
        await send(message)

    return redirecting
