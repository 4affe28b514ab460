"""Takes pages, files and folders that a user names for addresses of pages; it reads no file."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from webrag.errors import InputError, RefusedAddressError
from webrag.ingestion.addresses import file_path, file_url, has_scheme, is_file, page_address
from webrag.ingestion.files.folder import list_files
from webrag.ingestion.files.source import FileAccess

_PATH = re.compile(r"(?:[~/\\]|\.{1,2}(?:[/\\]|\Z)|[A-Za-z]:[\\/])")


class FilesBelow(NamedTuple):
    """Files below a folder, numbers of others by reason, and the reason when there is none."""

    urls: tuple[str, ...]
    left_out: Mapping[str, int] = MappingProxyType({})
    why_none: str = ""


@dataclass(frozen=True)
class NamedSources:
    """Named addresses, and the files below named folders, each address once.

    Attributes:
        folders: Each with a slash at its end.
        left_out: Numbers of other files below them, by reason.
        empty: Folders without a file to read, each with the reason.
        notes: Sentences about what did not work on the way.
    """

    urls: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    empty: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def with_folder(
        self, address: str, found: FilesBelow, folder: str | None = None
    ) -> "NamedSources":
        """The same with one of `urls` taken apart, which is a `folder` of that address."""
        return replace(
            self if found.urls else self.without(address, found.why_none),
            urls=tuple(url for url in self.urls if url != address),
            files=tuple(dict.fromkeys((*self.files, *found.urls))),
            folders=(*self.folders, folder or address),
            left_out=Counter(self.left_out) + Counter(found.left_out),
        )

    def without(self, address: str, reason: str) -> "NamedSources":
        """The same with one of `urls` that cannot be had."""
        urls = tuple(url for url in self.urls if url != address)
        return replace(self, urls=urls, empty={**self.empty, address: reason})

    @property
    def every(self) -> tuple[str, ...]:
        """Each address once, in the order given."""
        return tuple(dict.fromkeys((*self.urls, *self.files)))


def named_address(given: str | Path) -> str:
    """The canonical address of a URL or a path of this machine that a user named, or InputError."""
    text = os.fspath(given)
    is_there = not has_scheme(text) and bool(text.strip()) and os.path.lexists(text)
    is_path = _PATH.match(text) or is_there
    if isinstance(given, str) and (not is_path or "\0" in text):
        try:
            return page_address(text)
        except InputError as error:
            if has_scheme(text) or not text.strip():
                raise
            raise InputError(
                f"There is no file or folder {text!r} here, and it is no URL such as"
                " https://example.com/page."
            ) from error
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise InputError(f"The path {text!r} names a user that there is not.") from error
    return file_url(Path(os.path.abspath(path)))  # noqa: PTH100 - links are resolved when read


def named_urls(
    given: str | Path | Sequence[str | Path], *, takes_names: bool = True
) -> tuple[str, ...]:
    """Give the addresses of what was named, each once; nothing is read.

    InputError where one is no address nor, with `takes_names`, a path.
    """
    several = [given] if isinstance(given, (str, Path)) else given
    if takes_names:
        return tuple(dict.fromkeys(map(named_address, several)))
    texts = (each if isinstance(each, str) else file_url(each) for each in several)
    return tuple(dict.fromkeys(map(page_address, texts)))


def check_named(given: str | Path) -> str:
    """As `named_address`, for what has to be there to be of use; InputError where it is not."""
    address = named_address(given)
    if is_file(address) and not file_path(address).exists():
        raise InputError(f"There is no file or folder {file_path(address)}.")
    return address


async def expand_named(
    addresses: Sequence[str], access: FileAccess, *, max_bytes: int
) -> NamedSources:
    """Take apart what `named_urls` gave, files in folders up to `max_bytes` each.

    What is named may be read from now on, where names are taken.
    """
    if not any(map(is_file, addresses)):
        return NamedSources(urls=tuple(addresses))
    for address in filter(is_file, addresses):
        access.name(file_path(address))
    return await asyncio.to_thread(_expanded, addresses, access, max_bytes)


def _expanded(addresses: Sequence[str], access: FileAccess, max_bytes: int) -> NamedSources:
    named = NamedSources(urls=tuple(addresses))
    for address in filter(is_file, addresses):
        # What is no folder that may be read says itself what it is.
        with suppress(RefusedAddressError):
            folder = access.resolve(address)
            if folder.is_dir():
                listing = list_files(folder, max_bytes=max_bytes)
                urls = tuple(map(file_url, listing.files))
                found = FilesBelow(urls, listing.left_out, listing.why_none(f"below {folder}"))
                named = named.with_folder(address, found, f"{file_url(folder).rstrip('/')}/")
    return named
