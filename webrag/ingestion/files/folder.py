"""The files that a user names or that lie in a named folder."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from webrag.argument_checks import shown_value
from webrag.errors import InputError, RefusedAddressError
from webrag.ingestion.addresses import file_path, file_url, has_scheme, is_file, page_address
from webrag.ingestion.files.source import FileAccess, opened_file, opened_folder
from webrag.ingestion.formats.kinds import why_left_out
from webrag.ingestion.globs import IgnoreLine, ignore_lines, is_ignored, lines_below

_MAX_FILES = 20_000
_MAX_DEPTH = 40
_NOT_READ = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
_IGNORE_BYTES = 100_000
# Of the lines that count for one name, some 700: of the usual ones as many take 3 s for 20,000
# files, of those made to take long 60 s.
_IGNORE_SIZE = 16_000


class FilesBelow(NamedTuple):
    """Files below a folder, numbers of others by reason, and the reason when there is none."""

    urls: tuple[str, ...]
    left_out: Mapping[str, int] = MappingProxyType({})
    why_none: str = ""


def list_files(
    root: Path, *, max_bytes: int, where: str = "there", address: Callable[[Path], str] = file_url
) -> FilesBelow:
    """List a folder, symbolic links resolved, with all below it, in order.

    Left out are hidden files and folders, what `.gitignore` names (those above the folder within
    its repository count as well), symbolic links, what is installed or generated, files of kinds
    that are not read, and empty ones and those of more than `max_bytes`.
    """
    left_out: Counter[str] = Counter()
    files = list(_walk(root, _rules_above(root, left_out), max_bytes, left_out, 0))
    if len(files) > _MAX_FILES:
        left_out["more than are read of one folder"] += len(files) - _MAX_FILES
    counted = ", ".join(f"{count} {why}" for why, count in left_out.items())
    why_none = f"There is no file to read {where} ({counted or 'it is empty'})."
    return FilesBelow(tuple(map(address, files[:_MAX_FILES])), dict(left_out), why_none)


def _walk(
    folder: Path,
    rules: list[IgnoreLine],
    max_bytes: int,
    left_out: Counter[str],
    depth: int,
    above: int | None = None,
) -> Iterator[Path]:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(opened_folder(folder, above))
            entries = sorted(
                os.scandir(folder if opened is None else opened), key=lambda entry: entry.name
            )
        except OSError:
            left_out["folders that cannot be opened"] += 1
            return
        rules = rules + _rules_of(folder, opened, rules, left_out)
        for entry in entries:
            path = folder / entry.name
            if entry.is_symlink():
                left_out["symbolic links"] += 1
            elif entry.is_dir(follow_symlinks=False):
                reason = _why_not_entered(entry.name, rules, depth)
                if reason is None:
                    below = lines_below(rules, entry.name)
                    yield from _walk(path, below, max_bytes, left_out, depth + 1, opened)
                elif reason:
                    left_out[reason] += 1
            elif reason := _why_not_read(entry, rules, max_bytes):
                left_out[reason] += 1
            else:
                yield path


def _why_not_entered(name: str, rules: list[IgnoreLine], depth: int) -> str | None:
    """Say why a folder is left out, "" for one not worth telling of; None to enter it."""
    if name == ".git":
        return ""
    if name.startswith("."):
        return "hidden"
    if name in _NOT_READ:
        return "folders of installed packages"
    if depth >= _MAX_DEPTH:
        return "nested too deeply"
    return "named by .gitignore" if is_ignored(name, rules, is_folder=True) else None


def _why_not_read(entry: "os.DirEntry[str]", rules: list[IgnoreLine], max_bytes: int) -> str | None:
    if entry.name == ".gitignore":
        return "hidden"
    if is_ignored(entry.name, rules, is_folder=False):
        return "named by .gitignore"
    if reason := why_left_out(entry.name):
        return reason
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:
        return "files that cannot be opened"
    if not entry.is_file(follow_symlinks=False):
        return "of a kind that is not read"
    too_large = f"of more than {max_bytes:,} bytes"
    return too_large if size > max_bytes else None if size else "empty"


def _rules_above(root: Path, left_out: Counter[str]) -> list[IgnoreLine]:
    above: list[IgnoreLine] = []
    for folder in (root, *root.parents):
        if folder != root:
            with suppress(OSError), opened_folder(folder) as opened:
                lines = _rules_of(folder, opened, above, left_out)
                for name in root.relative_to(folder).parts:
                    lines = lines_below(lines, name)
                above = lines + above  # the nearer ones have the last word
        if (folder / ".git").exists():
            return above
    return []


def _rules_of(
    folder: Path, opened: int | None, others: list[IgnoreLine], left_out: Counter[str]
) -> list[IgnoreLine]:
    try:
        with open(opened_file(folder / ".gitignore", opened), "rb") as file:  # noqa: PTH123
            text = file.read(_IGNORE_BYTES + 1)
    except OSError:
        return []
    room = _IGNORE_SIZE - sum(line.glob.size for line in others)
    lines: list[IgnoreLine] = []
    for line in ignore_lines(text[: text.rfind(b"\n") + 1] if len(text) > _IGNORE_BYTES else text):
        room -= line.glob.size
        if room < 0:
            break
        lines.append(line)
    if room < 0 or len(text) > _IGNORE_BYTES:
        left_out["`.gitignore` not read to its end"] += 1
    return lines


_PATH = re.compile(r"(?:[~/\\]|\.{1,2}(?:[/\\]|\Z)|[A-Za-z]:[\\/])")


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
    if not isinstance(given, str | Path):
        raise InputError(f"A page is named by text or a path, not by {shown_value(given)}.")
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
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    several: Any = [given] if is_one else given
    if takes_names:
        return tuple(dict.fromkeys(map(named_address, several)))
    texts = (file_url(each) if isinstance(each, Path) else each for each in several)
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
                found = list_files(folder, max_bytes=max_bytes, where=f"below {folder}")
                named = named.with_folder(address, found, f"{file_url(folder).rstrip('/')}/")
    return named
