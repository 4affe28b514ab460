"""Rules for calling services: retries, proxies, size of answers, threads. It makes no call."""

import asyncio
import contextvars
import random
import threading
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import httpx
import tenacity

T = TypeVar("T")
C = TypeVar("C", httpx.Client, httpx.AsyncClient)

ENVIRONMENT: Final = "environment"
# A proxy elsewhere cannot reach the servers of this machine.
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "[::1]")
MAX_ANSWER_BYTES: Final = 32_000_000
_PIECE_BYTES: Final = 65_536


@dataclass(frozen=True)
class RetryPolicy:
    """Repeats a request that failed for a passing reason, within one deadline.

    Pauses grow from at most `backoff_s` to twice as much each time, with full jitter; one that a
    service asks for comes on top, and where it does not fit the deadline (of `time.monotonic`) the
    call fails at once.
    """

    attempts: int
    backoff_s: float
    deadline: float
    is_passing: Callable[[BaseException], bool]
    asked_pause_s: Callable[[BaseException], float] = lambda _error: 0.0
    on_pause: Callable[[BaseException, float], None] = lambda _error, _seconds: None

    async def run(self, request: Callable[[], Awaitable[T]]) -> T:
        """The result of the first request that works; else the last failure is raised."""
        return await tenacity.AsyncRetrying(**self._rules(), sleep=asyncio.sleep)(request)

    def run_sync(self, request: Callable[[], T]) -> T:
        """As `run`, for synchronous callers."""
        return tenacity.Retrying(**self._rules(), sleep=time.sleep)(request)

    def _rules(self) -> dict[str, Any]:
        return {
            "retry": tenacity.retry_if_exception(self.is_passing),
            "wait": self._pause_s,
            "stop": self._is_over,
            "before_sleep": self._tell,
            "reraise": True,
        }

    def _pause_s(self, state: tenacity.RetryCallState) -> float:
        longest = self.backoff_s * 2 ** (state.attempt_number - 1)
        jitter: float = random.uniform(0, longest)  # noqa: S311
        return jitter + self.asked_pause_s(_failure(state))

    def _is_over(self, state: tenacity.RetryCallState) -> bool:
        is_late = time.monotonic() + state.upcoming_sleep >= self.deadline
        return is_late or state.attempt_number >= self.attempts

    def _tell(self, state: tenacity.RetryCallState) -> None:
        self.on_pause(_failure(state), state.upcoming_sleep)


# What these answer may repeat the key, in full or in part.
ABOUT_THE_KEY: Final = frozenset({401, 403, 498})
_RETRIED: Final = frozenset({408, 409, 425, 429})
_REFUSALS: Final[Mapping[int, str]] = {
    401: "refused the key",
    402: "wants payment for the account of this key",
    403: "refused the key",
    404: "knows no such address or model",
    413: "finds the request too large",
    429: "refused the request because of its rate limit",
    498: "refused the key",
}


def failure_of(status: int) -> tuple[str, bool]:
    """Say in a clause how a service failed, by its HTTP status, and whether it may pass."""
    is_passing = status >= 500 or status in _RETRIED
    return _REFUSALS.get(status, "failed" if is_passing else "refused the request"), is_passing


def client_options(proxy: str | None) -> dict[str, Any]:
    """Arguments for a client of httpx or httpx2, so that keys go where they are meant to go.

    Args:
        proxy: None for direct connections, whatever the environment says; `environment` for what
            HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say; or the address of a proxy, which
            is used for everything but this machine.
    """
    if proxy is None or proxy == ENVIRONMENT:
        return {"trust_env": proxy is not None}
    direct: dict[str, None] = {f"all://{host}": None for host in _THIS_MACHINE}
    return {"trust_env": False, "proxy": proxy, "mounts": direct}


class AnswerTooLargeError(httpx.HTTPError):
    """A service went on sending after the most that is read of an answer."""


def size_failure(error: BaseException | None) -> AnswerTooLargeError | None:
    """Find in an SDK's error that the answer was too large for us."""
    while error is not None and not isinstance(error, AnswerTooLargeError):
        error = error.__cause__ or error.__context__
    return error


