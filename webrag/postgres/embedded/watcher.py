"""Stops an embedded Postgres when its last client is gone; a program, run detached, never imported.

It does not start or restart anything. It uses the standard library alone, because it runs with
`python -I -S`, and it keeps no descriptor but its locks.

Arguments: the server's folder, the descriptor that holds the folder's watcher lock.
"""

import contextlib
import fcntl
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

# A client killed while it started the server leaves one that comes up a little later.
_LATE_SERVER_ROUNDS = 15
_LATE_SERVER_PAUSE_S = 0.2
_LONGEST_STOP_S = 60.0


def _postmaster(pid_file: Path) -> int | None:
    """Process id of a server that listens; a pid alone may belong to a stranger by now."""
    try:
        lines = pid_file.read_text().splitlines()
        pid, port, folder = int(lines[0]), lines[3], lines[4]
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(f"{folder}/.s.PGSQL.{port}")
            return pid if _listener(probe) in (None, pid) else None
    except (OSError, ValueError, IndexError):
        return None


def _listener(probe: socket.socket) -> int | None:
    """Ask the kernel who listens: a pid file of a dead server may name a stranger."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", credentials)[0]
    return pid or None


def _stop(pid: int, pid_file: Path) -> None:
    try:
        os.kill(pid, signal.SIGINT)
    except OSError:
        return
    end = time.monotonic() + _LONGEST_STOP_S
    while _recorded_pid(pid_file) == pid and time.monotonic() < end:
        time.sleep(0.02)


def _recorded_pid(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return None


def _watch(folder: Path, watcher_lock: int) -> None:
    pid_file = folder / "cluster" / "postmaster.pid"
    rounds_without_server = 0
    while True:
        with (folder / "clients").open() as clients:
            fcntl.flock(clients, fcntl.LOCK_EX)
        # The order lock, clients is that of the clients: no deadlock.
        with (folder / "lock").open() as lock, (folder / "clients").open() as clients:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                fcntl.flock(clients, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                rounds_without_server = 0
                continue
            pid = _postmaster(pid_file)
            if pid is not None:
                _stop(pid, pid_file)
            if pid is not None or rounds_without_server >= _LATE_SERVER_ROUNDS:
                # Given up before the other locks, so that the next client finds it free.
                os.close(watcher_lock)
                return
        rounds_without_server += 1
        time.sleep(_LATE_SERVER_PAUSE_S)


def _main() -> None:
    folder, watcher_lock = Path(sys.argv[1]), int(sys.argv[2])
    if os.fork():
        os._exit(0)  # the client waits for this one; the child belongs to nobody
    # A server whose folder was removed stops by itself.
    with contextlib.suppress(FileNotFoundError):
        _watch(folder, watcher_lock)
    os._exit(0)


if __name__ == "__main__":
    _main()
