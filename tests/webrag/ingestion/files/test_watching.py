import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from webrag.errors import ConfigurationError, InputError, how_to_install
from webrag.ingestion.files.folder import (
    changed_files,
    changes_between,
    require_watching,
    states_of,
)

A, B = (1, 10), (2, 10)


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        pytest.param({"a": A}, {"a": A}, (), id="nothing"),
        pytest.param({"a": A}, {"a": A, "b": A}, ("b",), id="added"),
        pytest.param({"a": A}, {"a": B}, ("a",), id="changed"),
        pytest.param({"a": A, "b": A}, {"a": A}, ("b",), id="gone"),
        pytest.param({"a": A}, {"b": A}, ("a", "b"), id="renamed"),
    ],
)
def test_changes_are_found_without_reading(
    before: dict[str, tuple[int, int]], now: dict[str, tuple[int, int]], changed: tuple[str, ...]
) -> None:
    found = changes_between(
        {Path(name): state for name, state in before.items()},
        {Path(name): state for name, state in now.items()},
    )

    assert found == tuple(map(Path, changed))


def watching(root: Path) -> AsyncGenerator[tuple[Path, ...], None]:
    before = states_of([root], max_bytes=1_000)
    return changed_files([root], max_bytes=1_000, before=before)


async def test_batches_hold_what_a_plain_run_would_read(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.tmp.md\n")
    (tmp_path / "kept.md").write_text("one")
    async with aclosing(watching(tmp_path)) as batches, asyncio.timeout(30):
        first = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0.3)
        (tmp_path / "draft.tmp.md").write_text("ignored")
        (tmp_path / "picture.png").write_bytes(b"p")
        (tmp_path / "kept.md").write_text("two words")
        (tmp_path / "new.md").write_text("new")

        assert await first == (tmp_path / "kept.md", tmp_path / "new.md")


async def test_file_that_was_named_is_seen_when_an_editor_replaces_it(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("one")
    async with aclosing(watching(file)) as batches, asyncio.timeout(30):
        first = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0.3)
        (tmp_path / "other.md").write_text("not named")
        (tmp_path / ".notes.swp").write_text("two words")
        (tmp_path / ".notes.swp").replace(file)

        assert await first == (file,)


async def test_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be watched"):
        await anext(changed_files([tmp_path / "none" / "x.md"], max_bytes=9, before={}))


def test_watching_without_the_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(ConfigurationError) as refused:
        require_watching()

    assert refused.value.hint == how_to_install("watch")
