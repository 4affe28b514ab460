"""Keeps a failing service from being asked over and over; it makes no call itself."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["CircuitBreaker"]

_Reason = TypeVar("_Reason")


class CircuitBreaker(Generic[_Reason]):
    """Counts failures in a row and, after enough of them, says for a while not to ask.

    After the pause calls are let through again; the first failure begins another pause, the
    first success ends the matter.

    Args:
        failures: Failures in a row that begin a pause.
        pause_s: Length of a pause.
        clock: Seconds that only grow.
    """

    def __init__(
        self, *, failures: int, pause_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = failures
        self._pause_s = pause_s
        self._clock = clock
        self._count = 0
        self._open_until = 0.0
        self._last: _Reason | None = None

    @property
    def blocking(self) -> _Reason | None:
        """The reason that began the pause now running; None when the service may be asked."""
        return self._last if self._clock() < self._open_until else None

    def succeeded(self) -> None:
        """Note that the service answered."""
        self._count = 0
        self._open_until = 0.0

    def failed(self, reason: _Reason, *, pause_s: float | None = None) -> None:
        """Note a failure.

        Args:
            reason: Given by `blocking` as long as the pause lasts.
            pause_s: Begin a pause of this length at once, whatever the count.
        """
        self._count += 1
        self._last = reason
        if pause_s is not None:
            self._open_until = self._clock() + pause_s
        elif self._count >= self._limit:
            self._open_until = self._clock() + self._pause_s
