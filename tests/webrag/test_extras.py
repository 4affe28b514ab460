import json
import sys
from pathlib import Path
from typing import Any

import pytest

from webrag.errors import how_to_install


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (
            {"url": "file:///src/webrag", "dir_info": {"editable": True}},
            "pip install -e '/src/webrag[workers]'",
        ),
        (
            {"url": "file:///src/webrag", "dir_info": {}},
            "pip install 'webrag[workers] @ file:///src/webrag'",
        ),
        (
            {"url": "file:///a%20b/webrag-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'webrag[workers] @ file:///a%20b/webrag-0.1.0-py3-none-any.whl'",
        ),
        (
            {"url": "https://example.com/webrag", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "pip install 'webrag[workers] @ git+https://example.com/webrag'",
        ),
        (None, "pip install 'webrag[workers]'"),
    ],
    ids=["editable", "folder", "wheel", "repository", "index"],
)
def test_command_fits_how_webrag_was_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: Any, command: str
) -> None:
    tell(monkeypatch, tmp_path, origin, "pip")

    assert how_to_install("workers") == f"Run `{sys.executable} -m {command}`."


def test_uv_installs_into_an_environment_that_it_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tell(monkeypatch, tmp_path, {"url": "file:///src/webrag", "dir_info": {}}, "uv")

    wanted = "'webrag[office] @ file:///src/webrag'"
    assert how_to_install("office") == f"Run `uv pip install -p {sys.executable} {wanted}`."


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        ("uv", "Run `uv sync --inexact --extra office` in {clone}."),
        ("pip", "Run `{python} -m pip install -e '{clone}[office]'`."),
    ],
)
def test_clone_of_its_own_environment_is_synchronised_where_uv_made_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installer: str, command: str
) -> None:
    tell(
        monkeypatch, tmp_path, {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}, installer
    )
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))

    assert how_to_install("office") == command.format(clone=tmp_path, python=sys.executable)


def tell(monkeypatch: pytest.MonkeyPatch, folder: Path, origin: Any, installer: str) -> None:
    found = folder / "webrag-0.1.0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.4\nName: webrag\nVersion: 0.1.0\n")
    (found / "INSTALLER").write_text(f"{installer}\n")
    if origin is not None:
        (found / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(folder)
