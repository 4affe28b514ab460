"""Calls a reranking service and names the ways in which it fails; it knows no provider."""

import asyncio
import base64
import binascii
import contextlib
import functools
import json
import logging
import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import httpx
from llama_index.postprocessor.webrag.retry_after import retry_after_s
from llama_index.postprocessor.webrag.service_calls import (
    ABOUT_THE_KEY,
    CircuitBreaker,
    RetryPolicy,
    client_options,
    failure_of,
    limited_client,
)


class RerankError(Exception):
    """A reranking service gave no scores; catch it to go on with the order you have.

    The message is one sentence that names the service and the cause; it never holds the key.

    Attributes:
        provider: Name of the service, for example "Cohere".
        status: HTTP status, if an answer came.
        attempts: Requests made for this call.
        asked_pause_s: Seconds for which the service wants to be left alone.
    """

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, attempts: int = 0
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        self.attempts = attempts
        self.asked_pause_s = 0.0


class RerankInputError(RerankError, ValueError):
    """The question or the nodes cannot be sent; nothing was sent."""


class RerankRefusedError(RerankError):
    """The service refused the request: its key, its model, its account or its form is wrong."""


class RerankUnavailableError(RerankError):
    """The service could not be reached, is overloaded or failed; later it may work."""


class RerankTimeoutError(RerankUnavailableError):
    """No complete answer came within the time allowed."""


class RerankCircuitOpenError(RerankUnavailableError):
    """Nothing was sent, because the service failed several times in a row just before."""


class RerankResponseError(RerankError):
    """The service answered with something that is not a ranking of what was sent."""


_log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_ATTEMPTS: Final = 3
_MAX_ANSWER_BYTES: Final = 4_000_000
_MAX_DETAIL_CHARS: Final = 200
_LONG_WORD: Final = 32
_KEY_PIECE: Final = 5
_LEFT_OUT: Final = re.compile(r"[*•●█]{2,}|…|\.{3}")

# Makes one request with the client it is given; what it returns or raises about the answer does
# not count, as the answer itself is judged.
Send = Callable[[httpx.AsyncClient], Awaitable[object]]


@dataclass(frozen=True)
class Call:
    """One ranking to ask for, until `deadline` (of `time.monotonic`), with growing pauses.

    The request is made by `send`, with a provider's own package, or else `body` is posted to `url`.
    """

    url: str
    key: str = field(repr=False)
    body: bytes = field(repr=False)
    deadline: float
    backoff_s: float
    send: Send | None = field(default=None, repr=False)


@dataclass(eq=False, repr=False)
class RerankService:
    """Asks one service for rankings, always under the same policy.

    At most three requests a call, only after 408, 409, 425, 429, 5xx or a broken connection, with
    full jitter between them; `Retry-After` is waited for if it fits the deadline, else the call
    fails at once. Five failed calls in a row stop all calls for 30 s. Redirects are not followed.
    Thread-safe, and usable from any number of event loops.
    """

    provider: str
    breaker: CircuitBreaker[None] = field(default_factory=CircuitBreaker)
    _: KW_ONLY
    proxy: str | None = None
    _kept: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = field(
        default=None, init=False
    )

    async def keep_connection(self) -> None:
        """Keep connections open between calls of the running event loop, until `aclose`."""
        if self._kept is None:
            self._kept = (asyncio.get_running_loop(), _answer_client(self.proxy))

    async def aclose(self) -> None:
        """Close what `keep_connection` opened."""
        if self._kept is not None:
            (_, client), self._kept = self._kept, None
            await client.aclose()

    async def ask(self, call: Call, read: Callable[[Any], T]) -> T:
        """Give the service's answer as `read` understands it; RerankError where it cannot be used.

        What `read` raises as ValueError follows "the service answered with".
        """
        left = self.breaker.seconds_left()
        if left > 0:
            raise RerankCircuitOpenError(
                f"{self.provider} failed several times in a row and is not asked again for "
                f"{left:.0f} s.",
                provider=self.provider,
            )
        try:
            answer = _read_answer(self.provider, await self._within_deadline(call), read)
        except RerankError as error:
            # A service that finds fault with one request is well, and the next may be better.
            if error.status in (400, 413, 422):
                self.breaker.succeeded()
            else:
                self.breaker.failed()
            raise
        self.breaker.succeeded()
        return answer

    async def _within_deadline(self, call: Call) -> bytes:
        allowed = call.deadline - time.monotonic()
        try:
            async with asyncio.timeout(allowed), self._client() as client:
                return await self._attempts(client, call)
        except TimeoutError as error:
            raise RerankTimeoutError(
                f"{self.provider} gave no complete answer within the time allowed.",
                provider=self.provider,
            ) from error

    async def _attempts(self, client: httpx.AsyncClient, call: Call) -> bytes:
        made = 0

        async def attempt() -> bytes:
            nonlocal made
            made += 1
            try:
                return await self._one(client, call)
            except RerankError as error:
                error.attempts = made
                raise

        policy = RetryPolicy(
            attempts=_MAX_ATTEMPTS,
            backoff_s=call.backoff_s,
            deadline=call.deadline,
            is_passing=lambda error: isinstance(error, RerankUnavailableError),
            asked_pause_s=lambda error: getattr(error, "asked_pause_s", 0.0),
            on_pause=lambda error, _: _log.debug("%s Attempt %d failed.", error, made),
        )
        return await policy.run(attempt)

    async def _one(self, client: httpx.AsyncClient, call: Call) -> bytes:
        try:
            answer = await _answer_of(call.send or functools.partial(_post, call), client)
        except httpx.DecodingError as broken:
            raise _unusable(self.provider, "a body that cannot be unpacked") from broken
        except httpx.HTTPError as broken:
            raise self._unreachable(broken, call.key) from None
        except httpx.InvalidURL:
            raise RerankRefusedError(
                f"{self.provider} has an address that cannot be asked.", provider=self.provider
            ) from None
        if answer is None:
            message = f"{self.provider} was not asked: its package failed before."
            raise RerankError(message, provider=self.provider)
        if answer.status_code == 200:
            return answer.content
        raise self._failure(answer, call.key)

    def _failure(self, answer: httpx.Response, key: str) -> RerankError:
        status = answer.status_code
        detail = "" if status in ABOUT_THE_KEY else _detail(answer.content, key)
        said = f": {detail}" if detail else ""
        what, is_passing = failure_of(status)
        kind: type[RerankError] = RerankUnavailableError if is_passing else RerankRefusedError
        if status < 400:
            kind, what = RerankResponseError, "answered without a ranking"
        message = f"{self.provider} {what} (HTTP {status}){said}."
        error = kind(message, provider=self.provider, status=status)
        error.asked_pause_s = retry_after_s(answer.headers.get("retry-after")) or 0.0
        return error

    def _unreachable(self, error: Exception, key: str) -> RerankUnavailableError:
        is_absent = isinstance(error, httpx.ConnectError)
        what = "could not be reached" if is_absent else "broke the call off"
        reason = _without_key(str(error), key).strip().rstrip(".") or type(error).__name__
        return RerankUnavailableError(
            f"{self.provider} {what} ({reason[:_MAX_DETAIL_CHARS]}).", provider=self.provider
        )

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        kept = self._kept
        if kept is not None and kept[0] is asyncio.get_running_loop():
            yield kept[1]
            return
        async with _answer_client(self.proxy) as client:
            yield client


