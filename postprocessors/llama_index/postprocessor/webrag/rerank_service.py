"""How a reranking service is called: deadline, retries, circuit breaker; it knows no provider."""

import asyncio
import contextlib
import email.utils
import functools
import json
import logging
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import httpx2
from llama_index.postprocessor.webrag.circuit_breaker import CircuitBreaker
from llama_index.postprocessor.webrag.rerank_errors import (
    RerankCircuitOpenError,
    RerankError,
    RerankRefusedError,
    RerankResponseError,
    RerankTimeoutError,
    RerankUnavailableError,
)

__all__ = ["Call", "RerankService", "retry_after_s"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_ATTEMPTS: Final = 3
_RETRIED: Final = frozenset({408, 409, 425, 429})
_MAX_ANSWER_BYTES: Final = 4_000_000
_MAX_DETAIL_CHARS: Final = 200
_REFUSALS: Final[Mapping[int, str]] = {
    401: "refused the key",
    402: "wants payment for the account of this key",
    403: "refused the key",
    404: "knows no such address or model",
    413: "finds the request too large",
    498: "refused the key",
}
# What these answer may repeat the key, in full or in part.
_ABOUT_THE_KEY: Final = frozenset({401, 403, 498})


@dataclass(frozen=True)
class Call:
    """One ranking to ask for.

    Attributes:
        url: Address of the service.
        key: Sent as a bearer token.
        body: JSON.
        deadline: `time.monotonic` value at which the caller stops waiting.
        backoff_s: Longest pause before the second request; twice that before the third.
    """

    url: str
    key: str = field(repr=False)
    body: bytes = field(repr=False)
    deadline: float
    backoff_s: float


class RerankService:
    """Asks one service for rankings, always under the same policy.

    At most three requests a call, only after 408, 409, 425, 429, 5xx or a broken connection,
    with full jitter between them; `Retry-After` is waited for if it fits the deadline, else the
    call fails at once. Five failed calls in a row stop all calls for 30 s. Redirects are not
    followed and proxies are not used. Thread-safe, and usable from any number of event loops.
    """

    def __init__(self, provider: str, breaker: CircuitBreaker | None = None) -> None:
        self.provider = provider
        self._breaker = breaker or CircuitBreaker()
        self._kept: tuple[asyncio.AbstractEventLoop, httpx2.AsyncClient] | None = None

    async def keep_connection(self) -> None:
        """Keep connections open between calls of the running event loop, until `aclose`."""
        if self._kept is None:
            self._kept = (asyncio.get_running_loop(), _client())

    async def aclose(self) -> None:
        """Close what `keep_connection` opened."""
        if self._kept is not None:
            (_, client), self._kept = self._kept, None
            await client.aclose()

    async def ask(self, call: Call, read: Callable[[Any], T]) -> T:
        """The service's answer, as `read` understands it.

        Args:
            call: What is asked.
            read: Turns the decoded JSON into the result; raises ValueError, with a clause that
                follows "the service answered with", if it is not what was asked for.

        Raises:
            RerankError: There is no answer that can be used; see its subclasses.
        """
        left = self._breaker.seconds_left()
        if left > 0:
            raise RerankCircuitOpenError(
                f"{self.provider} failed several times in a row and is not asked again for "
                f"{left:.0f} s.",
                provider=self.provider,
            )
        try:
            answer = _read_answer(self.provider, await self._within_deadline(call), read)
        except RerankError as error:
            _count(self._breaker, error)
            raise
        self._breaker.succeeded()
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

    async def _attempts(self, client: httpx2.AsyncClient, call: Call) -> bytes:
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            try:
                status, headers, body = await _post(client, call)
                if status == 200:
                    return body
                error = self._failure(status, body, call.key)
                wait = _pause(call.backoff_s * attempt, headers)
            except httpx2.TransportError as broken:
                error = self._unreachable(broken)
                wait = _pause(call.backoff_s * attempt, {})
            except httpx2.DecodingError as broken:
                raise _unusable(self.provider, "a body that cannot be unpacked") from broken
            error.attempts = attempt
            if not _worth_another(error, attempt, wait, call.deadline):
                raise error
            _log.debug("%s Attempt %d of %d.", error, attempt, _MAX_ATTEMPTS)
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _failure(self, status: int, body: bytes, key: str) -> RerankError:
        detail = "" if status in _ABOUT_THE_KEY else _detail(body, key)
        said = f": {detail}" if detail else ""
        kind: type[RerankError] = RerankRefusedError
        if status == 429:
            kind, what = RerankUnavailableError, "refused the request because of its rate limit"
        elif status >= 500 or status in _RETRIED:
            kind, what = RerankUnavailableError, "failed"
        elif status >= 400:
            what = _REFUSALS.get(status, "refused the request")
        else:
            kind, what = RerankResponseError, "answered without a ranking"
        message = f"{self.provider} {what} (HTTP {status}){said}."
        return kind(message, provider=self.provider, status=status)

    def _unreachable(self, error: Exception) -> RerankUnavailableError:
        what = (
            "could not be reached"
            if isinstance(error, httpx2.ConnectError)
            else "broke the call off"
        )
        reason = str(error).strip().rstrip(".") or type(error).__name__
        return RerankUnavailableError(
            f"{self.provider} {what} ({reason[:_MAX_DETAIL_CHARS]}).", provider=self.provider
        )

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx2.AsyncClient]:
        kept = self._kept
        if kept is not None and kept[0] is asyncio.get_running_loop():
            yield kept[1]
            return
        async with _client() as client:
            yield client


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds a service asks to wait, from `Retry-After` in either form; None if it does not."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        until = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(until.timestamp() - time.time(), 0.0)


