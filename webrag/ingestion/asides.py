"""What a page source tells whoever asked it for pages, besides the pages; it stores nothing.

A page source serves many callers and its protocol returns pages only. What else there is to say
goes to the caller on whose behalf it works, also through the tasks that caller starts.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

__all__ = ["listening", "metering", "note", "rate_limited", "received", "watching_rate_limits"]

T = TypeVar("T")


class _Aside(Generic[T]):
    def __init__(self, name: str) -> None:
        self._listener: ContextVar[Callable[[T], None] | None] = ContextVar(name, default=None)

    @contextmanager
    def heard_by(self, listener: Callable[[T], None]) -> Iterator[None]:
        token = self._listener.set(listener)
        try:
            yield
        finally:
            self._listener.reset(token)

    def tell(self, value: T) -> None:
        listener = self._listener.get()
        if listener is not None:
            listener(value)


_NOTES: _Aside[str] = _Aside("notes")
_BYTES: _Aside[int] = _Aside("bytes")
_REFUSALS: _Aside[None] = _Aside("refusals")


def listening(listener: Callable[[str], None]) -> AbstractContextManager[None]:
    """Receive what page sources note inside the block and in tasks started in it.

    Args:
        listener: Called with one sentence at a time; the same one may come several times.
    """
    return _NOTES.heard_by(listener)


def note(sentence: str) -> None:
    """Tell the caller a sentence, such as that another way was taken as a service was down."""
    _NOTES.tell(sentence)


def metering(meter: Callable[[int], None]) -> AbstractContextManager[None]:
    """Receive how much is read from the network inside the block and in tasks started in it.

    Args:
        meter: Called with a number of bytes at a time, as sent where that is known, failed
            fetches included.
    """
    return _BYTES.heard_by(meter)


def received(size: int) -> None:
    """Tell the caller that so many bytes have arrived."""
    if size > 0:
        _BYTES.tell(size)


def watching_rate_limits(watcher: Callable[[], None]) -> AbstractContextManager[None]:
    """Learn of limits that are reached inside the block and in tasks started in it.

    Args:
        watcher: Called once for each refused request.
    """
    return _REFUSALS.heard_by(lambda _: watcher())


def rate_limited() -> None:
    """Tell the caller that a service refused a request as one too many."""
    _REFUSALS.tell(None)
