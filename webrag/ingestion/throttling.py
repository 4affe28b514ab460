"""Tells whoever asked for pages that a service wants fewer requests; it slows nothing down."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["rate_limited", "watching_rate_limits"]

_WATCHER: ContextVar[Callable[[], None] | None] = ContextVar("rate_limit_watcher", default=None)


@contextmanager
def watching_rate_limits(watcher: Callable[[], None]) -> Iterator[None]:
    """Learn of limits that are reached inside the block and in tasks started in it.

    Args:
        watcher: Called once for each refused request.
    """
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def rate_limited() -> None:
    """Tell that a request was refused as one too many; nothing happens when nobody watches."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher()
