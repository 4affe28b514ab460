import json
import re
import runpy
import secrets
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
outputs = SimpleNamespace(**runpy.run_path(str(ROOT / "notebooks" / "store_outputs.py")))

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@every_notebook
def test_a_notebook_is_stored_with_outputs_where_it_is_shown_with_them(path: Path) -> None:
    cells = outputs.code_cells(path)

    assert cells
    if path.name in outputs.SHOWN:
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    else:
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@every_notebook
def test_a_notebook_names_its_page_and_hosts_in_the_first_cell(path: Path) -> None:
    first, *others = ("".join(cell["source"]) for cell in outputs.code_cells(path))

    assert "demo_site_url()" in first
    assert "ALLOW_HOSTS = [" in first
    assert not any("allow_hosts=[" in each for each in others)


@every_notebook
def test_a_notebook_keeps_its_pages_in_collections_of_its_own(path: Path) -> None:
    code = "\n".join("".join(cell["source"]) for cell in outputs.code_cells(path))

    assert set(re.findall(r"notebook_\d\d", code)) == {f"notebook_{path.name[:2]}"}


PAGES = {
    "/": '<title>Kilns</title><main><h1>Kilns</h1><p><a href="/cones">Cones</a>'
    '<p><a href="/parts">Parts</a></main>',
    "/cones": "<title>Cones</title><main><h1>Cones</h1><p>Salt glazes mature at cone ten.</main>",
    "/parts": "<title>Parts</title><main><h1>Parts</h1><pre>damper = 4\nburner = 2</pre>"
    "<table><tr><th>Part</th><th>Price</th></tr><tr><td>Shelf</td><td>9</td></tr></table></main>",
}
FOUND, NOT_FOUND = "At which cone do salt glazes mature?", "Who won?"
# What the first cell of a notebook is changed to, and what is shown then.
CHANGES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "01": [
        ({"START": "/", "QUESTION": FOUND}, "2 pages"),
        ({"START": "/", "QUESTION": "Parts"}, "2 pages"),
        ({"START": "/", "QUESTION": "Who won the cup of 1974?"}, "3 pages"),
    ],
    "02": [
        ({"START": "/", "QUESTION": FOUND}, "none 0.0"),
        ({"START": "/cones", "QUESTION": NOT_FOUND}, "/cones"),
    ],
    "03": [({"PAGE": "/parts"}, "0 characters lost")],
    "04": [
        ({"START": "/", "QUESTIONS": {FOUND: "cone ten", NOT_FOUND: "nobody"}}, "3 pages"),
        ({"START": "/", "QUESTIONS": {NOT_FOUND: "nobody"}}, "3 pages"),
    ],
    "05": [
        (
            {"SITE": "/", "ASKED": [(FOUND, "cones", "cone ten"), (NOT_FOUND, "none", "nobody")]},
            "none is not among them",
        )
    ],
    "06": [({"START": "/", "QUESTIONS": {"cone": FOUND, "cup": NOT_FOUND}}, "cup")],
    "07": [
        ({"START": "/", "QUESTION": FOUND}, "Salt glazes mature at cone ten."),
        ({"START": "/", "QUESTION": NOT_FOUND}, "The page does not say."),
    ],
    "08": [({"PAGE": "/cones", "QUESTION": NOT_FOUND}, "LocalRerank")],
}


# They open thirty of WebRAG: to start processes for each takes longer than all their cells.
KEEP_WORKERS = """
import atexit
import webrag.process_pool.pool
from tests.kept_workers import KeptWorkers
keeper = KeptWorkers()
atexit.register(keeper.end)
webrag.process_pool.pool._Worker = keeper.lend
"""


@pytest.mark.timeout(900)  # a busy machine takes ten times as long as an idle one
def test_notebooks_show_what_is_stored_and_then_run_on_another_site_whatever_they_are_asked(
    static_site: Any, postgres_dir: Path, tmp_path: Path
) -> None:
    site = static_site(PAGES)
    asked = [(path, CHANGES[path.name[:2]]) for path in NOTEBOOKS]
    runs = [
        (path, changed)
        for path, changes in asked
        for changed in ({}, *(_with_addresses(changed, site) for changed, _ in changes))
    ]

    executed = iter(run_in_turn(runs, data_dir=postgres_dir, scratch=tmp_path))

    for path, changes in asked:
        fresh = next(executed)
        if path.name in outputs.SHOWN:
            how = "run `uv run --group dev python notebooks/store_outputs.py`"
            assert outputs.shown_texts(fresh) == outputs.shown_texts(path), how
            assert outputs.is_same(path, fresh), f"a picture changed: {how}"
        for changed, said in changes:
            assert said in "\n".join(outputs.shown_texts(next(executed))), changed


def _with_addresses(changed: dict[str, Any], site: str) -> dict[str, Any]:
    return {n: site + v if n in ("START", "PAGE", "SITE") else v for n, v in changed.items()}


def run_in_turn(
    asked: list[tuple[Path, dict[str, Any]]], *, data_dir: Path, scratch: Path
) -> list[Path]:
    """Run notebooks, each with what is changed in its first cell, in one process.

    None finds a name of an earlier one; a changed one has a collection that no other test fills
    meanwhile.

    Returns:
        A notebook with outputs for each.
    """
    runs = []
    for path, change in asked:
        own = f"notebook_{secrets.token_hex(4)}" if change else f"notebook_{path.name[:2]}"
        text = path.read_text("utf-8").replace(f"notebook_{path.name[:2]}", own)
        cells = json.loads(text)["cells"]
        first = next(cell for cell in cells if cell["cell_type"] == "code")
        first["source"][:0] = ["%reset -f\n"]
        first["source"] += [f"\n{name} = {value!r}" for name, value in change.items()]
        runs.append([cell | {"id": secrets.token_hex(4)} for cell in cells])
    prepare = {"cell_type": "code", "id": "prepare", "metadata": {}, "execution_count": None}
    runs.insert(0, [prepare | {"outputs": [], "source": KEEP_WORKERS}])
    whole, fresh = scratch / "whole.ipynb", scratch / "fresh.ipynb"
    joined = json.loads(text) | {"cells": [cell for cells in runs for cell in cells]}
    whole.write_text(json.dumps(joined), encoding="utf-8")

    outputs.run(whole, fresh, data_dir=data_dir, scratch=scratch)

    executed = iter(json.loads(fresh.read_text("utf-8"))["cells"])
    parts = [scratch / f"{number}.ipynb" for number in range(len(runs))]
    for part, cells in zip(parts, runs, strict=True):
        part.write_text(json.dumps({"cells": list(islice(executed, len(cells)))}), "utf-8")
    return parts[1:]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("at http://127.0.0.1:8080/a, 3 ms", "at http://127.0.0.1:912/a, 1,204.5 ms", True),
        ("fetched 2026-01-02", "fetched 2027-11-30", True),
        ("confidence 0.94", "confidence 0.93", False),
        ("11 pages", "12 pages", False),
        ("characters 331 to 654", "characters 331 to 655", False),
    ],
)
def test_only_what_no_run_can_repeat_may_differ(
    tmp_path: Path, left: str, right: str, same: bool
) -> None:
    paths = [tmp_path / "left.ipynb", tmp_path / "right.ipynb"]
    for path, text in zip(paths, (left, right), strict=True):
        cell = {"cell_type": "code", "outputs": [{"output_type": "stream", "text": [text]}]}
        path.write_text(outputs.json.dumps({"cells": [cell]}), encoding="utf-8")

    assert outputs.is_same(*paths) is same
