"""Progress notifications of one tool call; it neither measures nor estimates what is left."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

# Clients give up after a silence of 10 to 60 s and show the last message until then.
HEARTBEAT_S = 2.5

Report = Callable[[float, float | None, str | None], Awaitable[None]]


class ProgressReporter:
    """Sends each phase, and repeats the last one while nothing else is said.

    Values rise with every notification, as the protocol demands; there is no total because the
    number of phases is not known beforehand.

    Args:
        report: Sends value, total and message to the client.
        interval_s: Longest silence.
    """

    def __init__(self, report: Report, *, interval_s: float = HEARTBEAT_S) -> None:
        self._report = report
        self._interval_s = interval_s
        self._value = 0
        self._message = "Working..."
        self._started = self._sent = time.monotonic()
        self._noted: set[asyncio.Task[None]] = set()

    async def __call__(
        self, phase: str, detail: str, iteration: int | None = None, total: int | None = None
    ) -> None:
        """Report one phase."""
        self._message = detail or phase
        if iteration is not None and total and f"{iteration}/{total}" not in self._message:
            self._message += f" ({iteration}/{total})"
        await self._send(self._message)

    def note(self, message: str) -> None:
        """Report from code that cannot wait; the notification is sent soon."""
        self._message = message
        task = asyncio.create_task(self._send(message))
        self._noted.add(task)
        task.add_done_callback(self._forget)

    async def flush(self) -> None:
        """Wait until everything noted has been sent, or could not be."""
        if self._noted:
            await asyncio.wait(self._noted)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._noted.discard(task)
        # A client that went away must not cost it what is being stored.
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("Progress could not be reported: %s", error)

    async def keep_alive(self) -> None:
        """Repeat the last message whenever the silence lasts too long, until cancelled."""
        while True:
            silence = time.monotonic() - self._sent
            if silence < self._interval_s:
                await asyncio.sleep(self._interval_s - silence)
                continue
            await self._send(f"{self._message} ({time.monotonic() - self._started:.0f}s so far)")

    async def _send(self, message: str) -> None:
        self._value += 1
        self._sent = time.monotonic()
        await self._report(float(self._value), None, message)
