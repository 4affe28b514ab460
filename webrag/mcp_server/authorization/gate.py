"""Lets calls over HTTP in: whose token allows what they ask for, on which collection, how often."""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.handlers.metadata import ProtectedResourceMetadataHandler
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import build_resource_metadata_url, cors_middleware
from mcp.server.mcpserver import Context
from mcp.shared.auth import ProtectedResourceMetadata
from mcp.types import INVALID_REQUEST
from pydantic import AnyHttpUrl
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from webrag.concurrency import settled
from webrag.errors import AccessDeniedError, ConfigurationError
from webrag.ingestion.fetch_context import metered
from webrag.mcp_server.authorization.callers import (
    CALLER,
    FORGET,
    READ,
    SCOPES,
    Caller,
    CallerUsage,
    CallLimits,
    InvalidTokenError,
    StaticTokens,
    TokenCheck,
    UncheckedTokenError,
    missing_scopes,
    needed_scopes,
    read_tokens,
)
from webrag.mcp_server.request_checks import read_ahead
from webrag.mcp_server.runtime import LoadMemory, Runtime
from webrag.settings import Settings

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
            refusal = _refusal(403, str(error))
        except UncheckedTokenError:
            refusal = _refusal(503, UNCHECKED)
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
        return _refusal(403, description, challenge), receive

    def _unauthorized(self, description: str) -> Response:
        # RFC 6750: without a token there is nothing wrong with one.
        error = "invalid_token" if description else None
        text = description or "A bearer token is needed."
        challenge = self._challenge({READ}, error, description)
        return _refusal(401, text, challenge)

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


def _refusal(status: int, description: str, challenge: str = "") -> Response:
    """An error of the protocol: clients show its message, and of other bodies the status alone."""
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    error = {"code": INVALID_REQUEST, "message": f"[ERROR]\n{description}"}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
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


# Shorter than the patience of every client.
_WAIT_S = 10.0


@dataclass
class _Open:
    runtime: Runtime
    users: int = 0


