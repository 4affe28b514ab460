"""Keeps the collections of callers open, a bounded number at once."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from webrag.concurrency import settled
from webrag.errors import AccessDeniedError
from webrag.mcp_server.runtime import LoadMemory, Runtime

logger = logging.getLogger(__name__)

# Shorter than the patience of every client.
_WAIT_S = 10.0


@dataclass
class _Open:
    runtime: Runtime
    users: int = 0


class Memories:
    """One memory for each collection, opened when first used.

    A collection stays open while it is in use; when there is no room for another one, the idle
    one that was unused for longest is closed. Must be used on one event loop.

    Args:
        load: Makes the memory of a collection, unopened; runs in a thread.
        most_open: Collections at once, those being closed included.
        wait_s: How long to wait for room when all are in use.
    """

    def __init__(
        self, load: Callable[[str], LoadMemory], *, most_open: int, wait_s: float = _WAIT_S
    ) -> None:
        self._load = load
        self._most_open = most_open
        self._wait_s = wait_s
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._open) + len(self._closing)

    @asynccontextmanager
    async def using(self, collection: str) -> AsyncIterator[Runtime]:
        """Keep a collection open in the block.

        Raises:
            AccessDeniedError: All that may be open are in use.
        """
        try:
            async with asyncio.timeout(self._wait_s):
                entry = await self._entered(collection)
        except TimeoutError:
            raise AccessDeniedError(
                "The server is busy with the calls of others; try again in a minute."
            ) from None
        try:
            yield entry.runtime
        finally:
            entry.users -= 1
            self._wake()

    async def close(self) -> None:
        """Close all of them."""
        for name in list(self._open):
            self._begin_closing(name)
        closing = list(self._closing)
        await settled(closing)
        for each in closing:
            each.result()

    async def _entered(self, collection: str) -> _Open:
        while collection not in self._open:
            if len(self) < self._most_open:
                self._open[collection] = _Open(Runtime(self._load(collection)))
                break
            idle = next((name for name, each in self._open.items() if not each.users), None)
            if idle is not None and not self._closing:
                self._begin_closing(idle)
            await self._change()
        entry = self._open[collection]
        self._open.move_to_end(collection)
        # Nothing is awaited in between, so nobody closes it first.
        entry.users += 1
        return entry

    def _begin_closing(self, name: str) -> None:
        runtime = self._open.pop(name).runtime
        logger.info("A collection that was idle is closed")
        task = asyncio.create_task(runtime.close())
        self._closing.add(task)
        task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        self._wake()

    async def _change(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
