"""Counts, times, ages and texts that callers give, refused in a sentence."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import index
from typing import Any, SupportsIndex

from webrag.errors import InputError

LEAST_MAX_TOKENS = 300
"""Less does not hold a quotation beside where it stands."""

FORGOTTEN_UNASKED = 20
"""More pages are not forgotten at once without a confirmation."""

LEAST_READ_TOKENS = 200
"""Fewer tokens of a page are not worth a call."""

USUAL_READ_TOKENS = 4_000
"""Of a page, where a caller names no length."""

MAX_WORDINGS = 5
"""Other wordings of a question that count; each costs a search and a ranking."""

MAX_WORDING_CHARS = 500

MAX_PARTS = 4
"""Separate questions that one question may hold; each costs a search and a ranking."""

_SHOWN_CHARS = 60


def checked_count(name: str, value: Any, *, minimum: int) -> None:
    """Refuse what is no whole number from `minimum` up."""
    is_whole = isinstance(value, SupportsIndex) and not isinstance(value, bool)
    if not is_whole or index(value) < minimum:
        given = shown_value(value)
        raise InputError(f"{name} is {given}; it must be a whole number from {minimum}.")


def checked_seconds(name: str, value: Any) -> None:
    """Refuse what is no number of seconds from 0 up."""
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if not usable or math.isnan(value) or value < 0:
        raise InputError(f"{name} is {shown_value(value)}; give seconds from 0 up.")


def moment_before(name: str, age: Any, now: datetime) -> datetime:
    """The moment that lies `age` in the past."""
    if not isinstance(age, timedelta):
        raise InputError(
            f"{name} is {shown_value(age)}; give a time span such as datetime.timedelta(days=30)."
        )
    if age <= timedelta(0):
        raise InputError(
            f"{name} is {shown_value(age)}, which would mean every page; give a positive time span."
        )
    try:
        return now - age
    except OverflowError:
        raise InputError(
            f"{name} is {shown_value(age)}; that is longer ago than dates reach back."
        ) from None


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a word that is none of those allowed."""
    if value not in allowed:
        words = ", ".join(allowed)
        raise InputError(f"{name} is {shown_value(value)}; it must be one of {words}.")


def check_text(subject: str, value: object) -> str:
    """Refuse what is no text, and characters that neither a table nor an answer can hold."""
    if not isinstance(value, str):
        raise InputError(f"{subject} is of type {type(value).__name__}; it must be text.")
    if "\x00" in value:
        raise InputError(f"{subject} holds a NUL character, which no text may contain.")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise InputError(f"{subject} holds half of a surrogate pair, which is no character.")
    return value


def checked_wordings(question: str, wordings: str | Sequence[str] | None) -> tuple[str, ...]:
    """Other wordings of a question, without empty ones and repetitions; a text alone is one."""
    return _distinct_texts("wording", wordings, at_most=MAX_WORDINGS, beside=question)


def checked_parts(question: str, parts: str | Sequence[str] | None) -> tuple[str, ...]:
    """The separate questions that a question holds; none where it is to be split by WebRAG."""
    kept = _distinct_texts("part", parts, at_most=MAX_PARTS, beside=question)
    if len(kept) == 1:
        raise InputError(f"One part was given; give 2 to {MAX_PARTS}, or none to have it split.")
    return kept


def _distinct_texts(
    name: str, given: str | Sequence[str] | None, *, at_most: int, beside: str
) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else given or ()
    if not isinstance(texts, Sequence):
        raise InputError(f"{name}s is of type {type(given).__name__}; give a list of texts.")
    distinct = {_folded(beside): ""}
    for position, each in enumerate(texts, start=1):
        text = check_text(f"{name.capitalize()} {position}", each).strip()
        if len(text) > MAX_WORDING_CHARS:
            raise InputError(
                f"{name.capitalize()} {position} has {len(text):,} characters; at most"
                f" {MAX_WORDING_CHARS} are allowed."
            )
        if any(char.isprintable() and not char.isspace() for char in text):
            distinct.setdefault(_folded(text), text)
        if len(distinct) > at_most + 1:
            raise InputError(
                f"More than {at_most} different {name}s were given; at most {at_most} are allowed."
            )
    return tuple(distinct.values())[1:]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" ?.!")


def shown_value(value: object) -> str:
    """A value for a message, cut; numbers of thousands of digits and endless nesting are named."""
    try:
        text = str(value) if isinstance(value, timedelta) else repr(value)
    except (RecursionError, ValueError):
        return f"too large a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "\u2026"


def shown_moment(moment: datetime) -> str:
    """A moment as messages and quotations name it, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def checked_moment(moment: datetime) -> datetime:
    """A moment that pages can be asked for as of; UTC where it names no time zone."""
    if not isinstance(moment, datetime):
        raise InputError(f"as_of is of type {type(moment).__name__}; it must be a datetime.")
    given = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if given > datetime.now(UTC):
        raise InputError(
            f"{shown_moment(given)} is still to come; leave as_of out for what is stored now."
        )
    return given
