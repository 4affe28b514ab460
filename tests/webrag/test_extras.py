import json
import sys
from pathlib import Path
from typing import Any

import pytest

import webrag.extras
from webrag.extras import how_to_install


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (
            {"url": "file:///src/webrag", "dir_info": {"editable": True}},
            "`pip install -e '/src/webrag[workers]'`",
        ),
        (
            {"url": "file:///src/webrag", "dir_info": {}},
            "`pip install 'webrag[workers] @ file:///src/webrag'`",
        ),
        (
            {"url": "file:///a%20b/webrag-0.1.0-py3-none-any.whl", "archive_info": {}},
            "`pip install 'webrag[workers] @ file:///a%20b/webrag-0.1.0-py3-none-any.whl'`",
        ),
        (
            {"url": "https://example.com/webrag", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "`pip install 'webrag[workers] @ git+https://example.com/webrag'`",
        ),
        (None, "`pip install 'webrag[workers]'`"),
    ],
    ids=["editable", "folder", "wheel", "repository", "index"],
)
def test_command_fits_how_webrag_was_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: Any, command: str
) -> None:
    found = tmp_path / "webrag-0.1.0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.4\nName: webrag\nVersion: 0.1.0\n")
    if origin is not None:
        (found / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)

    assert how_to_install("workers") == f"Run {command}."


def test_clone_of_its_own_environment_is_synchronised(monkeypatch: pytest.MonkeyPatch) -> None:
    clone = Path(webrag.extras.__file__).parents[1]
    monkeypatch.setattr(sys, "prefix", str(clone / ".venv"))

    assert how_to_install("office") == f"Run `uv sync --inexact --extra office` in {clone}."
