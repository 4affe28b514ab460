"""Tells work that nobody waits for from work that somebody does."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_PATIENT: ContextVar[bool] = ContextVar("webrag_patient", default=False)


@contextmanager
def patiently() -> Iterator[None]:
    """Requests made in this block let those of other callers come first."""
    token = _PATIENT.set(True)
    try:
        yield
    finally:
        _PATIENT.reset(token)


def is_patient() -> bool:
    """Whether the caller lets others come first."""
    return _PATIENT.get()
