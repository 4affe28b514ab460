import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from webrag.mcp_server.clients import CLIENTS
from webrag.postgres.database import Database

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def test_mcp_speaks_the_protocol_on_standard_output_and_ends_with_its_client(
    database: Database,
) -> None:
    command = [sys.executable, "-m", "webrag", "mcp", "--allow-host", "127.0.0.1:8000"]
    command += ["--data-dir", str(database.config.data_dir)]
    result = subprocess.run(
        [*command, "--collection", database.config.collection],
        input=json.dumps(INITIALIZE) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )

    answer = json.loads(result.stdout)
    assert result.returncode == 0, result.stderr
    assert answer["result"]["serverInfo"]["name"] == "webrag"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--transport", "pigeon"),
        ("--transport", "http", "--port", "70000"),
        ("--host", "a b"),
        ("--transport", "http", "--check"),
    ],
)
def test_option_that_cannot_be_used_is_refused(
    webrag: Callable[..., Result], arguments: tuple[str, ...]
) -> None:
    result = webrag("mcp", *arguments)

    assert result.exit_code == 2
    assert arguments[-1] in result.stderr


def test_typed_on_a_terminal_it_says_what_it_waits_for() -> None:
    """Standard input is a real pseudo-terminal, and ends at once."""
    import pty

    parent, child = pty.openpty()
    os.write(parent, b"\x04")
    with subprocess.Popen(
        [sys.executable, "-m", "webrag", "mcp"], stdin=child, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.terminate()
    os.close(parent)
    os.close(child)

    assert first.startswith("Waiting for an MCP client")
    assert "docs/clients.md" in first


def test_command_line_writes_nothing_unless_somebody_says_so(
    webrag: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    refused = webrag("mcp", "--install", "cursor")
    written = webrag("mcp", "--install", "cursor", "--yes", "--collection", "work")

    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    entry = json.loads((tmp_path / ".cursor/mcp.json").read_text())["mcpServers"]["webrag"]
    assert [entry["command"], *entry["args"]] == [
        sys.executable, "-m", "webrag", "mcp", "--collection", "work",
    ]  # fmt: skip
    assert str(tmp_path / ".cursor/mcp.json") in written.stdout


def test_client_is_told_what_stands_in_the_environment_that_it_does_not_see(
    webrag: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBRAG_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("WEBRAG_ALLOW_HOSTS", "a.test")
    monkeypatch.setenv("MAX_PAGES_PER_RUN", "7")

    printed = webrag("mcp", "--print-config", "cursor", "--allow-host", "b.test")

    assert json.loads(printed.stdout)["mcpServers"]["webrag"]["args"][2:] == [
        "mcp", "--data-dir", str(tmp_path), "--allow-host", "a.test", "--allow-host", "b.test",
    ]  # fmt: skip
    assert (
        "clients do not see MAX_PAGES_PER_RUN in the environment; write it into" in printed.stderr
    )


def test_client_that_does_not_see_where_the_shell_keeps_data_is_told_the_folder(
    webrag: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    printed = webrag("mcp", "--print-config", "cursor")

    assert json.loads(printed.stdout)["mcpServers"]["webrag"]["args"][2:] == [
        "mcp", "--data-dir", str(tmp_path / "webrag"),
    ]  # fmt: skip


def test_help_names_every_client(webrag: Callable[..., Result]) -> None:
    shown = " ".join(webrag("mcp", "--help").stdout.split())

    assert [name for name in CLIENTS if name not in shown] == []
    assert "there are claude-desktop" in webrag("mcp", "--print-config", "nope").stderr
