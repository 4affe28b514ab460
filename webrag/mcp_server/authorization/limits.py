"""How much each caller has used, and whether that is enough for now. No I/O here.

Kept in memory: a restart begins anew, and each of several processes counts for itself.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from webrag.errors import AccessDeniedError
from webrag.ingestion.metering import PageMeter

_MINUTE = timedelta(seconds=60)


@dataclass(frozen=True)
class CallLimits:
    """What one caller may use; None for as much as they want.

    Attributes:
        calls_per_minute: Within any 60 seconds.
        calls_per_day: From midnight to midnight (UTC), like those below.
        pages_per_day: Requests for pages, successful or not.
        bytes_per_day: Of pages, as decoded.
    """

    calls_per_minute: int | None = None
    calls_per_day: int | None = None
    pages_per_day: int | None = None
    bytes_per_day: int | None = None


@dataclass
class _Usage:
    calls: int = 0
    pages: int = 0
    size: int = 0
    recent: deque[datetime] = field(default_factory=deque)


class UsageLedger:
    """Counts of the current day by caller.

    Args:
        limits: The same for each caller.
        now: Time in UTC.
    """

    def __init__(
        self, limits: CallLimits, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._limits = limits
        self._now = now
        self._day: date | None = None
        self._usages: dict[str, _Usage] = {}
        self._meters: dict[str, _Meter] = {}

    def count_call(self, caller: str) -> None:
        """Count one call.

        Raises:
            AccessDeniedError: The caller may make no more for now; the call is not counted.
        """
        limits, usage, now = self._limits, self._usage(caller), self._now()
        if limits.calls_per_day is not None and usage.calls >= limits.calls_per_day:
            raise AccessDeniedError(self._until_tomorrow(f"{limits.calls_per_day:,} calls"))
        if limits.calls_per_minute is not None:
            while usage.recent and now - usage.recent[0] >= _MINUTE:
                usage.recent.popleft()
            if len(usage.recent) >= limits.calls_per_minute:
                wait = math.ceil((usage.recent[0] + _MINUTE - now).total_seconds())
                raise AccessDeniedError(
                    f"The limit of {limits.calls_per_minute:,} calls a minute is reached; try "
                    f"again in {wait} s."
                )
            usage.recent.append(now)
        usage.calls += 1

    def meter(self, caller: str) -> PageMeter:
        """What counts the pages of a caller; always the same one, so that calls can share work."""
        return self._meters.setdefault(caller, _Meter(self, caller))

    def page_refusal(self, caller: str) -> str | None:
        """Why no further page may be requested; None counts one."""
        limits, usage = self._limits, self._usage(caller)
        if limits.pages_per_day is not None and usage.pages >= limits.pages_per_day:
            return self._until_tomorrow(f"{limits.pages_per_day:,} pages")
        if limits.bytes_per_day is not None and usage.size >= limits.bytes_per_day:
            return self._until_tomorrow(f"{limits.bytes_per_day:,} bytes of pages")
        usage.pages += 1
        return None

    def count_bytes(self, caller: str, size: int) -> None:
        """Count what was received; the page that passes the limit is still used."""
        self._usage(caller).size += size

    def _usage(self, caller: str) -> _Usage:
        today = self._now().date()
        if today != self._day:
            # A minute that spans midnight goes on.
            recent = {name: usage.recent for name, usage in self._usages.items() if usage.recent}
            self._day = today
            self._usages = {name: _Usage(recent=times) for name, times in recent.items()}
            self._meters.clear()
        return self._usages.setdefault(caller, _Usage())

    def _until_tomorrow(self, what: str) -> str:
        now = self._now()
        midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
        minutes = math.ceil((midnight - now).total_seconds() / 60)
        wait = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
        return f"The limit of {what} a day is reached; try again after 00:00 UTC, in {wait}."


class _Meter:
    """Counts for one caller."""

    def __init__(self, ledger: UsageLedger, caller: str) -> None:
        self._ledger = ledger
        self._caller = caller

    def refusal(self) -> str | None:
        return self._ledger.page_refusal(self._caller)

    def received(self, size: int) -> None:
        self._ledger.count_bytes(self._caller, size)
