"""Lets a page source tell its caller of notes, bytes and pages, and a caller limit or yield them.

All of it travels in context variables, so that concurrent callers do not hear each other.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

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


class _Aside(Generic[T]):
    def __init__(self, name: str) -> None:
        self._listener: ContextVar[Callable[[T], None] | None] = ContextVar(name, default=None)

    def heard_by(self, listener: Callable[[T], None]) -> AbstractContextManager[None]:
        return _within(self._listener, listener)

    def tell(self, value: T) -> None:
        listener = self._listener.get()
        if listener is not None:
            listener(value)


_NOTES: _Aside[str] = _Aside("notes")
_BYTES: _Aside[int] = _Aside("bytes")
_REFUSALS: _Aside[None] = _Aside("refusals")

listening, note = _NOTES.heard_by, _NOTES.tell
"""Receive in a block and its tasks, and send, sentences for the caller of a page source."""

metering, received = _BYTES.heard_by, _BYTES.tell
"""The same for how many bytes are read from the network, as sent."""

rate_limited = partial(_REFUSALS.tell, None)
"""Tell the caller that a service refused a request as one too many."""


def watching_rate_limits(watcher: Callable[[], None]) -> AbstractContextManager[None]:
    """Learn of each request that a service refuses as one too many in the block and its tasks."""
    return _REFUSALS.heard_by(lambda _: watcher())


class Relay:
    """Tells everyone who waits for one piece of work all that was told during it.

    The work runs inside `overhearing`, each who waits inside `hearing`; whoever comes late is told
    first what was told before.
    """

    def __init__(self) -> None:
        self._told: list[tuple[_Aside[Any], Any]] = []
        self._hearers: dict[object, Context] = {}

    @contextmanager
    def overhearing(self) -> Iterator[None]:
        """Receive everything told inside the block and in tasks started in it."""
        with ExitStack() as stack:
            for aside in (_NOTES, _BYTES, _REFUSALS):
                stack.enter_context(aside.heard_by(partial(self._pass_on, aside)))
            yield

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Pass it on, until the block is left, to the listeners that are set around the block."""
        for aside, value in self._told:
            aside.tell(value)
        hearer = object()
        self._hearers[hearer] = copy_context()
        try:
            yield
        finally:
            del self._hearers[hearer]

    def _pass_on(self, aside: _Aside[Any], value: Any) -> None:
        self._told.append((aside, value))
        for hearer in self._hearers.values():
            hearer.run(aside.tell, value)


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