def limited_client(
    kind: type[C],
    proxy: str | None,
    *,
    most_bytes: int = MAX_ANSWER_BYTES,
    is_cut: bool = False,
    error: type[AnswerTooLargeError] = AnswerTooLargeError,
    **options: Any,
) -> C:
    """Make a client whose answers end with an error where they grow too large.

    The packages of services read any answer to its end, and unpack it: a kilobyte as sent can be a
    megabyte. Counted is what is unpacked. With `is_cut` an answer just ends there. An `error` of an
    SDK's own kind keeps the SDK from asking again.
    """

    def limit(response: httpx.Response) -> None:
        response.stream = _LimitedStream(response, most_bytes, error, is_cut=is_cut)

    async def limit_async(response: httpx.Response) -> None:
        limit(response)

    hook = limit_async if issubclass(kind, httpx.AsyncClient) else limit
    client = kind(**options, **client_options(proxy), event_hooks={"response": [hook]})
    # Of what the packages would offer, only this can be unpacked piece by piece.
    client.headers["Accept-Encoding"] = "gzip"
    return client


class _LimitedStream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of an answer, unpacked, up to a limit."""

    def __init__(
        self,
        response: httpx.Response,
        most_bytes: int,
        error: type[AnswerTooLargeError],
        *,
        is_cut: bool,
    ) -> None:
        self._body: Any = response.stream
        self._most = self._left = most_bytes
        self._error = error
        self._is_cut = is_cut
        # What follows gets the body unpacked.
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise httpx.DecodingError("an answer in an encoding that was not asked for")
        is_packed = encoding not in ("", "identity")
        self._unpacker = zlib.decompressobj(wbits=47) if is_packed else None

    def __iter__(self) -> Iterator[bytes]:
        for part in self._body:
            yield from self._pieces(part)
            if self._left < 0:
                return

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            for piece in self._pieces(part):
                yield piece
            if self._left < 0:
                return

    def close(self) -> None:
        self._body.close()

    async def aclose(self) -> None:
        await self._body.aclose()

    def _pieces(self, part: bytes) -> Iterator[bytes]:
        for piece in [part] if self._unpacker is None else self._unpacked(self._unpacker, part):
            self._left -= len(piece)
            if self._left < 0 and self._is_cut:
                return
            if self._left < 0:
                raise self._error(f"more than {self._most // 1_000_000} MB")
            yield piece

    def _unpacked(self, unpacker: Any, part: bytes) -> Iterator[bytes]:
        while True:
            try:
                piece = unpacker.decompress(part, _PIECE_BYTES)
            except zlib.error as error:
                raise httpx.DecodingError("an answer that cannot be unpacked") from error
            yield piece
            part = unpacker.unconsumed_tail
            if not part and len(piece) < _PIECE_BYTES:
                return


def session_proxies(proxy: str | None) -> tuple[bool, dict[str, str]]:
    """`trust_env` and `proxies` of a session of requests, for the same policy."""
    if proxy is None or proxy == ENVIRONMENT:
        return proxy is not None, {}
    direct = {f"{scheme}://{host}": "" for scheme in ("http", "https") for host in _THIS_MACHINE}
    # requests looks a host up without the brackets of IPv6.
    direct |= {name.replace("[", "").replace("]", ""): "" for name in direct}
    return False, {"http": proxy, "https": proxy, **direct}


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, in an event loop of its own; a running loop waits meanwhile."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    context = contextvars.copy_context()
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(context.run, asyncio.run, work).result()


def _failure(state: tenacity.RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome else None
    if error is None:  # only failures are followed by a pause
        raise RuntimeError("a request that worked is not repeated")
    return error


_Reason = TypeVar("_Reason")


class CircuitBreaker(Generic[_Reason]):
    """Stops calls for `open_s` after `threshold` failures in a row, then lets one through to try.

    Thread-safe.
    """

    def __init__(
        self,
        *,
        threshold: int = 5,
        open_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threshold = threshold
        self._open_s = open_s
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._retry_at = 0.0
        self._reason: _Reason | None = None

    @property
    def reason(self) -> _Reason | None:
        """The reason given with the last failure."""
        return self._reason

    def seconds_left(self) -> float:
        """Seconds until a call may be made; 0.0 admits the caller, alone if it is a trial."""
        with self._lock:
            if self._failures < self._threshold:
                return 0.0
            left = self._retry_at - self._clock()
            if left > 0:
                return left
            self._retry_at = self._clock() + self._open_s
            return 0.0

    def succeeded(self) -> None:
        """Forget the failures."""
        with self._lock:
            self._failures = 0
            self._reason = None

    def failed(self, reason: _Reason | None = None, *, pause_s: float | None = None) -> None:
        """Count a failure; from the threshold on, or at once for `pause_s`, calls stop from now."""
        with self._lock:
            self._failures += 1
            self._reason = reason
            if pause_s is not None:
                self._failures = max(self._failures, self._threshold)
            self._retry_at = self._clock() + (self._open_s if pause_s is None else pause_s)
