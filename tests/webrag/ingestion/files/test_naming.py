from pathlib import Path
from typing import Any

import pytest

from webrag.errors import InputError
from webrag.ingestion.addresses import file_url
from webrag.ingestion.files.folder import expand_named, named_address, named_urls
from webrag.ingestion.files.source import FileAccess


def test_existing_path_is_a_file_and_everything_else_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.md").write_text("n")
    monkeypatch.chdir(tmp_path)

    assert named_address("notes.md") == file_url(tmp_path / "notes.md")
    assert named_address("./missing.md") == file_url(tmp_path / "missing.md")
    assert named_address("https://example.com/notes.md") == "https://example.com/notes.md"


def test_what_is_neither_path_nor_url_is_refused() -> None:
    with pytest.raises(InputError, match=r"There is no file or folder .* no URL"):
        named_address("no-such-file.md")


@pytest.mark.parametrize("takes_names", [True, False])
@pytest.mark.parametrize("given", [5, None, [5], [["a"]]])
def test_what_is_neither_text_nor_path_is_refused(given: Any, takes_names: bool) -> None:
    with pytest.raises(InputError, match="text"):
        named_urls(given, takes_names=takes_names)


async def test_folder_is_taken_apart_and_the_rest_kept(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("a")
    (tmp_path / "b.md").write_text("b")

    named = await expand_named(
        named_urls([tmp_path / "docs", tmp_path / "b.md", "https://example.com/"]),
        FileAccess(),
        max_bytes=9,
    )

    assert named.files == (file_url(tmp_path / "docs" / "a.md"),)
    assert named.urls == (file_url(tmp_path / "b.md"), "https://example.com/")
    assert named.folders == (f"{file_url(tmp_path / 'docs')}/",)


async def test_folder_that_may_not_be_read_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")

    named = await expand_named([file_url(tmp_path)], FileAccess(takes_names=False), max_bytes=9)

    assert (named.files, named.urls) == ((), (file_url(tmp_path),))
