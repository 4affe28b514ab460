import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    cells = code_cells(path)

    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def test_a_notebook_names_its_page_and_hosts_in_the_first_cell(path: Path) -> None:
    first, *others = ("".join(cell["source"]) for cell in code_cells(path))

    assert "demo_site_url()" in first
    assert "ALLOW_HOSTS = [" in first
    assert not any("allow_hosts=[" in each for each in others)


def test_a_notebook_runs_from_top_to_bottom(path: Path, postgres_dir: Path, tmp_path: Path) -> None:
    command = [
        Path(sys.executable).with_name("jupyter-execute"),
        path,
        f"--output={tmp_path / path.name}",
        "--timeout=90",
    ]
    environment = os.environ | {
        "WEBRAG_DATA_DIR": str(postgres_dir),
        "IPYTHONDIR": str(tmp_path),
        "MPLCONFIGDIR": str(tmp_path),
    }
    result = subprocess.run(
        command, env=environment, cwd=path.parent, capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stderr[-3000:]
