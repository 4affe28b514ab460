from pathlib import Path

import pytest

from webrag.evaluation.metrics import VisiblePages


def site(folder: Path) -> VisiblePages:
    (folder / "a.html").write_text("<body><p>Seen <b>words</b></p><script>unseen</script>")
    (folder / "index.html").write_text("<body>Front page")
    return VisiblePages(folder)


def test_words_across_inline_markup_are_shown(tmp_path: Path) -> None:
    assert site(tmp_path).shows("http://127.0.0.1:1/a.html", "seen words")


def test_script_text_is_not_shown(tmp_path: Path) -> None:
    assert not site(tmp_path).shows("http://127.0.0.1:1/a.html", "unseen")


def test_folder_address_means_its_index(tmp_path: Path) -> None:
    assert site(tmp_path).shows("http://127.0.0.1:1/", "front page")


def test_missing_page_shows_nothing(tmp_path: Path) -> None:
    assert not site(tmp_path).shows("http://127.0.0.1:1/b.html", "seen")


def test_empty_quote_is_never_shown(tmp_path: Path) -> None:
    assert not site(tmp_path).shows("http://127.0.0.1:1/a.html", " ... ")


@pytest.mark.parametrize(
    "quote", ["First.\n2. Then 3 more.", "one<br>two", "[A red kiln] It fires.", "It fires."]
)
def test_what_a_browser_draws_is_shown(tmp_path: Path, quote: str) -> None:
    (tmp_path / "drawn.html").write_text(
        "<ol><li>First.<li>Then 3 more.</ol><table><tr><td>one<br>two</table>"
        '<p><img alt="A red kiln" src="k.png"> It fires.'
    )

    assert VisiblePages(tmp_path).shows("http://127.0.0.1:1/drawn.html", quote)


def test_other_figures_than_the_page_has_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "drawn.html").write_text("<ol><li>First.<li>Then 3 more.</ol>")

    assert not VisiblePages(tmp_path).shows("http://127.0.0.1:1/drawn.html", "Then 4 more.")
