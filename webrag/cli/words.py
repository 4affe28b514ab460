"""Tells addresses from questions in what a user typed, whatever the order. Opens no file."""

import os
import re
from collections.abc import Sequence
from typing import Any

import click

from webrag.ingestion.formats.kinds import kind_of_name

_NAME = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}\.?"
_PRIVATE = r"localhost|(?:\d{1,3}\.){3}\d{1,3}|\[[0-9a-f:.]+\]"
_HOST = re.compile(rf"(?:(?P<private>{_PRIVATE})|{_NAME})(?::\d{{1,5}})?", re.IGNORECASE)
_SCHEME = re.compile(r"(?:https?|file|git\+[a-z]+):", re.IGNORECASE)


def host_of(word: str) -> str | None:
    """Give the `host` or `host:port` that a word without a scheme is; None for everything else."""
    host = _HOST.fullmatch(word)
    if host is None or kind_of_name(word) is not None or os.path.lexists(word):
        return None
    return word.lower()


def as_address(word: str) -> str:
    """Put the scheme before a word that begins with a host; everything else stays as it is."""
    host, slash, _ = word.partition("/")
    found = _HOST.fullmatch(host)
    if found is None or os.path.lexists(word) or not (slash or host_of(word)):
        return word
    return f"{'http' if found['private'] else 'https'}://{word}"


def split_words(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Split what was typed into addresses and hosts, at its beginning or end, and a question.

    A host alone, such as `python.org`, counts beside a question in quotation marks only: without
    them it may be what is asked about.
    """
    left = list(words)
    is_quoted = any(len(word.split()) > 1 for word in left)
    before: list[str] = []
    after: list[str] = []
    while len(left) > 1 and _is_address(left[0], takes_host=is_quoted):
        before.append(left.pop(0))
    while len(left) > 1 and _is_address(left[-1], takes_host=is_quoted):
        after.insert(0, left.pop())
    named = (word if host_of(word) else as_address(word) for word in (*before, *after))
    return tuple(named), " ".join(left)


def split_named(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Split what was typed where an address has to be among it.

    Raises:
        click.UsageError: There is none, or nothing is asked.
    """
    addresses, question = split_words(words)
    if addresses:
        return tuple(map(as_address, addresses)), question
    for word, rest in ((words[0], words[1:]), (words[-1], words[:-1])):
        is_named = len(words) == 2 or host_of(word) or "/" in word or os.path.lexists(word)
        if rest and is_named and len(word.split()) == 1:
            return (as_address(word),), " ".join(rest)
    raise click.UsageError(
        "There is no address among these words. What is stored is asked with `webrag ask` and"
        " `webrag search`, without one."
    )


def _is_address(word: str, *, takes_host: bool) -> bool:
    if len(word.split()) != 1:
        return False
    if _SCHEME.match(word):
        return True
    is_there = as_address(word) != word or os.path.lexists(word)
    return is_there and (takes_host or re.search(r"[/:]", word) is not None)


def sites_and_pages(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split what is named among stored pages: a host alone, as `status` prints it, is a site."""
    hosts = tuple(filter(None, map(host_of, words)))
    return hosts, tuple(stored_address(word) for word in words if host_of(word) is None)


def stored_address(word: str) -> str:
    """Give the address under which a page or file is stored; InputError for anything else."""
    from webrag.ingestion.files.naming import named_address

    return named_address(as_address(word))


def typed_addresses(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
    """Give the addresses that an argument or option names; hosts without a scheme get one."""
    if isinstance(value, tuple):
        return tuple(map(as_address, value))
    return value and as_address(value)
