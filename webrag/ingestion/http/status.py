"""What a failing HTTP status and its Retry-After header mean; it reads no bodies."""

import email.utils
import re
from datetime import UTC, datetime

from webrag.errors import FetchError, PageGoneError

_GONE = frozenset({404, 410})
_CLOSED = frozenset({401, 403, 407, 451})
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)


def status_failure(url: str, status: int) -> FetchError:
    """The error that a status other than 2xx stands for."""
    if status in _GONE:
        return PageGoneError(
            f"The page {url} does not exist (HTTP {status}).", url=url, status=status
        )
    if status in _CLOSED:
        return FetchError(
            f"The page {url} is not open to everyone (HTTP {status}).",
            url=url,
            status=status,
            hint="The site may want a login, or may turn automatic readers away.",
        )
    return FetchError(f"The page {url} answered HTTP {status}.", url=url, status=status)


def retry_after_s(value: str | None) -> float | None:
    """Seconds to wait, from either form of the header; None when there is nothing readable."""
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        when = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    moment = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
