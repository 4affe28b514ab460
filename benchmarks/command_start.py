"""Processor time and wall time of commands that do little, beside a bare Python and `psql`.

    python benchmarks/command_start.py [RUNS]

Everything runs in turn in one run, on the corpus that `webrag demo` stores in a temporary folder;
the medians and their ratio to `python -c pass` are printed. Compiled modules are kept, as in an
installation: unset PYTHONDONTWRITEBYTECODE.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from webrag.postgres.embedded.server import EmbeddedPostgres
from webrag.settings import load_settings


def spent(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Processor and wall seconds of one process and its children."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, capture_output=True, check=False)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def commands(folder: Path) -> dict[str, list[str]]:
    webrag = [sys.executable, "-m", "webrag"]
    place = ["--data-dir", str(folder), "--collection", "webrag_demo"]
    found = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "--help": [*webrag, "--help"],
        "wrong path": [*webrag, "answer", "./manual.html", "question", *place],
        "status": [*webrag, "status", *place],
        "search": [*webrag, "search", "How is the embedded database started?", "-q", *place],
    }
    psql = shutil.which("psql")
    if psql is not None:
        url = EmbeddedPostgres(folder).conninfo
        found["psql -c 'select 1'"] = [psql, url, "-c", "select 1"]
    return found


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        server = EmbeddedPostgres(load_settings(data_dir=folder).data_dir)
        server.ensure()  # a running server is reused, as beside any other client
        demo = [sys.executable, "-m", "webrag", "demo", "-q", "--data-dir", name]
        subprocess.run(demo, env=environment, capture_output=True, check=True)
        taken: dict[str, list[tuple[float, float]]] = {}
        chosen = commands(folder)
        for _ in range(runs + 1):
            for label, command in chosen.items():
                taken.setdefault(label, []).append(spent(command, environment))
        server.release()
    bare = statistics.median(cpu for cpu, _ in taken["python -c pass"][1:])
    print(f"{'command':22}{'processor s':>12}{'wall s':>9}{'x bare':>8}")
    for label, times in taken.items():
        cpu = statistics.median(each for each, _ in times[1:])
        wall = statistics.median(each for _, each in times[1:])
        print(f"{label:22}{cpu:12.3f}{wall:9.3f}{cpu / bare:8.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
