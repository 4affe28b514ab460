import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.growth import grows_as_its_input
from webrag.ingestion.addresses import file_path
from webrag.ingestion.files.folder import list_files


def written(folder: Path, **files: str) -> Path:
    """Files by their names, in which `__` stands for a slash and `_dot_` for a dot."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(folder: Path, **limits: int) -> list[str]:
    listing = list_files(folder, max_bytes=limits.get("max_bytes", 1_000))
    return [file_path(url).relative_to(folder).as_posix() for url in listing.urls]


def test_files_are_listed_folder_by_folder_in_order(tmp_path: Path) -> None:
    written(tmp_path, b_dot_md="b", a__z_dot_rst="z", a__c_dot_py="c = 1")

    assert names(tmp_path) == ["a/c.py", "a/z.rst", "b.md"]


def test_what_gitignore_names_is_left_out_and_counted(tmp_path: Path) -> None:
    written(tmp_path, _dot_gitignore="build/\n*.txt\n", build__x_dot_md="x", y_dot_txt="y")
    written(tmp_path, z_dot_md="z")

    assert names(tmp_path) == ["z.md"]
    assert list_files(tmp_path, max_bytes=100).left_out["named by .gitignore"] == 2


def test_the_nearest_gitignore_decides(tmp_path: Path) -> None:
    written(tmp_path, _dot_gitignore="*.md\n", keep___dot_gitignore="!*.md\n")
    written(tmp_path, keep__a_dot_md="a", b_dot_md="b")

    assert names(tmp_path) == ["keep/a.md"]


def test_gitignore_of_the_repository_counts_below_it(tmp_path: Path) -> None:
    written(tmp_path, _dot_git__HEAD="ref", _dot_gitignore="drafts/\n")
    written(tmp_path, docs__drafts__a_dot_md="a", docs__b_dot_md="b")

    assert names(tmp_path / "docs") == ["b.md"]


def test_symbolic_links_are_not_followed(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside", a_dot_md="a")
    inside = written(tmp_path / "inside", b_dot_md="b")
    (inside / "link").symlink_to(outside)

    assert names(inside) == ["b.md"]
    assert list_files(inside, max_bytes=100).left_out == {"symbolic links": 1}


def test_each_reason_has_its_count(tmp_path: Path) -> None:
    written(tmp_path, _dot_env="k", a_dot_png="p", b_dot_md="", c_dot_md="x" * 50, d_dot_md="d")
    written(tmp_path, package_dash_lock_dot_json="{}", node_modules__e_dot_md="e")
    (tmp_path / "package_dash_lock.json").rename(tmp_path / "package-lock.json")

    assert list_files(tmp_path, max_bytes=20).left_out == {
        "hidden": 1,
        "of a kind that is not read": 1,
        "empty": 1,
        "of more than 20 bytes": 1,
        "generated": 1,
        "folders of installed packages": 1,
    }


def test_a_row_of_stars_is_matched_as_one(tmp_path: Path) -> None:
    written(tmp_path, _dot_gitignore="a**********b\na*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n")
    (tmp_path / f"{'a' * 60}.md").write_text("a")
    (tmp_path / f"{'a' * 60}b").write_text("b")

    assert names(tmp_path) == [f"{'a' * 60}.md"]


def test_matching_gitignore_grows_as_folders_are_nested(tmp_path: Path) -> None:
    def nested(depth: int) -> Path:
        root = tmp_path / str(depth)
        root.joinpath(*["a" * 90] * depth).mkdir(parents=True, exist_ok=True)
        (root / ".gitignore").write_text(f"*{'a*' * 20}x\n" * 2_000)
        return root

    assert grows_as_its_input(partial(list_files, max_bytes=100), nested, 9, margin=1.5)


def test_what_is_not_read_of_a_gitignore_is_counted(tmp_path: Path) -> None:
    written(tmp_path, _dot_gitignore=f"*.md\n{'a' * 90}\n{'b' * 99_990}", b_dot_md="b")
    written(tmp_path, a___dot_gitignore=f"*.md\n{'c' * 99_990}\n!*.md\n", a__b_dot_md="b")

    assert list_files(tmp_path, max_bytes=100).left_out == {
        "named by .gitignore": 2,
        "`.gitignore` not read to its end": 2,
        "hidden": 2,
    }


@pytest.fixture
def exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Path], None]:
    """Exchanges a place for a link at the worst moment: listed already, and not yet opened."""
    scandir = os.scandir

    def exchange(place: Path, target: Path) -> None:
        def scanned(folder: int | Path) -> Iterator[os.DirEntry[str]]:
            entries = list(scandir(folder))
            if place.name in {entry.name for entry in entries} and not place.is_symlink():
                place.rename(tmp_path / "aside")
                place.symlink_to(target)
            return iter(entries)

        monkeypatch.setattr(os, "scandir", scanned)

    return exchange


def test_folder_exchanged_for_a_link_while_it_is_listed_is_not_entered(
    tmp_path: Path, exchanged: Callable[[Path, Path], None]
) -> None:
    outside = written(tmp_path / "outside", secret_dot_md="a")
    inside = written(tmp_path / "inside", b__c_dot_md="c", d_dot_md="d")
    exchanged(inside / "b", outside)

    assert names(inside) == ["d.md"]


def test_rules_exchanged_for_a_link_are_not_read(
    tmp_path: Path, exchanged: Callable[[Path, Path], None]
) -> None:
    outside = written(tmp_path / "outside", rules="d.md\n")
    inside = written(tmp_path / "inside", part__d_dot_md="d", part___dot_gitignore="")
    exchanged(inside / "part" / ".gitignore", outside / "rules")

    assert names(inside) == ["part/d.md"]


def test_rules_in_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    written(tmp_path, d_dot_md="d")
    os.mkfifo(tmp_path / ".gitignore")

    assert names(tmp_path) == ["d.md"]


def test_folder_that_became_a_link_since_it_was_named_is_not_listed(tmp_path: Path) -> None:
    inside = written(tmp_path / "inside", d_dot_md="d").resolve()
    inside.rename(tmp_path / "aside")
    inside.symlink_to(tmp_path / "aside")

    assert list_files(inside, max_bytes=100).left_out == {"folders that cannot be opened": 1}


def test_other_name_of_a_file_lies_in_the_folder_too(tmp_path: Path) -> None:
    written(tmp_path, outside__a_dot_md="a", inside__b_dot_md="b")
    (tmp_path / "inside" / "c.md").hardlink_to(tmp_path / "outside" / "a.md")

    assert names(tmp_path / "inside") == ["b.md", "c.md"]