class Memories:
    """One memory for each collection, opened when first used; for one event loop.

    When there is no room for another, the one that has been idle for longest is closed; where all
    are in use, room is waited for. `load` makes a memory, unopened, in a thread.
    """

    def __init__(
        self, load: Callable[[str], LoadMemory], *, most_open: int, wait_s: float = _WAIT_S
    ) -> None:
        self._load = load
        self._most_open = most_open
        self._wait_s = wait_s
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open) + len(self._closing)

    @asynccontextmanager
    async def using(self, collection: str) -> AsyncIterator[Runtime]:
        """Keep a collection open in the block."""
        try:
            async with asyncio.timeout(self._wait_s):
                entry = await self._entered(collection)
        except TimeoutError:
            raise AccessDeniedError(
                "The server is busy with the calls of others; try again in a minute."
            ) from None
        try:
            yield entry.runtime
        finally:
            entry.users -= 1
            self._wake()

    async def close(self) -> None:
        """Close all of them."""
        for name in list(self._open):
            self._begin_closing(name)
        closing = list(self._closing)
        await settled(closing)
        for each in closing:
            each.result()

    async def _entered(self, collection: str) -> _Open:
        while collection not in self._open:
            if len(self) < self._most_open:
                self._open[collection] = _Open(Runtime(self._load(collection)))
                break
            idle = next((name for name, each in self._open.items() if not each.users), None)
            if idle is not None and not self._closing:
                self._begin_closing(idle)
            await self._changed.wait()
        entry = self._open[collection]
        self._open.move_to_end(collection)
        # Nothing is awaited in between, so nobody closes it first.
        entry.users += 1
        return entry

    def _begin_closing(self, name: str) -> None:
        runtime = self._open.pop(name).runtime
        logger.info("A collection that was idle is closed")
        task = asyncio.create_task(runtime.close())
        self._closing.add(task)
        task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        self._wake()

    def _wake(self) -> None:
        """Let all look again who wait for room."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


_EVERYBODY = "everybody"


@dataclass(frozen=True)
class CallerEntry:
    """Lets calls in by their caller's scopes and limits, each to its caller's collection.

    The gate has looked at the message already, to answer with a status; this looks at what is
    called.
    """

    runtime: Runtime
    memories: Memories
    limits: CallLimits
    admission: Admission | None
    usages: dict[str, CallerUsage] = field(default_factory=dict)

    def __call__(
        self, context: Context[Any, Any], tool: str | None
    ) -> AbstractAsyncContextManager[Runtime]:
        """The memory for one call."""
        # Of this request, not of the one that opened its session: their tokens may differ.
        return self.admitted(caller_of(context.request_context.request), tool)

    @asynccontextmanager
    async def admitted(
        self, caller: Caller | None, tool: str | None, *, collection: str | None = None
    ) -> AsyncIterator[Runtime]:
        """Give the memory for what a caller does, a call or not; it needs what `tool` needs.

        Whoever gives another `collection` than theirs knows that they may.
        """
        self.check_scopes(caller, tool)
        name = _EVERYBODY if caller is None else caller.name
        if name not in self.usages:
            for idle in [each for each, usage in self.usages.items() if usage.is_idle]:
                del self.usages[idle]
        usage = self.usages.setdefault(name, CallerUsage(self.limits))
        usage.count_call()
        logger.info("%r calls %s", name, tool or "a resource")
        async with AsyncExitStack() as stack:
            runtime = self.runtime
            if collection is None and caller is not None:
                collection = caller.collection
            if collection is not None:
                own = self.memories.using(collection)
                runtime = await stack.enter_async_context(own)
            stack.enter_context(metered(usage))
            yield runtime

    def lists(self, request: object, tool: str) -> bool:
        """Tell whether whoever sends a request may call a tool."""
        caller = caller_of(request)
        return caller is None or not missing_scopes(caller, tool)

    def check_scopes(self, caller: Caller | None, tool: str | None) -> None:
        """Refuse what is not among what a caller may do; nothing is counted."""
        if caller is None:
            if self.admission is not None:
                raise AccessDeniedError("The call carries no token.")
            return
        if missing := missing_scopes(caller, tool):
            raise AccessDeniedError(f"The token lacks {' and '.join(sorted(missing))}.")


def caller_of(request: object) -> Caller | None:
    """The caller that the gate let in with a request; None where there is no gate."""
    found = getattr(request, "scope", {}).get(CALLER)
    return found if isinstance(found, Caller) else None


def authorize(
    settings: Settings, runtime: Runtime, load: Callable[[str], LoadMemory]
) -> CallerEntry:
    """Read what settings say about callers, refused where they contradict each other."""
    _check_combinations(settings)
    limits = CallLimits(
        calls_per_minute=settings.mcp_calls_per_minute,
        calls_per_day=settings.mcp_calls_per_day,
        pages_per_day=settings.mcp_pages_per_day,
        bytes_per_day=settings.mcp_bytes_per_day,
    )
    memories = Memories(load, most_open=settings.mcp_max_open_collections)
    return CallerEntry(runtime, memories, limits, _admission(settings))


def _check_combinations(settings: Settings) -> None:
    if settings.collection_claim and not settings.mcp_needs_token:
        raise ConfigurationError(
            "WEBRAG_COLLECTION_CLAIM is set but nobody has to show a token.",
            hint="Set MCP_OAUTH_ISSUER or MCP_TOKENS_FILE.",
        )
    for name in ("audience", "jwks_url"):
        if settings.mcp_oauth_issuer is None and getattr(settings, f"mcp_oauth_{name}"):
            raise ConfigurationError(
                f"MCP_OAUTH_{name.upper()} is set but MCP_OAUTH_ISSUER is not."
            )


def _admission(settings: Settings) -> Admission | None:
    if not settings.mcp_needs_token:
        return None
    resource = settings.mcp_resource_url
    checks: list[TokenCheck] = [_static_tokens(settings)]
    if settings.mcp_oauth_issuer is not None:
        checks.append(_oauth(settings, settings.mcp_oauth_issuer, resource))
    scopes = [each for each in SCOPES if each != FORGET or settings.mcp_enable_forget]
    return Admission(checks, resource, settings.mcp_oauth_issuer, scopes)


def _static_tokens(settings: Settings) -> StaticTokens:
    shared, path = settings.mcp_auth_token, settings.mcp_tokens_file
    return StaticTokens(
        () if path is None else read_tokens(path),
        shared=None if shared is None else shared.get_secret_value(),
        base=settings.collection,
        claim=settings.collection_claim,
    )


def _oauth(settings: Settings, issuer: str, resource: str) -> TokenCheck:
    # Imported here: only servers with an authorization server need cryptography and a client.
    from webrag.mcp_server.authorization.oauth import KeySet, SignedTokens

    return SignedTokens(
        issuer,
        KeySet(issuer, settings.mcp_oauth_jwks_url),
        settings.mcp_oauth_audience or (resource,),
        base=settings.collection,
        claim=settings.collection_claim,
    )
