import json
import re
import runpy
import secrets
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


@every_notebook
def test_a_notebook_runs_from_top_to_bottom_and_shows_what_is_stored(
    path: Path, postgres_dir: Path, tmp_path: Path
) -> None:
    fresh = tmp_path / path.name

    outputs.run(path, fresh, data_dir=postgres_dir, scratch=tmp_path)

    if path.name in outputs.SHOWN:
        how = "run `uv run --group dev python notebooks/store_outputs.py`"
        assert outputs.shown_texts(fresh) == outputs.shown_texts(path), how
        assert outputs.is_same(path, fresh), f"a picture changed: {how}"


PAGES = {
    "/": '<title>Kilns</title><main><h1>Kilns</h1><p><a href="/cones">Cones</a>'
    '<p><a href="/parts">Parts</a></main>',
    "/cones": "<title>Cones</title><main><h1>Cones</h1><p>Salt glazes mature at cone ten.</main>",
    "/parts": "<title>Parts</title><main><h1>Parts</h1><pre>damper = 4\nburner = 2</pre>"
    "<table><tr><th>Part</th><th>Price</th></tr><tr><td>Shelf</td><td>9</td></tr></table></main>",
}


FOUND, NOT_FOUND = "At which cone do salt glazes mature?", "Who won?"


@pytest.mark.parametrize(
    ("question", "read"),
    [(FOUND, "2 pages"), ("Parts", "2 pages"), ("Who won the cup of 1974?", "3 pages")],
)
def test_the_quickstart_reads_another_site_until_it_is_answered(
    static_site: Any, postgres_dir: Path, tmp_path: Path, question: str, read: str
) -> None:
    named = {"START": static_site(PAGES) + "/", "QUESTION": question}

    shown = run_with(NOTEBOOKS[0], named, data_dir=postgres_dir, scratch=tmp_path)

    assert read in shown


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("02", {"START": "/", "QUESTION": FOUND}, "none 0.0"),
        ("02", {"START": "/cones", "QUESTION": NOT_FOUND}, "/cones"),
        ("03", {"PAGE": "/parts"}, "0 characters lost"),
        ("04", {"START": "/", "QUESTIONS": {FOUND: "cone ten", NOT_FOUND: "nobody"}}, "3 pages"),
        ("04", {"START": "/", "QUESTIONS": {NOT_FOUND: "nobody"}}, "3 pages"),
        (
            "05",
            {"SITE": "/", "ASKED": [(FOUND, "cones", "cone ten"), (NOT_FOUND, "none", "nobody")]},
            "none is not among them",
        ),
        ("06", {"START": "/", "QUESTIONS": {"cone": FOUND, "cup": NOT_FOUND}}, "cup"),
        ("07", {"START": "/", "QUESTION": FOUND}, "Salt glazes mature at cone ten."),
        ("07", {"START": "/", "QUESTION": NOT_FOUND}, "The page does not say."),
        ("08", {"PAGE": "/cones", "QUESTION": NOT_FOUND}, "LocalRerank"),
    ],
)
def test_a_notebook_runs_on_another_site_with_questions_it_answers_and_others(
    static_site: Any,
    postgres_dir: Path,
    tmp_path: Path,
    name: str,
    changed: dict[str, Any],
    said: str,
) -> None:
    (path,) = (each for each in NOTEBOOKS if each.name.startswith(name))
    site = static_site(PAGES)
    addresses = {n: site + v for n, v in changed.items() if n in ("START", "PAGE", "SITE")}

    shown = run_with(path, changed | addresses, data_dir=postgres_dir, scratch=tmp_path)

    assert said in shown


def run_with(path: Path, named: dict[str, Any], *, data_dir: Path, scratch: Path) -> str:
    """Show what a changed first cell brings, in a collection that no other test fills meanwhile."""
    own = f"notebook_{secrets.token_hex(4)}"
    notebook = json.loads(path.read_text("utf-8").replace(f"notebook_{path.name[:2]}", own))
    first = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    first["source"] += [f"\n{name} = {value!r}" for name, value in named.items()]
    other, fresh = scratch / "other.ipynb", scratch / "fresh.ipynb"
    other.write_text(json.dumps(notebook), encoding="utf-8")

    outputs.run(other, fresh, data_dir=data_dir, scratch=scratch)

    return "\n".join(outputs.shown_texts(fresh))


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
