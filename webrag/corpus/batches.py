"""Does in one go what several tasks ask for at the same time; knows nothing of pages."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from webrag.concurrency import all_of, ended
from webrag.errors import DatabaseUnavailableError

_ENOUGH: Final = 16
_LOOK_S: Final = 0.1  # what was to come may have failed

T = TypeVar("T")
R = TypeVar("R")


@dataclass(eq=False)
class _Asked(Generic[T, R]):
    item: T
    answer: "asyncio.Future[R]"
    at: float


@dataclass(eq=False)
class _State(Generic[T, R]):
    waiting: list[_Asked[T, R]] = field(default_factory=list)
    batch: list[_Asked[T, R]] = field(default_factory=list)
    timer: asyncio.Handle | None = None
    task: "asyncio.Task[None] | None" = None


@dataclass(eq=False)
class Batches(Generic[T, R]):
    """Collects what is asked for while a batch is worked on, for the next batch.

    What is asked for alone is done at once, unless `more_comes`, for which it waits no longer than
    `longest_wait_s` and a look at what comes. When a batch fails, each of its
    items is tried alone, unless the database cannot be reached. A batch whose callers have all gone
    away is cancelled, and the last of them waits for its end. A batch is of size `most` at most,
    unless one item alone is larger; `work` gives results in the order of its items.
    """

    work: Callable[[Sequence[T]], Awaitable[Sequence[R]]]
    _: KW_ONLY
    most: int
    size: Callable[[T], int] = lambda _: 1
    more_comes: Callable[[], bool] = lambda: False
    longest_wait_s: float = 0.2
    _states: WeakKeyDictionary[asyncio.AbstractEventLoop, _State[T, R]] = field(
        default_factory=WeakKeyDictionary, init=False
    )

    async def result(self, item: T) -> R:
        """Give the result of an item; raises what `work` raises for it alone."""
        loop = asyncio.get_running_loop()
        state = self._states.setdefault(loop, _State())
        asked = _Asked[T, R](item, loop.create_future(), loop.time())
        state.waiting.append(asked)
        self._plan(state)
        try:
            return await asked.answer
        finally:
            if asked.answer.cancelled():
                await self._leave(state, asked)
            else:
                asked.answer.exception()  # or it would be logged as lost, where its caller left

    def _plan(self, state: _State[T, R]) -> None:
        if state.task is not None or not state.waiting:
            return
        loop = asyncio.get_running_loop()
        is_late = loop.time() - state.waiting[0].at >= self.longest_wait_s
        waits = not is_late and len(state.waiting) < _ENOUGH and self.more_comes()
        if state.timer is not None and waits:
            return
        if state.timer is not None:
            state.timer.cancel()
        # Those who were answered together ask their next question together.
        next_step = self._look_again if waits else self._begin
        state.timer = loop.call_later(_LOOK_S if waits else 0, next_step, state)

    def _look_again(self, state: _State[T, R]) -> None:
        state.timer = None
        self._plan(state)

    def _begin(self, state: _State[T, R]) -> None:
        state.timer = None
        if state.task is not None or not state.waiting:
            return
        total = 0
        for count, asked in enumerate(state.waiting):
            total += self.size(asked.item)
            if count and total > self.most:
                break
        else:
            count = len(state.waiting)
        state.batch, state.waiting = state.waiting[:count], state.waiting[count:]
        state.task = asyncio.create_task(self._answer(state.batch))
        state.task.add_done_callback(lambda task: self._end(state, task))

    def _end(self, state: _State[T, R], task: "asyncio.Task[None]") -> None:
        for asked in state.batch:
            if not asked.answer.done():  # the loop ends, or something in here is wrong
                asked.answer.cancel()
        _ = task.cancelled() or task.exception()
        state.task, state.batch = None, []
        self._plan(state)

    async def _leave(self, state: _State[T, R], asked: _Asked[T, R]) -> None:
        if asked in state.waiting:
            state.waiting.remove(asked)
        elif asked in state.batch and all(each.answer.cancelled() for each in state.batch):
            assert state.task is not None
            await ended([state.task])

    async def _answer(self, batch: Sequence[_Asked[T, R]]) -> None:
        try:
            results = await self.work([asked.item for asked in batch])
        except Exception as error:  # noqa: BLE001 - told to whom it concerns
            if len(batch) == 1 or isinstance(error, DatabaseUnavailableError):
                for asked in batch:
                    if not asked.answer.done():
                        asked.answer.set_exception(error)
            else:
                await all_of(self._answer([asked]) for asked in batch)
            return
        for asked, result in zip(batch, results, strict=True):
            if not asked.answer.done():
                asked.answer.set_result(result)
