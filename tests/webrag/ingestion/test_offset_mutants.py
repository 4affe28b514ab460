"""Five hundred of the pages of benchmarks/offset_mutants.py, which explains them."""

import runpy
from pathlib import Path

import pytest

MUTANTS = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks/offset_mutants.py"))


@pytest.mark.parametrize("seed", range(10))
def test_every_offset_of_a_broken_page_points_at_its_text(seed: int) -> None:
    pages = MUTANTS["mutants"](50, seed, MUTANTS["FOLDERS"])
    assert [fault for page in pages for fault in MUTANTS["faults"](page)] == []


@pytest.mark.parametrize(
    "page",
    [
        "<h1>Title<main><p>All of the text is in the heading.</p></main>",
        "<h1><article><p>All of the text is in the heading.</p></article></h1>",
        "<h1>A<div role=main><table><tr><td>All of the text is in the heading.</table></div>",
    ],
)
def test_heading_around_the_main_content_does_not_stop_the_page(page: str) -> None:
    assert MUTANTS["faults"](page) == []
