"""Leaves a failing service alone for a while; it makes no call itself."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_Reason = TypeVar("_Reason")


class CircuitBreaker(Generic[_Reason]):
    """Stops calls for a while after several failures in a row, then lets one through to try.

    Thread-safe.

    Args:
        threshold: Failures in a row that begin a pause.
        open_s: Length of a pause.
        clock: Seconds that only grow.
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
        """What was given with the last failure."""
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
        """Count a failure; from the threshold on, calls stop from now.

        Args:
            reason: Kept until something else happens.
            pause_s: Stop calls for so long at once, whatever the count.
        """
        with self._lock:
            self._failures += 1
            self._reason = reason
            if pause_s is not None:
                self._failures = max(self._failures, self._threshold)
            self._retry_at = self._clock() + (self._open_s if pause_s is None else pause_s)
