"""Limits for programs of others that work on what strangers made, and their end."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_MEMORY: Final = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+)", re.MULTILINE)


def under_limits(command: list[str], *, memory: int, file_bytes: int, seconds: float) -> list[str]:
    """A command, by its absolute path, with limits for it and each process it starts.

    They are set by a shell that then becomes the program: code of ours between fork and exec might
    wait for a lock that another thread held. Windows has no such limits, macOS none of memory.
    Address space and processor time are of one process, `file_bytes` of each file written.
    """
    if sys.platform == "win32":
        return command
    limits = {"c": 0, "v": memory // 1024, "f": -(-file_bytes // 512), "t": int(seconds) + 1}
    lower = "".join(f"ulimit -{name} {value} 2>/dev/null; " for name, value in limits.items())
    return ["/bin/sh", "-c", f'{lower}exec "$@"', "sh", *command]


def end_group(leader: subprocess.Popen[bytes]) -> None:
    """Kill a process and those it started; it was made the leader of a group of its own."""
    if sys.platform == "win32":
        leader.kill()
        return
    with suppress(ProcessLookupError, PermissionError):  # all of them have ended
        os.killpg(leader.pid, signal.SIGKILL)


def end_process(process: int) -> None:
    """Kill one process, if it has not ended meanwhile."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)


def memory_of_group(process: int) -> dict[int, int]:
    """Bytes that each process of a group, not the caller's, holds of its own or shares with others.

    Files that are mapped, such as the program itself, do not count. Linux tells it of every
    process, whoever may look into it; elsewhere this is empty.
    """
    held: dict[int, int] = {}
    if sys.platform != "linux":
        return held
    with suppress(ProcessLookupError):
        group = os.getpgid(process)
        for member in [int(name) for name in os.listdir("/proc") if name.isdigit()]:  # noqa: PTH208
            with suppress(OSError):  # it has ended since it was listed
                if os.getpgid(member) == group != os.getpgrp():
                    told = Path(f"/proc/{member}/status").read_text(encoding="latin-1")
                    held[member] = 1024 * sum(map(int, _MEMORY.findall(told)))
    return held
