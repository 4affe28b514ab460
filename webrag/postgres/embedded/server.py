"""A Postgres server of WebRAG's own, shared by all processes that use its folder.

It starts, finds and gives up the server; it runs no SQL and knows no tables.

Each client holds a shared file lock. A detached watcher waits until nobody holds it, however the
last client ended, and stops the server. There are no pid lists, exit hooks or signal handlers.
A process that forks without exec shares its lease with the child.
"""

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webrag.errors import DatabaseUnavailableError
from webrag.postgres.embedded.cluster import PostgresCluster

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
    descriptor = _held(path, fcntl.LOCK_EX, timeout_s)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _held(path: Path, kind: int, timeout_s: float) -> int:
    """A descriptor that holds the lock, alone or with others, until it is closed."""
    descriptor = open_lock_file(path)
    try:
        _wait(descriptor, path, kind, timeout_s)
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


class EmbeddedPostgres:
    """One client of the server in `<data_dir>/postgres`; safe to use from several threads.

    `ensure` starts the server or joins the running one and takes a lease; `release` gives the
    lease up. The server stops by itself after the last lease of any process is gone. Its data,
    locks, log and usually its socket lie in `folder`.
    """

    def __init__(self, data_dir: Path, *, lock_timeout_s: float = 180.0) -> None:
        self._data_dir = Path(data_dir).expanduser().absolute()
        self.folder = self._data_dir / "postgres"
        self._server = PostgresCluster(self.folder)
        self._lock_timeout_s = lock_timeout_s
        self._mutex = threading.Lock()
        self._lease: int | None = None

    @property
    def conninfo(self) -> str:
        """The connection string for libpq, independent of PG* environment variables."""
        return self._server.conninfo

    def ensure(self, *, ask: bool = True) -> bool:
        """Make sure that the server answers and that this client holds a lease of it.

        Blocks: a few milliseconds when the server runs, half a second to create one, longer for
        crash recovery. Another process that does the same is waited for. True when this call
        started it. Without `ask` a server that this client has a lease of is taken to answer: who
        connects next learns it for less.
        """
        with self._mutex:
            server = self._server
            if self._holds_lease() and (server.answers() if ask else server.is_private):
                return False
            try:
                return self._join_or_start()
            except NotADirectoryError as error:
                raise DatabaseUnavailableError(
                    f"The data folder {self._data_dir} is not a directory.",
                    hint="Set WEBRAG_DATA_DIR to another folder.",
                ) from error
            except OSError as error:
                linked = error.errno == errno.ELOOP
                reason = "a symbolic link is in the way" if linked else error.strerror
                raise DatabaseUnavailableError(
                    f"The data folder {self.folder} cannot be used: {reason} ({error.filename}).",
                    hint="Set WEBRAG_DATA_DIR to a folder that this user can write.",
                ) from error

    def release(self) -> None:
        """Give the lease up; does nothing without one."""
        with self._mutex:
            if self._lease is None:
                return
            if self._holds_lease():
                self._ensure_watcher()
            self._drop_lease()

    def _join_or_start(self) -> bool:
        self._prepare_folder()
        with exclusive_lock(self.folder / "lock", timeout_s=self._lock_timeout_s) as lock:
            if not self._holds_lease():
                self._drop_lease()
                clients = self.folder / "clients"
                self._lease = _held(clients, fcntl.LOCK_SH, self._lock_timeout_s)
            try:
                # Before the server, so that a client killed in the middle leaves none behind.
                self._ensure_watcher()
                started = not self._server.answers()
                if started:
                    self._server.start(lock)
            except BaseException:
                self._drop_lease()
                raise
            return started

    def _prepare_folder(self) -> None:
        if "\n" in str(self.folder):
            # The server's pid file, one fact a line, holds it.
            raise DatabaseUnavailableError(
                f"The data folder {str(self._data_dir)!r} has a line break in its path.",
                hint="Set WEBRAG_DATA_DIR to a folder without one.",
            )
        for folder in (self._data_dir, self.folder):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except FileExistsError as error:
                raise NotADirectoryError(*error.args, str(folder)) from error
        if self.folder.stat().st_mode & 0o077:
            self.folder.chmod(0o700)

    def _holds_lease(self) -> bool:
        if self._lease is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._lease), (self.folder / "clients").stat())
        except FileNotFoundError:
            return False

    def _drop_lease(self) -> None:
        if self._lease is not None:
            os.close(self._lease)
            self._lease = None

    def _ensure_watcher(self) -> None:
        held = try_exclusive_lock(self.folder / "watcher")
        if held is None:
            return
        try:
            # The watcher inherits the locked file, so there is never a moment without either.
            subprocess.run(  # noqa: S603 - fixed programs, no shell
                [
                    sys.executable,
                    "-I",
                    "-S",
                    str(Path(__file__).with_name("watcher.py")),
                    str(self.folder),
                    str(held),
                ],
                pass_fds=(held,),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise DatabaseUnavailableError(
                f"The process that stops the embedded PostgreSQL could not be started: {error}.",
                hint="Set DATABASE_URL to a server.",
            ) from error
        finally:
            os.close(held)