_answers: ContextVar[list[httpx.Response] | None] = ContextVar("rerank_answers", default=None)


def _answer_client(proxy: str | None) -> httpx.AsyncClient:
    """Make a client that keeps each answer, to a limit, as packages take much for a ranking."""
    client = limited_client(
        httpx.AsyncClient,
        proxy,
        most_bytes=_MAX_ANSWER_BYTES,
        is_cut=True,  # and is not JSON any more
        verify=_ssl_context(client_options(proxy)["trust_env"]),
        # The deadline of a call covers connecting, sending and reading together.
        timeout=None,
    )
    client.event_hooks["response"].append(_keep)
    return client


async def _keep(answer: httpx.Response) -> None:
    await answer.aread()
    kept = _answers.get()
    if kept is not None:
        kept.append(answer)


@functools.cache
def _ssl_context(trust_env: bool) -> ssl.SSLContext:
    """Loading the system's certificates takes about 0.1 s; one context serves every client."""
    return httpx.create_ssl_context(trust_env=trust_env)


async def _answer_of(send: Send, client: httpx.AsyncClient) -> httpx.Response | None:
    """Give the answer to one request, whatever its package thinks of it; None for no request."""
    answers: list[httpx.Response] = []
    token = _answers.set(answers)
    try:
        await send(client)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise
    # Each package has errors of its own, which share no base.
    except Exception as error:  # noqa: BLE001
        broken = _network_error(error)
        if broken is not None and not answers:
            raise broken from None
        _log.debug("The package of the service raised %s.", type(error).__name__)
    finally:
        _answers.reset(token)
    return answers[-1] if answers else None


def _network_error(error: BaseException | None) -> httpx.HTTPError | None:
    while error is not None and not isinstance(error, httpx.HTTPError):
        error = error.__cause__ or error.__context__
    return error


def _read_answer(provider: str, body: bytes, read: Callable[[Any], T]) -> T:
    """Give what `read` makes of a JSON body."""
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError) as error:
        what = "an empty body" if not body.strip() else "something that is not JSON"
        raise _unusable(provider, what) from error
    try:
        return read(decoded)
    except ValueError as error:
        raise _unusable(provider, str(error)) from error


async def _post(call: Call, client: httpx.AsyncClient) -> None:
    headers = {
        "Authorization": f"Bearer {call.key}",
        "Content-Type": "application/json",
        "Accept": "application/json",
    }
    await client.post(call.url, content=call.body, headers=headers)


def _unusable(provider: str, what: str) -> RerankResponseError:
    return RerankResponseError(f"{provider} answered with {what}.", provider=provider)


def _detail(body: bytes, key: str) -> str:
    """The service's own words, on one line, cut, without the key."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    for name in ("error", "detail", "message"):
        if isinstance(said, dict) and name in said:
            said = said[name]
    if isinstance(said, list) and said and isinstance(said[0], dict):
        said = said[0].get("msg")
    if not isinstance(said, str):
        return ""
    words = "".join(c if c.isprintable() else " " for c in said)
    return _without_key(words, key)[:_MAX_DETAIL_CHARS].rstrip(".")


def _without_key(said: str, key: str) -> str:
    """A service's words with each that may hold the key, a part of it or a code of it left out."""
    pieces = {key[at : at + _KEY_PIECE] for at in range(max(len(key) - _KEY_PIECE, 0) + 1)}
    words = said[: 10 * _MAX_DETAIL_CHARS].replace(key, "***").split()
    return " ".join("***" if _is_suspicious(word, pieces) else word for word in words)


def _is_suspicious(word: str, pieces: set[str]) -> bool:
    if word.strip("\"'`.,:;!?()") == "***":
        return False
    if len(word) > _LONG_WORD or _LEFT_OUT.search(word):
        return True
    known = word + unquote(word) + _decoded(word)
    return any(piece in known for piece in pieces)


def _decoded(word: str) -> str:
    try:
        return base64.b64decode(word.strip("\"'`.,:;!?()") + "===").decode("latin-1")
    except (ValueError, binascii.Error):
        return ""
