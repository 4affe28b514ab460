"""Tells addresses from questions in what a user typed, whatever the order. Opens no file."""

import os
import re
from collections.abc import Sequence

from webrag.ingestion.formats.kinds import kind_of_name

_NAME = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}\.?"
_PRIVATE = r"localhost|(?:\d{1,3}\.){3}\d{1,3}|\[[0-9a-f:.]+\]"
_HOST = re.compile(rf"(?:(?P<private>{_PRIVATE})|{_NAME})(?::\d{{1,5}})?", re.IGNORECASE)
_PATH = re.compile(r"(?:\.{1,2}|~)/.")
_SCHEME = re.compile(r"(?:https?|file|git\+[a-z]+):", re.IGNORECASE)


def host_of(word: str, *, takes_paths: bool = True) -> str | None:
    """Give the `host` or `host:port` that a word without a scheme is; None for everything else."""
    host = _HOST.fullmatch(word)
    if host is None or kind_of_name(word) is not None or (takes_paths and os.path.lexists(word)):
        return None
    return word.lower()


def as_address(word: str, *, takes_paths: bool = True) -> str:
    """Put the scheme before a word that begins with a host; everything else stays as it is.

    Args:
        word: One word.
        takes_paths: What is a file of this machine stays a path; a server does not look for it.
    """
    host, slash, _ = word.partition("/")
    found = _HOST.fullmatch(host)
    is_name = not slash and kind_of_name(word) is not None
    is_file = is_name or (takes_paths and os.path.lexists(word))
    if found is None or is_file:
        return word
    return f"{'http' if found['private'] else 'https'}://{word}"


def split_words(words: Sequence[str], *, takes_paths: bool = True) -> tuple[tuple[str, ...], str]:
    """Split what was typed into addresses and hosts, at its beginning or end, and a question.

    A host alone, such as `python.org`, counts beside a question in quotation marks only: without
    them it may be what is asked about.
    """
    left = list(words)
    is_quoted = any(len(word.split()) > 1 for word in left)

    def names(word: str) -> bool:
        return _is_address(word, takes_host=is_quoted, takes_paths=takes_paths)

    before: list[str] = []
    after: list[str] = []
    while len(left) > 1 and names(left[0]):
        before.append(left.pop(0))
    while len(left) > 1 and names(left[-1]):
        after.insert(0, left.pop())
    named = (
        word
        if host_of(word, takes_paths=takes_paths)
        else as_address(word, takes_paths=takes_paths)
        for word in (*before, *after)
    )
    return tuple(named), " ".join(left)


def _is_address(word: str, *, takes_host: bool, takes_paths: bool) -> bool:
    if len(word.split()) != 1:
        return False
    if _SCHEME.match(word):
        return True
    is_path = takes_paths and (os.path.lexists(word) or _PATH.match(word) is not None)
    is_there = is_path or as_address(word, takes_paths=takes_paths) != word
    return is_there and (takes_host or re.search(r"[/:]", word) is not None)
