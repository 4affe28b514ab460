"""Run the notebooks that are shown with their outputs, and store what changed of these.

    uv run --group dev python notebooks/store_outputs.py

The others are stored without outputs. Tests run all of them and compare what comes out with what
is stored; times, ports, dates and what is derived from a port may differ.
"""

import base64
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

FOLDER = Path(__file__).parent
SHOWN = ("01_quickstart.ipynb", "02_watch_the_loop.ipynb")
TEXTS = ("text/html", "text/plain", "text/markdown")
# What the next run prints differently: which port was free, how long it took, what day it is, and
# identities, which are made from addresses.
VOLATILE = [
    (re.compile(r"127\.0\.0\.1:\d{1,5}"), "127.0.0.1:PORT"),
    (re.compile(r"\b\d[\d,.]{0,15} ?(ms|s)\b"), r"TIME \1"),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "DAY"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
]
# Mean difference of a pixel's channels, of 255: edges of letters are drawn a little differently.
SAME_PICTURE = 2.0


def run(path: Path, output: Path, *, data_dir: Path, scratch: Path) -> None:
    """Execute a notebook in a process of its own; what it prints on failure is raised."""
    command: list[str | Path] = [
        Path(sys.executable).with_name("jupyter-execute"),
        path,
        f"--output={output}",
    ]
    environment = os.environ | {
        "WEBRAG_DATA_DIR": str(data_dir),
        "IPYTHONDIR": str(scratch),
        "MPLCONFIGDIR": str(scratch),
    }
    result = subprocess.run(
        [*command, "--timeout=90"],
        env=environment,
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise RuntimeError(f"{path.name} failed:\n{result.stderr[-3000:]}")


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def shown_texts(path: Path) -> list[str]:
    """What each cell shows as text, without what differs between runs."""
    return [_without_volatile("\n".join(_texts(cell))) for cell in code_cells(path)]


def pictures(path: Path) -> list[Image.Image]:
    """The pictures of all cells."""
    found = (
        output.get("data", {}).get("image/png")
        for cell in code_cells(path)
        for output in cell["outputs"]
    )
    data = (base64.b64decode(_joined(each)) for each in found if each)
    return [Image.open(io.BytesIO(each)).convert("RGB") for each in data]


def is_same_picture(left: Image.Image, right: Image.Image) -> bool:
    """Whether two pictures show the same, if drawn by other versions of a font."""
    if left.size != right.size:
        return False
    difference = np.asarray(left, dtype=float) - np.asarray(right, dtype=float)
    return bool(np.abs(difference).mean() < SAME_PICTURE)


def is_same(stored: Path, fresh: Path) -> bool:
    """Whether two runs of a notebook show the same, with nothing but outputs compared."""
    if shown_texts(stored) != shown_texts(fresh):
        return False
    ours, theirs = pictures(stored), pictures(fresh)
    return len(ours) == len(theirs) and all(map(is_same_picture, ours, theirs))


def _texts(cell: dict[str, Any]) -> list[str]:
    streams = "".join(_joined(each["text"]) for each in cell["outputs"] if "text" in each)
    data = [each["data"] for each in cell["outputs"] if "data" in each]
    pictured = [each for each in data if "image/png" not in each]
    return [streams, *(_joined(each[kind]) for each in pictured for kind in TEXTS if kind in each)]


def _joined(text: str | list[str]) -> str:
    return "".join(text)


def _without_volatile(text: str) -> str:
    for pattern, name in VOLATILE:
        text = pattern.sub(name, text)
    return text


def _store(stored: Path, fresh: Path) -> None:
    """The notebook with the outputs of a run, and nothing else that a run leaves in it."""
    notebook = json.loads(stored.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, executed in zip(cells, code_cells(fresh), strict=True):
        cell["outputs"] = executed["outputs"]
        cell["execution_count"] = executed["execution_count"]
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    stored.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in SHOWN:
            stored, fresh = FOLDER / name, Path(folder, name)
            run(stored, fresh, data_dir=Path(folder, "data"), scratch=Path(folder))
            if is_same(stored, fresh):
                print(f"{name}: as stored")
            else:
                _store(stored, fresh)
                print(f"{name}: stored")


if __name__ == "__main__":
    main()
