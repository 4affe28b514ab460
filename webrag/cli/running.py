"""Runs a command's coroutine so that every way of stopping it cleans up."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from webrag.cli.progress import start_progress
from webrag.concurrency import run_in_loop

if TYPE_CHECKING:
    from webrag.app import WebRAG
    from webrag.settings import Settings

_TERMINATED = 143  # 128 + SIGTERM, as shells report it

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Give the result of `work`; Ctrl-C and SIGTERM cancel it and let it close what it opened."""
    terminated = False

    async def guarded() -> T:
        task = asyncio.current_task()
        assert task is not None

        def stop() -> None:
            nonlocal terminated
            terminated = True
            task.cancel()

        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGTERM, stop)
        except (NotImplementedError, RuntimeError, ValueError):
            return await work
        try:
            return await work
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    try:
        return run_in_loop(guarded())
    except asyncio.CancelledError:
        if terminated:
            raise SystemExit(_TERMINATED) from None
        raise


def run_opened(
    settings: "Settings", work: "Callable[[WebRAG], Awaitable[T]]", *, quiet: bool = True
) -> T:
    """Give the result of `work` on a WebRAG that is open meanwhile, showing that it opens."""

    async def opened() -> T:
        from webrag.app import WebRAG

        with start_progress("Opening what is stored", quiet=quiet) as is_open:
            async with WebRAG(settings) as rag:
                is_open()
                return await work(rag)

    return run(opened())
