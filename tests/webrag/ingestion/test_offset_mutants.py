import pytest

from .offset_mutants import FOLDERS, faults, mutants


@pytest.mark.parametrize("seed", range(5))
def test_every_offset_of_a_broken_page_points_at_its_text(seed: int) -> None:
    pages = mutants(50, seed, FOLDERS)
    assert [fault for page in pages for fault in faults(page)] == []


@pytest.mark.parametrize(
    "page",
    [
        "<h1>Title<main><p>All of the text is in the heading.</p></main>",
        "<h1><article><p>All of the text is in the heading.</p></article></h1>",
        "<h1>A<div role=main><table><tr><td>All of the text is in the heading.</table></div>",
    ],
)
def test_heading_around_the_main_content_does_not_stop_the_page(page: str) -> None:
    assert faults(page) == []
