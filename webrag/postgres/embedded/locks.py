"""Advisory file locks that the kernel drops with the process; it knows nothing of Postgres.

`flock` belongs to the open file, not to the process: a child that inherits the descriptor shares
the lock, and a second descriptor of the same process competes for it.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webrag.errors import DatabaseUnavailableError

_LONGEST_PAUSE_S = 0.1


def open_lock_file(path: Path) -> int:
    """A descriptor of the file, created with mode 0600 and the owner of its folder."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if os.geteuid() == 0:
        # Root may work in an ordinary user's folder, who must be able to lock the file later.
        folder = path.parent.stat()
        os.fchown(descriptor, folder.st_uid, folder.st_gid)
    return descriptor


@contextmanager
def exclusive_lock(path: Path, *, timeout_s: float) -> Iterator[int]:
    """Hold the lock alone for the duration of the block; gives its descriptor."""
    descriptor = open_lock_file(path)
    try:
        _wait(descriptor, path, fcntl.LOCK_EX, timeout_s)
        yield descriptor
    finally:
        os.close(descriptor)


def shared_lock(path: Path, *, timeout_s: float) -> int:
    """A descriptor that holds the lock together with others until it is closed."""
    descriptor = open_lock_file(path)
    try:
        _wait(descriptor, path, fcntl.LOCK_SH, timeout_s)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def try_exclusive_lock(path: Path) -> int | None:
    """A descriptor that holds the lock alone until it is closed, None when somebody has it."""
    descriptor = open_lock_file(path)
    if _try(descriptor, path, fcntl.LOCK_EX):
        return descriptor
    os.close(descriptor)
    return None


def _wait(descriptor: int, path: Path, kind: int, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    pause_s = 0.002
    while not _try(descriptor, path, kind):
        if time.monotonic() >= deadline:
            raise DatabaseUnavailableError(
                f"Another process has held the lock {path} for more than {timeout_s:g} seconds.",
                hint="Wait for it or end it; or set WEBRAG_DATA_DIR to another folder.",
            )
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)


def _try(descriptor: int, path: Path, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
            raise
        raise DatabaseUnavailableError(
            f"The file system of {path.parent} offers no file locks ({error.strerror}).",
            hint="Set WEBRAG_DATA_DIR to a local folder, or DATABASE_URL to a server.",
        ) from error
    return True
