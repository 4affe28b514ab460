"""Hands the queued pages of a crawl to its workers; the queue itself is in the database."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from webrag.indexing.crawl_state import CrawlState, QueuedPage

__all__ = ["CrawlQueue"]

_WINDOW: Final = 32


class CrawlQueue:
    """A small window on the queue of one crawl; it belongs to one event loop.

    Args:
        state: Holds the queue.
        crawl: Which crawl.
    """

    def __init__(self, state: CrawlState, crawl: int) -> None:
        self._state = state
        self._crawl = crawl
        self._window: deque[QueuedPage] = deque()
        self._under_way: set[str] = set()
        self._changed = asyncio.Condition()

    @property
    def under_way(self) -> int:
        """Pages handed out and not done yet."""
        return len(self._under_way)

    async def take(
        self,
        *,
        is_over: Callable[[], bool],
        refuse: Callable[[QueuedPage], Awaitable[bool]],
    ) -> QueuedPage | None:
        """Give the next page, waiting while others may still find some.

        Args:
            is_over: Tells whether no further page may be begun.
            refuse: Takes a page out of the queue when it must not be visited any more, and
                tells whether it did.

        Returns:
            None when there is nothing left to do.
        """
        async with self._changed:
            while not is_over():
                entry = await self._following(refuse)
                if entry is not None:
                    self._under_way.add(entry.url)
                    return entry
                if not self._under_way:
                    return None
                await self._changed.wait()
            return None

    async def done(self, urls: Iterable[str]) -> None:
        """Wake those who wait: these pages are dealt with, and others may have been queued."""
        async with self._changed:
            self._under_way.difference_update(urls)
            self._changed.notify_all()

    async def _following(
        self, refuse: Callable[[QueuedPage], Awaitable[bool]]
    ) -> QueuedPage | None:
        while True:
            if not self._window:
                self._window.extend(
                    await self._state.next_pages(
                        self._crawl, limit=_WINDOW, but=list(self._under_way)
                    )
                )
            if not self._window:
                return None
            entry = self._window.popleft()
            if not await refuse(entry):
                return entry
