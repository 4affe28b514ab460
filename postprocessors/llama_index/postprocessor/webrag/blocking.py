"""Runs asynchronous work from synchronous methods, inside a running event loop or outside."""

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["run_blocking"]

T = TypeVar("T")


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, in an event loop of its own; a running loop waits meanwhile."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    context = contextvars.copy_context()
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(context.run, asyncio.run, work).result()
