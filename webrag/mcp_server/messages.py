"""Tells JSON-RPC messages from what only looks like them, and words the refusal. No transport."""

import json
import math
import re
from typing import Any

from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# No answer can repeat it: UTF-8 has none.
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def refusal(text: bytes) -> JSONRPCError | None:
    """Give the error to answer with; None for a request, a notification or a response.

    The SDK drops such lines unanswered over stdio, takes a request with an unusable id for a
    notification, and words the others over HTTP with the internals of its validator.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return _error(PARSE_ERROR, "Parse error: the message is not JSON.")
    if not isinstance(message, dict):
        what = "a batch" if isinstance(message, list) else "no object"
        return _error(INVALID_REQUEST, f"Invalid request: it is {what}; send one JSON object.")
    wrong = _wrong_with(message) or _unreadable(text)
    if wrong is None:
        return None
    return _error(INVALID_REQUEST, f"Invalid request: {wrong}.", message.get("id"))


def _wrong_with(message: dict[str, Any]) -> str | None:
    if message.get("jsonrpc") != "2.0":
        return '`jsonrpc` must be "2.0"'
    if "method" in message:
        return _wrong_with_request(message)
    if "error" in message:
        error = message["error"]
        whole = isinstance(error, dict) and _is_integer(error.get("code"))
        return None if whole else "`error` must be an object with a code"
    if isinstance(message.get("result"), dict) and _is_identity(message.get("id")):
        return None
    return "it has no `method`"


def _wrong_with_request(message: dict[str, Any]) -> str | None:
    if not isinstance(message["method"], str):
        return "`method` must be a string"
    if "id" in message and not _is_identity(message["id"]):
        return "`id` must be a string or an integer"
    if not isinstance(message.get("params"), dict | None):
        return "`params` must be an object"
    return None


def _unreadable(text: bytes) -> str | None:
    """Find what the SDK would drop although it looks right, such as half a surrogate pair."""
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError:
        return "it cannot be read as a JSON-RPC message"
    return None


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_identity(value: object) -> bool:
    return isinstance(value, str) or _is_integer(value)


def _error(code: int, text: str, identity: object = None) -> JSONRPCError:
    known = identity if _is_identity(identity) and not _HALF_PAIR.search(str(identity)) else None
    error = ErrorData(code=code, message=text)
    return JSONRPCError.model_validate({"jsonrpc": "2.0", "id": known, "error": error})


class MessageCheck:
    """Answers 400 to bodies, limited before, that are no JSON-RPC message; others get through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, receive, is_whole = await read_ahead(receive)
        refused = refusal(body) if is_whole else None
        if refused is None:
            await self._app(scope, receive, send)
            return
        # `id` must be told even when it is null.
        content = refused.model_dump_json(by_alias=True, exclude_unset=True)
        response = Response(content, status_code=400, media_type="application/json")
        await response(scope, receive, send)


async def read_ahead(receive: Receive, at_most: float = math.inf) -> tuple[bytes, Receive, bool]:
    """Read a body, of a longer one its beginning; the request can be received again.

    The last is False where the body is longer or its client has gone.
    """
    seen: list[Message] = []
    size, is_whole = 0, False
    while not is_whole and size <= at_most:
        message = await receive()
        seen.append(message)
        size += len(message.get("body", b""))
        if message["type"] != "http.request":
            break
        is_whole = not message.get("more_body", False)
    body = b"".join(message.get("body", b"") for message in seen)
    seen.reverse()

    async def again() -> Message:
        return seen.pop() if seen else await receive()

    return body, again, is_whole
