"""Several pieces of work at once, and work of the processor beside the event loop."""

import asyncio
import contextvars
import os
import sys
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial, wraps
from threading import Lock, Thread
from typing import Any, Concatenate, ParamSpec, TypeVar

T = TypeVar("T")


async def all_of(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in the order of the works, which run at once.

    When one fails the others are cancelled and waited for, and the first error is raised as it
    is, never in a group. A cancellation of the caller wins over errors that it brings about.
    """
    caller = asyncio.current_task()
    assert caller is not None
    cancellations = caller.cancelling()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
            # Waited for in here: when a task fails during the group's own wait, Python 3.11 leaves
            # the caller counted as cancelled, and its next timeout is taken for a cancellation.
            if tasks:
                await asyncio.wait(tasks)
    except BaseExceptionGroup as failures:
        failure = failures.exceptions[0]
    else:
        return [task.result() for task in tasks]
    if caller.cancelling() > cancellations:
        raise asyncio.CancelledError
    # Outside the handler, so that the error keeps the cause and the context it came with.
    raise failure


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel what still runs, then as `settled`."""
    for task in tasks:
        task.cancel()
    await settled(tasks)


async def settled(futures: Collection[asyncio.Future[Any]]) -> None:
    """Wait until all are over, even when the waiting is cancelled; nothing is raised for them."""
    cancelled = False
    while waiting := [future for future in futures if not future.done()]:
        try:
            await asyncio.wait(waiting)
        except asyncio.CancelledError:
            cancelled = True
    for future in futures:
        # An error that nobody asks for would be logged as lost.
        _ = future.cancelled() or future.exception()
    if cancelled:
        raise asyncio.CancelledError


@asynccontextmanager
async def within(seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
    """End the block when the time is over, without an error; None for no limit.

    Gives the limit, which tells whether it was reached.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield limit
    except TimeoutError:
        if not limit.expired():
            raise


P = ParamSpec("P")


class Threads:
    """A few threads for one kind of work, none of them the event loop's own.

    In those of the event loop names are looked up: work that takes long there, or never ends,
    would hold up every request. What waits here holds up nothing but its kind.
    """

    def __init__(self, name: str, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in one of them; work not begun when its caller goes away is never done."""
        context = contextvars.copy_context()
        call = partial(context.run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)


# More would not be faster, as they take turns; with one, a long page would hold up everybody.
_WORK = Threads("webrag-work", 2)


async def in_background(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function beside the event loop.

    For functions whose time and memory are bounded by the length of their text: nothing can end a
    thread, so that a caller who goes away leaves it to finish.
    """
    return await _WORK.run(function, *args, **kwargs)


def loop_factory(system: str = sys.platform) -> Callable[[], asyncio.AbstractEventLoop]:
    """Choose the kind of event loop that the PostgreSQL driver can work on."""
    # It waits for sockets by itself, which the loop that Windows has by default cannot let it do.
    return asyncio.SelectorEventLoop if system == "win32" else asyncio.new_event_loop


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, run to its end as `asyncio.run` does, on a loop that fits."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(work)


class LoopThread:
    """An event loop in a thread of its own, for programs without one."""

    def __init__(self) -> None:
        self.loop = loop_factory()()
        self._thread = Thread(target=self.loop.run_forever, name="webrag-loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work, which is cancelled when the waiting is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def close(self) -> None:
        """End the loop; what still runs in it is cancelled."""
        self.run(_end_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


_loops: dict[int, LoopThread] = {}
_loops_mutex = Lock()


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Wait for the work, which runs in a thread that all callers of this process share.

    For entrances that LlamaIndex has no way to await; the caller may be in an event loop, which
    stands still meanwhile. The loop goes on between the calls, and connections with it.
    """
    with _loops_mutex:
        loop = _loops.get(os.getpid())  # no thread survives a fork
        if loop is None:
            loop = _loops[os.getpid()] = LoopThread()
    return loop.run(work)


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The synchronous twin of an asynchronous method, also of a class that overrides that."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        work: Coroutine[Any, Any, T] = getattr(self, method.__name__)(*args, **kwargs)
        return run_blocking(work)

    return call


async def _end_all() -> None:
    await ended([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
