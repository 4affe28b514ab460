"""Tool arguments as clients send them: checked by type, and named in the log without secrets."""

import json
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from webrag.argument_checks import check_text, shown_value
from webrag.errors import InputError

_Choice = TypeVar("_Choice", bound=str)

_TRUE = ("true", "1", "yes")

_FALSE = ("false", "0", "no")

_SHOWN_CHARS = 60

# Words that clients try and that mean the same, though they are not spelt alike.
_SYNONYMS = (
    frozenset({"url", "urls", "source_url", "source_urls", "page", "pages", "link", "links"}),
    frozenset({"query", "question", "q", "text", "prompt"}),
    frozenset({"quote", "quotation", "text", "citation", "passage"}),
    frozenset({"citations", "quotes", "quotations", "quote", "url", "urls"}),
    frozenset({"sites", "site", "host", "hosts", "domain", "domains"}),
    frozenset({"top_k", "limit", "k", "n", "max_results"}),
)


class Arguments:
    """The arguments of one call; lenient where clients are known to be sloppy.

    Lists may arrive as JSON inside a string or as a single value, numbers and flags as strings,
    and omitted arguments as null or an empty string.

    Args:
        values: What the client sent.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def check_names(self, known: Sequence[str], *, where: str, form: str = "") -> None:
        """Refuse arguments that would be ignored.

        Args:
            known: Names there are.
            where: What takes them, for the message.
            form: A sentence that shows how they are written; nothing when the names say it.

        Raises:
            InputError: Another one is given; the message names it and those known.
        """
        unknown = [name for name in self._values if name not in known]
        if not unknown:
            return
        meant = _meant(unknown[0], known)
        guess = f" Did you mean {meant}?" if meant else ""
        raise InputError(
            f"{where} has no argument {_shown(unknown[0])}; it takes {', '.join(known)}.{guess}"
            f"{form and ' ' + form}"
        )

    def text(self, name: str) -> str:
        """A required text.

        Raises:
            InputError: It is missing or not a text.
        """
        if self._values.get(name) is None:
            raise InputError(f"{name} is missing: give it as text.")
        return self._checked_text(name)

    def optional_text(self, name: str) -> str | None:
        """A text, or None when it is omitted or blank.

        Raises:
            InputError: It is not a text.
        """
        return self._checked_text(name) if self._is_given(name) else None

    def texts(self, name: str, *, required: bool = False) -> list[str] | None:
        """A list of texts; None when it is omitted.

        Raises:
            InputError: It is missing although required, or holds something else.
        """
        if not self._is_given(name):
            if required:
                raise InputError(f"{name} is missing: give one text or a list of texts.")
            return None
        value = self._values[name]
        items = _parsed_list(value) if isinstance(value, str) else value
        if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
            raise InputError(f"{name} is {_shown(value)}; give one text or a list of texts.")
        if required and not items:
            raise InputError(f"{name} is an empty list: name at least one.")
        return [check_text(f"An entry of {name}", item) for item in items]

    def choice(self, name: str, allowed: Sequence[_Choice]) -> _Choice | None:
        """One of the allowed words, in any letter case; None when it is omitted.

        Raises:
            InputError: It is another word; the message names those allowed.
        """
        return self._chosen(name, self._values[name], allowed) if self._is_given(name) else None

    def choices(self, name: str, allowed: Sequence[_Choice]) -> list[_Choice]:
        """A list of some of the allowed words, in any letter case; empty when it is omitted.

        Raises:
            InputError: It holds another word; the message names those allowed.
        """
        return [self._chosen(name, each, allowed) for each in self._items(name)]

    def integers(self, name: str, *, minimum: int) -> list[int] | None:
        """A list of whole numbers; None when it is omitted.

        Raises:
            InputError: It holds something else, or a number below the minimum.
        """
        numbers = [self._number(name, each, minimum) for each in self._items(name)]
        return numbers if self._is_given(name) else None

    def integer(self, name: str, *, minimum: int) -> int | None:
        """A whole number; None when it is omitted.

        Raises:
            InputError: It is no whole number or below the minimum.
        """
        if not self._is_given(name):
            return None
        return self._number(name, self._values[name], minimum)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false.

        Raises:
            InputError: It is something else.
        """
        if not self._is_given(name):
            return default
        word = _word(self._values[name])
        if word not in _TRUE + _FALSE:
            raise InputError(f"{name} is {_shown(self._values[name])}; use true or false.")
        return word in _TRUE

    def identity(self, name: str) -> UUID | None:
        """An id, with or without the address it stands in; None when it is omitted.

        Raises:
            InputError: It is something else.
        """
        if not self._is_given(name):
            return None
        try:
            return UUID(_word(self._values[name]).rpartition("/")[2])
        except ValueError:
            raise InputError(
                f"{name} is {_shown(self._values[name])}; give a whole id (a UUID)."
            ) from None

    def moment(self, name: str) -> datetime | None:
        """A date, with or without a time, in UTC where it names no zone; None when it is omitted.

        Raises:
            InputError: It is something else.
        """
        given = self.optional_text(name)
        if given is None:
            return None
        try:
            moment = datetime.fromisoformat(given.strip())
        except ValueError:
            raise InputError(
                f"{name} is {_shown(given)}; give a date such as 2026-05-31 or 2026-05-31T12:00."
            ) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def objects(self, name: str, *, known: Sequence[str], at_most: int) -> "list[Arguments]":
        """A required list of objects, each as arguments of its own.

        Args:
            name: Of the argument.
            known: Names that each object may hold.
            at_most: Length of the list.

        Raises:
            InputError: It is missing, too long, or holds something else.
        """
        value = self._values.get(name)
        items = _parsed_list(value) if isinstance(value, str) else value
        if isinstance(items, Mapping):
            items = [items]
        if (
            not isinstance(items, Sequence)
            or not items
            or not all(isinstance(item, Mapping) for item in items)
        ):
            raise InputError(f"{name} must be a list of objects with {', '.join(known)}.")
        if len(items) > at_most:
            raise InputError(
                f"{name} has {len(items)} entries; one call takes at most {at_most}: check the "
                "others with further calls."
            )
        found = [Arguments(item) for item in items]
        for each in found:
            each.check_names(known, where=f"An entry of {name}")
        return found

    def _is_given(self, name: str) -> bool:
        value = self._values.get(name)
        return value is not None and not (isinstance(value, str) and not value.strip())

    def _items(self, name: str) -> list[object]:
        """What a list holds, or the one value that stands for a list."""
        if not self._is_given(name):
            return []
        value = self._values[name]
        items = _parsed_list(value) if isinstance(value, str) else value
        return list(items) if isinstance(items, list | tuple) else [items]

    def _chosen(self, name: str, value: object, allowed: Sequence[_Choice]) -> _Choice:
        word = _word(value)
        for each in allowed:
            if each == word:
                return each
        raise InputError(f"{name} is {_shown(value)}; use {_either(allowed)}.")

    def _number(self, name: str, value: object, minimum: int) -> int:
        number = _parsed_integer(value)
        if number is None or number < minimum:
            raise InputError(f"{name} is {_shown(value)}; give a whole number from {minimum} up.")
        return number

    def _checked_text(self, name: str) -> str:
        value = self._values[name]
        if not isinstance(value, str):
            raise InputError(f"{name} is {_shown(value)}; give it as text.")
        return check_text(name, value)


