"""How services are called, whoever they are: retries, proxies, threads; it makes no call itself."""

import asyncio
import contextvars
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import tenacity

__all__ = ["ENVIRONMENT", "RetryPolicy", "client_options", "run_blocking", "session_proxies"]

T = TypeVar("T")

ENVIRONMENT: Final = "environment"
# A proxy elsewhere cannot reach the servers of this machine.
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class RetryPolicy:
    """Repeats a request that failed for a passing reason, within one deadline.

    Pauses grow, with full jitter; one that a service asks for comes on top, and where it does not
    fit the deadline the call fails at once.

    Attributes:
        attempts: Requests at most.
        backoff_s: Longest pause before the second request; doubled for each further one.
        deadline: `time.monotonic` value at which the caller stops waiting.
        is_passing: Whether another request may not meet this failure.
        asked_pause_s: Seconds that the service wants to be left alone after it.
        on_pause: Told of a failure that is followed by another request, and of the pause.
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
