"""Counts the pages that are requested on behalf of one caller; sets no limits itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from webrag.errors import FetchError
from webrag.ingestion.models import FetchedPage, NotModified


class PageLimitError(FetchError):
    """Catch it to tell a page that could not be had from one that its caller may not ask for."""


class PageMeter(Protocol):
    """What is told of every page that is requested while it is in use."""

    def refusal(self) -> str | None:
        """Why no further page may be requested, in a sentence; None counts one more request."""

    def received(self, size: int) -> None:
        """Count the bytes of a page, as decoded."""


_METER: ContextVar[PageMeter | None] = ContextVar("webrag_page_meter", default=None)


def current_meter() -> PageMeter | None:
    """The meter of the work under way."""
    return _METER.get()


@contextmanager
def metered(meter: PageMeter) -> Iterator[None]:
    """Count what is requested in the block, in tasks that begin in it too."""
    token = _METER.set(meter)
    try:
        yield
    finally:
        _METER.reset(token)


def check_request(url: str) -> None:
    """Count one request.

    Raises:
        PageLimitError: The caller may request no more pages for now.
    """
    meter = _METER.get()
    reason = None if meter is None else meter.refusal()
    if reason is not None:
        raise PageLimitError(reason, url=url)


def count_answer(page: FetchedPage | NotModified) -> None:
    """Count what a page source delivered."""
    meter = _METER.get()
    if meter is not None and isinstance(page, FetchedPage):
        meter.received(len(page.text.encode()) + len(page.body))