def _meant(name: str, known: Sequence[str]) -> str | None:
    """The argument that a wrong name stands for, as far as one can tell."""
    word = name.lower()
    alike = [each for words in _SYNONYMS if word in words for each in known if each in words]
    return next(iter(alike or get_close_matches(word, known, n=1)), None)


def _parsed_list(value: str) -> object:
    if value.lstrip().startswith(("[", "{")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return [value]
    return [value]


def _word(value: object) -> str:
    try:
        return str(value).strip().lower()
    except (RecursionError, ValueError):  # thousands of digits, or endless nesting
        return ""


def _parsed_integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    text = str(value).strip()
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 20 else None


def _shown(value: object) -> str:
    return shown_value(value, max_chars=_SHOWN_CHARS)


def _either(words: Sequence[str]) -> str:
    *most, last = (f"'{word}'" for word in words)
    return f"{', '.join(most)} or {last}"


_URL_ARGUMENTS = ("url", "source_url", "source_urls")

_SHOWN_URLS = 3

_PATH_CHARS = 80


def described(arguments: Mapping[str, Any], known: Container[str]) -> str:
    """Names of the arguments, with sizes of texts and the public part of URLs.

    Args:
        arguments: What the client sent, unchecked.
        known: Names the tool has; others are only counted, as the client chose them.
    """
    parts = [_one(name, value) for name, value in arguments.items() if name in known]
    unknown = len(arguments) - len(parts)
    return ", ".join([*parts, *([f"{unknown} unknown"] if unknown else [])]) or "no arguments"


def _one(name: str, value: object) -> str:
    if name in _URL_ARGUMENTS:
        urls = value if isinstance(value, list) else [value]
        more = f" and {len(urls) - _SHOWN_URLS} more" if len(urls) > _SHOWN_URLS else ""
        return f"{name}={' '.join(map(_masked, urls[:_SHOWN_URLS]))}{more}"
    if isinstance(value, str):
        return f"{name} ({len(value)} characters)"
    return name


def _masked(value: object) -> str:
    """Scheme, host and path: user name, password, query and fragment may hold secrets."""
    if not isinstance(value, str):
        return "(no text)"
    try:
        parts = urlsplit(value.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return "(no URL)"
    if parts.scheme.lower() not in ("http", "https") or not host or not host.isprintable():
        return "(no http URL)"
    is_plain = parts.path.isprintable() and not any(each in parts.path for each in "@\\ ")
    path = parts.path if is_plain and len(parts.path) <= _PATH_CHARS else "/..."
    query = "?..." if parts.query else ""
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}{query}"
