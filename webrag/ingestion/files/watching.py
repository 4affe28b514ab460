"""Waits until files of folders change, and says which; it reads none."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from webrag.errors import ConfigurationError, InputError
from webrag.extras import how_to_install
from webrag.ingestion.files.folder import list_files

# An editor writes a file in several steps, a checkout many files.
_QUIET_MS: Final = 200
_LONGEST_MS: Final = 2_000
# Looked at even when nothing was heard: some network file systems tell nothing.
_LOOK_MS: Final = 5_000


class FileState(NamedTuple):
    """What a file is told apart by without being read."""

    modified_ns: int
    size: int


def require_watching() -> None:
    """Refuse what cannot work.

    Raises:
        ConfigurationError: The extra `watch` is not installed.
    """
    if find_spec("watchfiles") is None:
        raise ConfigurationError(
            "Watching files needs the package watchfiles, which is not installed.",
            hint=how_to_install("watch"),
        )


async def changed_files(
    roots: Sequence[Path], *, max_bytes: int, before: Mapping[Path, FileState]
) -> AsyncGenerator[tuple[Path, ...], None]:
    """Give files that were added, changed or removed, a batch whenever some were; without end.

    Of folders among the roots those files count that `list_files` lists; `before` is what was
    there when the files were read last.

    Raises:
        InputError: They cannot be watched.
    """
    from watchfiles import awatch

    folders = {root for root in roots if root.is_dir()}
    # A file that is written by way of another one is only seen from its folder, of which nothing
    # else matters. Beside folders, files are looked at as often as where nothing is heard.
    watched = folders or {root.parent for root in roots}
    events = awatch(
        *watched,
        watch_filter=None,
        recursive=bool(folders),
        step=_QUIET_MS,
        debounce=_LONGEST_MS,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
    )
    try:
        async with aclosing(events):
            async for _ in events:
                now = await asyncio.to_thread(states_of, roots, max_bytes=max_bytes)
                if changed := changes_between(before, now):
                    yield changed
                before = now
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0][:200]
        raise InputError(
            f"The files cannot be watched: {reason}.",
            hint="Linux limits watched folders: see the setting fs.inotify.max_user_watches.",
        ) from error


def states_of(roots: Sequence[Path], *, max_bytes: int) -> dict[Path, FileState]:
    """The files of `roots` as they are now; what is no more is absent."""
    files: dict[Path, FileState] = {}
    for root in roots:
        listed = list_files(root, max_bytes=max_bytes).files if root.is_dir() else (root,)
        for path in listed:
            with suppress(OSError):  # it went while the folder was listed
                status = path.lstat()
                files[path] = FileState(status.st_mtime_ns, status.st_size)
    return files


def changes_between(
    before: Mapping[Path, FileState], now: Mapping[Path, FileState]
) -> tuple[Path, ...]:
    """Files that were added or changed, and those that are gone, in alphabetical order."""
    differing = {path for path, state in now.items() if before.get(path) != state}
    return tuple(sorted(differing | (before.keys() - now.keys())))