def _read_answer(provider: str, body: bytes, read: Callable[[Any], T]) -> T:
    """What `read` makes of a JSON body.

    Raises:
        RerankResponseError: It is not JSON, or not what `read` expects.
    """
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError) as error:
        what = "an empty body" if not body.strip() else "something that is not JSON"
        raise _unusable(provider, what) from error
    try:
        return read(decoded)
    except ValueError as error:
        raise _unusable(provider, str(error)) from error


def _client() -> httpx2.AsyncClient:
    # The deadline of a call covers connecting, sending and reading together.
    return httpx2.AsyncClient(
        verify=_ssl_context(), timeout=None, follow_redirects=False, trust_env=False
    )


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    """Loading the system's certificates takes about 0.1 s; one context serves every client."""
    return httpx2.create_ssl_context(trust_env=False)


async def _post(client: httpx2.AsyncClient, call: Call) -> tuple[int, Mapping[str, str], bytes]:
    headers = {
        "Authorization": f"Bearer {call.key}",
        "Content-Type": "application/json",
        "Accept": "application/json",
    }
    async with client.stream("POST", call.url, content=call.body, headers=headers) as response:
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > _MAX_ANSWER_BYTES:
                break  # what is cut off is not JSON any more
        return response.status_code, response.headers, bytes(body)


def _pause(longest: float, headers: Mapping[str, str]) -> float:
    jitter = random.uniform(0, longest)  # noqa: S311
    return jitter + (retry_after_s(headers) or 0.0)


def _worth_another(error: RerankError, attempt: int, wait: float, deadline: float) -> bool:
    if attempt == _MAX_ATTEMPTS or not isinstance(error, RerankUnavailableError):
        return False
    return time.monotonic() + wait < deadline


def _count(breaker: CircuitBreaker, error: RerankError) -> None:
    # A service that finds fault with one request is well, and the next may be better.
    if error.status in (400, 413, 422):
        breaker.succeeded()
    else:
        breaker.failed()


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
    words = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    return words.replace(key, "***")[:_MAX_DETAIL_CHARS].rstrip(".")
