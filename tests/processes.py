"""Which processes this one has started."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path


def children() -> set[int]:
    """Processes this one has started and that still run."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    if tasks.exists():
        return {pid for task in tasks.iterdir() for pid in _children_of(task)}
    command = ["pgrep", "-P", str(os.getpid()), "-f", "webrag.process_pool"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {int(pid) for pid in listed.split()}


def _children_of(task: Path) -> list[int]:
    with suppress(FileNotFoundError):  # the thread has ended since it was listed
        return [int(pid) for pid in (task / "children").read_text().split()]
    return []
