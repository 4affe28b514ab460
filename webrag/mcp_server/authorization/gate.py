"""Lets requests over HTTP pass whose token allows what they ask for; knows no tool's work."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from mcp.server.auth.handlers.metadata import ProtectedResourceMetadataHandler
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import build_resource_metadata_url, cors_middleware
from mcp.shared.auth import ProtectedResourceMetadata
from pydantic import AnyHttpUrl
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from webrag.errors import AccessDeniedError
from webrag.mcp_server.authorization.callers import (
    CALLER,
    READ,
    Caller,
    InvalidTokenError,
    TokenCheck,
    UncheckedTokenError,
    needed_scopes,
)
from webrag.mcp_server.messages import read_ahead

logger = logging.getLogger(__name__)

_RETRY_AFTER_S = 5

UNCHECKED = (
    "The token could not be checked because the authorization server did not answer; try again in a"
    " moment."
)
"""What somebody is told for whose token nobody could vouch."""


@dataclass(frozen=True)
class Admission:
    """Checks of tokens, and what is said of them; clients see this server as the resource."""

    checks: Sequence[TokenCheck]
    resource: str
    issuer: str | None
    scopes: Sequence[str]

    async def caller(self, token: str) -> Caller:
        """Find the holder of a token, asking one check after the other."""
        for check in self.checks:
            if (caller := await check.caller(token)) is not None:
                return caller
        raise InvalidTokenError("The token is not known.")


def metadata_route(admission: Admission) -> Route | None:
    """Tell clients who issues tokens (RFC 9728); None when nobody does."""
    if admission.issuer is None:
        return None
    metadata = ProtectedResourceMetadata.model_validate(
        {
            "resource": admission.resource,
            "authorization_servers": [admission.issuer],
            "scopes_supported": list(admission.scopes),
            "resource_name": "WebRAG",
        }
    )
    handler = ProtectedResourceMetadataHandler(metadata)
    return Route(
        _metadata_url(admission).path or "/",
        cors_middleware(handler.handle, ["GET", "OPTIONS"]),
        methods=["GET", "OPTIONS"],
    )


def _metadata_url(admission: Admission) -> AnyHttpUrl:
    return build_resource_metadata_url(AnyHttpUrl(admission.resource))


class Gate:
    """An application around another one; everything but the open paths needs a token.

    Messages of more than `max_body_bytes` are not looked into; the application refuses them.
    """

    def __init__(
        self, app: ASGIApp, admission: Admission, *, open_paths: Sequence[str], max_body_bytes: int
    ) -> None:
        self._app = app
        self._admission = admission
        self._open_paths = frozenset(open_paths)
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._caller(Headers(scope=scope))
        except InvalidTokenError as error:
            refusal: Response | None = self._unauthorized(str(error))
        except AccessDeniedError as error:
            refusal = _refusal(403, "access_denied", str(error))
        except UncheckedTokenError:
            refusal = _refusal(503, "temporarily_unavailable", UNCHECKED)
            refusal.headers["Retry-After"] = str(_RETRY_AFTER_S)
        else:
            refusal, receive = await self._forbidden(caller, scope, receive)
        if refusal is None:
            user = AuthenticatedUser(caller.token)
            credentials = AuthCredentials(sorted(caller.scopes))
            scope = {**scope, "user": user, "auth": credentials, CALLER: caller}
        await (refusal or self._app)(scope, receive, send)

    async def _caller(self, headers: Headers) -> Caller:
        given = headers.getlist("authorization")
        kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if kind.lower() != "bearer" or not token.strip():
            raise InvalidTokenError("")
        return await self._admission.caller(token.strip())

    async def _forbidden(
        self, caller: Caller, scope: Scope, receive: Receive
    ) -> tuple[Response | None, Receive]:
        """The refusal for want of scopes, and the request to be read again."""
        needed = frozenset({READ})
        if scope["method"] == "POST":
            body, receive, _ = await read_ahead(receive, self._max_body_bytes)
            needed = _needed(body)
        missing = needed - caller.scopes
        if not missing:
            return None, receive
        logger.info("A call of %r was refused for want of %s", caller.name, sorted(missing))
        description = f"The token lacks {' and '.join(sorted(missing))}."
        challenge = self._challenge(needed, "insufficient_scope", description)
        return _refusal(403, "insufficient_scope", description, challenge), receive

    def _unauthorized(self, description: str) -> Response:
        # RFC 6750: without a token there is nothing wrong with one.
        error = "invalid_token" if description else None
        text = description or "A bearer token is needed."
        challenge = self._challenge({READ}, error, description)
        return _refusal(401, error or "token_required", text, challenge)

    def _challenge(
        self, needed: frozenset[str] | set[str], error: str | None, description: str
    ) -> str:
        parts = {
            "error": error,
            "error_description": description,
            "scope": " ".join(sorted(needed)),
        }
        if self._admission.issuer is not None:
            parts["resource_metadata"] = str(_metadata_url(self._admission))
        return "Bearer " + ", ".join(f'{name}="{text}"' for name, text in parts.items() if text)


def _refusal(status: int, error: str, description: str, challenge: str = "") -> Response:
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    body = {"error": error, "error_description": description}
    return JSONResponse(body, status_code=status, headers=headers)


def _needed(body: bytes) -> frozenset[str]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return frozenset({READ})
    messages = message if isinstance(message, list) else [message]
    needed = frozenset({READ})
    for each in messages:
        if isinstance(each, dict):
            params = each.get("params")
            name = params.get("name") if isinstance(params, dict) else None
            needed |= needed_scopes(each.get("method"), name)
    return needed
