"""Counts, times and ages that callers give, refused in a sentence; it reads no clock."""

import math
from datetime import datetime, timedelta
from operator import index
from typing import Any, SupportsIndex

from webrag.errors import InputError

__all__ = ["FORGOTTEN_UNASKED", "checked_count", "checked_seconds", "moment_before"]

FORGOTTEN_UNASKED = 20
"""More pages are not forgotten at once without a confirmation."""


def checked_count(name: str, value: Any, *, minimum: int) -> None:
    """Refuse what is no whole number from `minimum` up.

    Raises:
        InputError: It is something else, `True` and whole floats included.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise InputError(f"{name} is {_shown(value)}; give a whole number from {minimum} up.")
    if index(value) < minimum:
        raise InputError(f"{name} is {_shown(value)}; it must be {minimum} or more.")


def checked_seconds(name: str, value: Any) -> None:
    """Refuse what is no number of seconds from 0 up.

    Raises:
        InputError: It is negative, not a number, or no number at all.
    """
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if not usable or math.isnan(value) or value < 0:
        raise InputError(f"{name} is {_shown(value)}; give seconds from 0 up.")


def moment_before(name: str, age: Any, now: datetime) -> datetime:
    """The moment that lies `age` in the past.

    Raises:
        InputError: It is no time span, not positive, or longer than there are dates.
    """
    if not isinstance(age, timedelta):
        raise InputError(
            f"{name} is {_shown(age)}; give a time span such as datetime.timedelta(days=30)."
        )
    if age <= timedelta(0):
        raise InputError(
            f"{name} is {_shown(age)}, which would mean every page; give a positive time span."
        )
    try:
        return now - age
    except OverflowError:
        raise InputError(
            f"{name} is {_shown(age)}; that is longer ago than dates reach back."
        ) from None


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, timedelta) else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
