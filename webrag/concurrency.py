"""Several pieces of work at once, of which none outlives whoever waits for them."""

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

__all__ = ["all_of", "ended", "settled", "within"]

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
    """Wait until all are over, even when the waiting is cancelled meanwhile.

    Nothing is raised on behalf of the futures; whoever wants their outcomes asks them.
    """
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
async def within(seconds: float | None) -> AsyncIterator[None]:
    """End the block when the time is over, without an error; None for no limit."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
