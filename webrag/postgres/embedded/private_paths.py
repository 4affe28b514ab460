"""Whether folders and files are this user's alone, so that no stranger can stand in for the server.

Nothing here follows a symbolic link in the last part of a path.
"""

import os
import stat
from collections.abc import Collection
from pathlib import Path

from webrag.errors import DatabaseUnavailableError


def why_not_private(folder: Path, owners: Collection[int]) -> str | None:
    """Why others could put something into the folder; None when they cannot.

    Args:
        folder: Looked at itself, not what a link of that name leads to.
        owners: User ids that it may belong to.
    """
    try:
        status = folder.lstat()
    except OSError as error:
        return f"it cannot be examined ({error.strerror})"
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if status.st_uid not in owners:
        return f"it belongs to user id {status.st_uid}"
    if status.st_mode & 0o077:
        return f"other users may enter it (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def open_private_log(path: Path) -> int:
    """A descriptor that appends to the file, made with mode 0600 and the owner of its folder.

    Raises:
        DatabaseUnavailableError: It is a link, or somebody else's.
        OSError: It cannot be opened.
    """
    if path.is_symlink():
        raise _refused_log(path, "it is a symbolic link")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    try:
        _take_log(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _take_log(descriptor: int, path: Path) -> None:
    folder, status = path.parent.stat(), os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise _refused_log(path, "it is no file of its own")
    if status.st_uid not in {os.geteuid(), folder.st_uid}:
        raise _refused_log(path, f"it belongs to user id {status.st_uid}")
    if os.geteuid() == 0:
        # Root may work in an ordinary user's folder, who must be able to write it later.
        os.fchown(descriptor, folder.st_uid, folder.st_gid)


def _refused_log(path: Path, reason: str) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"The log {path} of the embedded PostgreSQL is not written: {reason}.",
        hint="Remove it, or set WEBRAG_DATA_DIR to another folder.",
    )
