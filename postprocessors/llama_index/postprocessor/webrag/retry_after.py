"""Reads the header by which a server says when to ask again; it loads no HTTP client."""

import email.utils
import re
from datetime import UTC, datetime
from typing import Final

_SECONDS: Final = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)


def retry_after_s(value: str | None) -> float | None:
    """Seconds to wait, from either form of `Retry-After`; None where there is nothing readable."""
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        when = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    moment = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
