"""Runs work of the processor beside the event loop; it does not decide what is worth running."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

__all__ = ["in_background"]

P = ParamSpec("P")
T = TypeVar("T")

# More would not be faster, as they take turns; with one, a long page would hold up everybody.
_THREADS = 2


async def in_background(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function returns, run in one of a few threads kept for such work.

    For functions whose time and memory are bounded by the length of their text: nothing can end a
    thread, so that a caller who goes away leaves it to finish. Not the default executor of the
    event loop, in which names are looked up: what waits here holds up nothing else. Work that no
    thread has begun when its caller goes away is never done.
    """
    context = contextvars.copy_context()
    call = partial(context.run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads(), call)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="webrag-work")
