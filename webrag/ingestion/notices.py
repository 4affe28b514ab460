"""Carries sentences about page sources to whoever asked for a page; it stores none.

A page source serves many callers and its protocol returns pages only. What it has to say besides
(a service was down, so another way was taken) goes to the caller on whose behalf it works, also
through the tasks that caller starts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["listening", "note"]

_LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar("source_notices", default=None)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Receive what page sources note inside the block and in tasks started in it.

    Args:
        listener: Called with one sentence at a time; the same one may come several times.
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def note(sentence: str) -> None:
    """Tell the caller a sentence; nothing happens when nobody listens."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(sentence)
