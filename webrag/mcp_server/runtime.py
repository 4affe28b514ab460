"""Opens WebRAG beside the running server, for each call, and lets calls under way end."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import Context
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context as CallContext

from webrag.concurrency import within

if TYPE_CHECKING:
    from webrag.app import WebRAG


logger = logging.getLogger(__name__)

_CLOSE_TIMEOUT_S = 15.0

LoadMemory = Callable[[], AbstractAsyncContextManager["WebRAG"]]
"""Imports what is needed and makes the memory, unopened."""

Entry = Callable[[CallContext[Any, Any], str | None], AbstractAsyncContextManager["Runtime"]]
"""Lets one call in to the memory it works on, given its tool (None for reading a resource).

Raises AccessDeniedError when its caller may not do that, or not now.
"""


class Runtime:
    """One research memory, opened in the background and shared by all calls.

    After a failure the next call opens it again.
    """

    def __init__(self, load: LoadMemory) -> None:
        self._load = load
        self._stop = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[WebRAG] | None = None
        self._renewing = asyncio.Lock()

    @property
    def is_ready(self) -> bool:
        """`memory` returns without waiting."""
        return self._opened is not None and self._opened.done() and not self.has_failed

    @property
    def has_failed(self) -> bool:
        """The memory could not be opened the last time."""
        return self._owner is not None and self._owner.done()

    def start(self) -> None:
        """Begin to open the memory; returns at once."""
        self._opened = asyncio.get_running_loop().create_future()
        # What belongs to the call that wants it first must not stay with the memory.
        self._owner = asyncio.create_task(
            self._own(self._opened), name="webrag-memory", context=Context()
        )
        self._owner.add_done_callback(_log_failure)

    async def memory(self) -> "WebRAG":
        """The open memory; waits until it is."""
        async with self._renewing:  # for its end alone
            pass
        return await self._memory()

    async def _memory(self) -> "WebRAG":
        if self._owner is None or self._owner.done():
            self.start()
        owner, opened = self._owner, self._opened
        assert owner is not None
        assert opened is not None
        waiting: set[asyncio.Future[Any]] = {owner, opened}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            owner.result()
        return opened.result()

    async def close(self) -> None:
        """Close the memory, or stop opening it; abandoned after 15 s."""
        self._stop.set()
        owner = self._owner
        if owner is None:
            return
        if not self.is_ready:
            owner.cancel()
        with anyio.move_on_after(_CLOSE_TIMEOUT_S, shield=True):
            await asyncio.wait({owner})
        owner.cancel()

    async def renew(self) -> None:
        """Close the memory and open it again, when what it is made of has changed."""
        async with self._renewing:
            await self.close()
            self._stop = asyncio.Event()
            await self._memory()

    async def _own(self, opened: "asyncio.Future[WebRAG]") -> None:
        # One task enters and leaves the context: cancel scopes must not change tasks.
        context = await anyio.to_thread.run_sync(self._load, abandon_on_cancel=True)
        async with context as memory:
            opened.set_result(memory)
            logger.info("WebRAG is ready")
            await self._stop.wait()


def _log_failure(owner: asyncio.Task[None]) -> None:
    if not owner.cancelled() and (error := owner.exception()) is not None:
        logger.error("WebRAG could not be opened: %s: %s", type(error).__name__, error)


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
        async with within(grace_s):
            await self._idle.wait()
        self.is_ending = True
        for task in self._tasks:
            task.cancel()
        async with within(_CANCELLING_S):
            await self._idle.wait()


def shared_entry(runtime: Runtime) -> Entry:
    """Everybody is let in and works on the same memory, as over stdio there is one caller."""

    @asynccontextmanager
    async def entered(_context: CallContext[Any, Any], _tool: str | None) -> AsyncIterator[Runtime]:
        yield runtime

    return entered


# Clients give up after a silence of 10 to 60 s and show the last message until then.
HEARTBEAT_S = 2.5

Report = Callable[[float, float | None, str | None], Awaitable[None]]


class ProgressReporter:
    """Sends each phase, and repeats the last one after `interval_s` without another.

    Values rise with every notification, as the protocol demands; how many come is not known.
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
