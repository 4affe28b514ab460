"""How often and how many at once one host is asked; it sends nothing itself."""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator

__all__ = ["MAX_CRAWL_DELAY_S", "HostGate"]

# A robots.txt may ask for minutes; a question answered by a person waiting cannot grant that.
MAX_CRAWL_DELAY_S = 10.0
_REMEMBERED_HOSTS = 1_000


class _Host:
    def __init__(self, concurrency: int) -> None:
        self.slots = asyncio.Semaphore(concurrency)
        self.next_start = 0.0
        self.held_until = 0.0
        self.users = 0


class HostGate:
    """Lets requests through host by host, at most so many at once and so often.

    Waiting is fair per host and one slow host never holds up another. It belongs to one event loop.
    """

    def __init__(self, *, concurrency: int, delay_s: float) -> None:
        self._concurrency = concurrency
        self._delay_s = delay_s
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    @contextlib.asynccontextmanager
    async def turn(
        self, host: str, *, crawl_delay_s: float | None = None, is_exempt: bool = False
    ) -> AsyncIterator[None]:
        """Wait for a turn at `host` and hold it.

        Args:
            host: Key under which requests are counted together.
            crawl_delay_s: What the host asks for, honoured up to `MAX_CRAWL_DELAY_S`.
            is_exempt: Go through at once; for hosts the operator has opened.
        """
        if is_exempt:
            yield
            return
        delay = max(self._delay_s, min(crawl_delay_s or 0.0, MAX_CRAWL_DELAY_S))
        state = self._state(host)
        state.users += 1
        try:
            async with state.slots:
                await self._wait_for_start(state, delay)
                yield
        finally:
            state.users -= 1
            self._forget_idle()

    def hold(self, host: str, seconds: float) -> None:
        """Begin no request to a host for a while: it says that it is busy.

        Args:
            host: As for `turn`; one that never had a turn is not held.
            seconds: What the host asks for, honoured up to `MAX_CRAWL_DELAY_S`.
        """
        state = self._hosts.get(host)
        if state is None:
            return
        until = time.monotonic() + min(seconds, MAX_CRAWL_DELAY_S)
        state.held_until = max(state.held_until, until)
        state.next_start = max(state.next_start, until)

    async def _wait_for_start(self, state: _Host, delay: float) -> None:
        now = time.monotonic()
        start = max(now, state.next_start)
        state.next_start = start + delay
        if start > now:
            await asyncio.sleep(start - now)
        # The host may have asked for a pause meanwhile.
        held = state.held_until - time.monotonic()
        if held > 0:
            await asyncio.sleep(held)

    def _state(self, host: str) -> _Host:
        state = self._hosts.get(host)
        if state is None:
            state = self._hosts[host] = _Host(self._concurrency)
        self._hosts.move_to_end(host)
        return state

    def _forget_idle(self) -> None:
        while len(self._hosts) > _REMEMBERED_HOSTS:
            host, state = next(iter(self._hosts.items()))
            if state.users or state.next_start > time.monotonic():
                return
            del self._hosts[host]
