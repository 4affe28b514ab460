"""Dates as metadata writes them; it searches no pages."""

import email.utils
import re
from datetime import UTC, datetime, timedelta

_DATE = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?\Z")
_COMPACT_DATE = re.compile(r"(?:19|20)\d{6}\Z")
# A date may be ahead of this machine's by its time zone, and clocks differ.
_AHEAD = timedelta(days=2)


def parse_date(text: str) -> datetime | None:
    """Return a date or time as written in metadata, in UTC; None when it is none or implausible."""
    value = text.strip()
    partial = _DATE.match(value)
    try:
        if partial:
            year, month, day = (int(part) if part else 1 for part in partial.groups())
            moment = datetime(year, month, day, tzinfo=UTC)
        elif _COMPACT_DATE.match(value) or not value.isdecimal():
            moment = datetime.fromisoformat(value)
        else:
            return None
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
    try:
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None
    return moment if moment.year >= 1970 and moment <= datetime.now(UTC) + _AHEAD else None
