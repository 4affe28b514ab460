"""Tells whoever asked for pages how much was read from the network for them; it limits nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["metering", "received"]

_METER: ContextVar[Callable[[int], None] | None] = ContextVar("traffic_meter", default=None)


@contextmanager
def metering(meter: Callable[[int], None]) -> Iterator[None]:
    """Receive what is read inside the block and in tasks started in it.

    Args:
        meter: Called with a number of bytes at a time, as sent where that is known, failed
            fetches included.
    """
    token = _METER.set(meter)
    try:
        yield
    finally:
        _METER.reset(token)


def received(size: int) -> None:
    """Tell that so many bytes have arrived; nothing happens when nobody counts."""
    meter = _METER.get()
    if meter is not None and size > 0:
        meter(size)
