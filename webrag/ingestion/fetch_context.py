"""Lets a page source tell its caller of notes, bytes and pages, and a caller limit or yield them.

All of it travels in context variables, so that concurrent callers do not hear each other.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeVar

from webrag.errors import FetchError
from webrag.ingestion.models import FetchedPage, NotModified

T = TypeVar("T")


@contextmanager
def _within(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


_LISTENERS: ContextVar[Mapping[str, Callable[[Any], None]] | None] = ContextVar(
    "listeners", default=None
)


def _heard(told: str, listener: Callable[[Any], None]) -> AbstractContextManager[None]:
    return _within(_LISTENERS, {**(_LISTENERS.get() or {}), told: listener})


def _tell(told: str, value: Any = None) -> None:
    if listener := (_LISTENERS.get() or {}).get(told):
        listener(value)


listening, note = partial(_heard, "notes"), partial(_tell, "notes")
"""Receive in a block and its tasks, and send, sentences for the caller of a page source."""

metering, received = partial(_heard, "bytes"), partial(_tell, "bytes")
"""The same for how many bytes are read from the network, as sent."""

rate_limited = partial(_tell, "refusals")
"""Tell the caller that a service refused a request as one too many."""


def watching_rate_limits(watcher: Callable[[], None]) -> AbstractContextManager[None]:
    """Learn of each request that a service refuses as one too many in the block and its tasks."""
    return _heard("refusals", lambda _: watcher())


class PageLimitError(FetchError):
    """Catch it to tell a page that could not be had from one that its caller may not ask for."""


class PageMeter(Protocol):
    """Is told of every page that is requested while it is in use."""

    def refusal(self) -> str | None:
        """Say why no further page may be requested; None counts one more request."""

    def received(self, size: int) -> None:
        """Count the bytes of a page, as decoded."""


_METER: ContextVar[PageMeter | None] = ContextVar("webrag_page_meter", default=None)


current_meter = _METER.get
"""The meter of the work under way, if there is one."""


def metered(meter: PageMeter) -> AbstractContextManager[None]:
    """Count what is requested in the block, in tasks that begin in it too."""
    return _within(_METER, meter)


def check_request(url: str) -> None:
    """Count one request, or raise PageLimitError when the caller may make no more for now."""
    meter = _METER.get()
    reason = None if meter is None else meter.refusal()
    if reason is not None:
        raise PageLimitError(reason, url=url)


def count_answer(page: FetchedPage | NotModified) -> None:
    """Count what a page source delivered."""
    meter = _METER.get()
    if meter is not None and isinstance(page, FetchedPage):
        meter.received(len(page.text.encode()) + len(page.body))


_PATIENT: ContextVar[bool] = ContextVar("webrag_patient", default=False)


def patiently() -> AbstractContextManager[None]:
    """Requests made in this block let those of other callers come first."""
    return _within(_PATIENT, True)


is_patient = _PATIENT.get
"""Whether the caller lets others come first."""


_TOGETHER: ContextVar[bool] = ContextVar("webrag_together", default=False)


def together() -> AbstractContextManager[None]:
    """A page source may answer what is asked for at about the same time in this block in one go."""
    return _within(_TOGETHER, True)


is_together = _TOGETHER.get
"""True where the caller asks for several pages and waits for all of them."""
