import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from webrag.errors import ConfigurationError, how_to_install
from webrag.mcp_server.authorization.setup import authorize
from webrag.mcp_server.runtime import Runtime
from webrag.settings import load_settings


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


def test_logins_without_their_package_say_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    monkeypatch.delitem(sys.modules, "webrag.ingestion.logins.store", raising=False)

    with pytest.raises(ConfigurationError, match="the package cryptography") as refused:
        import_module("webrag.ingestion.logins.store")

    assert refused.value.hint == how_to_install("logins")


def _load() -> Any:
    raise AssertionError("nothing is opened")


def test_an_authorization_server_without_the_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    monkeypatch.delitem(sys.modules, "webrag.mcp_server.authorization.oauth", raising=False)
    settings = load_settings(mcp_oauth_issuer="https://issuer.example")

    with pytest.raises(ConfigurationError, match="needs pyjwt") as refused:
        authorize(settings, Runtime(_load), lambda _: _load)

    assert refused.value.hint == how_to_install("oauth")
