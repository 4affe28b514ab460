from pathlib import Path

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
