"""Which tool calls are under way, so that a server that stops can let them end."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["RunningCalls"]

_CANCELLING_S = 1.0


class RunningCalls:
    """The calls of one event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._idle = asyncio.Event()
        self.is_ending = False
        """Whether calls are cancelled because the server stops."""

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count the current task as a call."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._idle.clear()
        try:
            yield
        finally:
            self._tasks.discard(task)
            if not self._tasks:
                self._idle.set()

    def __len__(self) -> int:
        return len(self._tasks)

    async def finish(self, grace_s: float) -> None:
        """Wait until all calls have ended; cancel those that have not when the time is over."""
        if not self._tasks:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._idle.wait()
        self.is_ending = True
        for task in self._tasks:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CANCELLING_S):
                await self._idle.wait()
