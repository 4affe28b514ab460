"""The configuration of MCP clients: printed, written into their files, and tried."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.errors import InputError, WebRAGError
from webrag.mcp_server.clients import CLIENTS, block, check, install, with_block
from webrag.postgres.database import Database

COMMAND = ["/opt/with space/webrag", "mcp", "--collection", "work"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user who has none of these programs."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    return tmp_path


def read(name: str, text: str) -> dict[str, Any]:
    settings = tomllib.loads(text) if CLIENTS[name].is_toml else json.loads(text)
    return dict(settings)


@pytest.mark.parametrize("name", CLIENTS)
def test_what_is_printed_starts_the_server_by_its_path(name: str) -> None:
    client = CLIENTS[name]

    entry = read(name, block(client, COMMAND))[client.key]["webrag"]

    assert [entry["command"], *entry["args"]] == COMMAND


def test_file_that_begins_with_a_byte_order_mark_is_read() -> None:
    client = CLIENTS["cursor"]
    client.path.parent.mkdir(parents=True)
    client.path.write_text('{"theme": "dark"}', "utf-8-sig")

    install(client, COMMAND)

    assert read("cursor", client.path.read_text("utf-8"))["theme"] == "dark"


@pytest.mark.parametrize("name", CLIENTS)
def test_installing_twice_leaves_one_entry_and_everything_else(name: str) -> None:
    client = CLIENTS[name]
    client.path.parent.mkdir(parents=True, exist_ok=True)
    other = {"command": "other", "args": ["x"]}
    before = {"theme": "dark", client.key: {"other": other}}
    as_toml = f'theme = "dark"\n[{client.key}.other]\ncommand = "other"\nargs = ["x"]\n# mine\n'
    client.path.write_text(as_toml if client.is_toml else json.dumps(before))
    client.path.chmod(0o600)

    install(client, ["old", "mcp"])
    install(client, COMMAND)

    after = read(name, client.path.read_text())
    assert after[client.key]["webrag"]["command"] == COMMAND[0]
    assert after[client.key].pop("webrag")["args"] == COMMAND[1:]
    assert after == before
    assert client.path.stat().st_mode & 0o777 == 0o600
    assert not client.is_toml or "# mine" in client.path.read_text()


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3),
        st.dictionaries(st.text("xyz", min_size=1), st.text()),
    )
)
def test_no_setting_of_a_toml_file_is_lost(others: dict[str, dict[str, str]]) -> None:
    client = CLIENTS["codex"]
    tables = [
        f"[{table}]\n"
        + "".join(
            f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items()
        )
        for table, values in others.items()
        if not any("\x7f" in value for value in values.values())
    ]
    text = "[mcp_servers.webrag]\ncommand = 'old'\n[mcp_servers.webrag.env]\nA = 'b'\n"
    text += "".join(tables)
    before = tomllib.loads(text)

    after = tomllib.loads(with_block(client, text, COMMAND))

    assert after.pop("mcp_servers")["webrag"]["command"] == COMMAND[0]
    del before["mcp_servers"]
    assert after == before


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("zed", '// mine\n{"theme": "dark"}', "comments would be lost"),
        ("cursor", '{"mcpServers": []}', "is no object"),
        ("codex", "[mcp_servers", "not TOML"),
        ("codex", 'mcp_servers = {webrag = {command = "x"}}', "not TOML that can be added to"),
    ],
)
def test_file_that_cannot_be_changed_safely_is_left_as_it_is_and_the_lines_are_shown(
    name: str, text: str, why: str
) -> None:
    client = CLIENTS[name]
    client.path.parent.mkdir(parents=True, exist_ok=True)
    client.path.write_text(text)

    with pytest.raises(InputError, match=why) as refused:
        install(client, COMMAND)

    assert client.path.read_text() == text
    assert refused.value.hint is not None
    assert "/opt/with space/webrag" in refused.value.hint
    assert list(client.path.parent.iterdir()) == [client.path]


async def test_check_starts_the_server_as_a_client_does(database: Database) -> None:
    place = ["--data-dir", str(database.config.data_dir)]
    place += ["--collection", database.config.collection]

    _, tools, status = await check([sys.executable, "-m", "webrag", "mcp", *place])

    assert tools == ["answer", "search", "read", "status", "ingest", "verify"]
    assert "Documents indexed: 0" in status


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/nowhere/webrag", "mcp"], "/nowhere/webrag"),
        ([sys.executable, "-m", "webrag", "mcp", "--collection", "No!"], "No!"),
    ],
)
async def test_server_that_does_not_start_says_why(command: list[str], said: str) -> None:
    with pytest.raises(WebRAGError, match="The server did not answer") as failed:
        await check(command)

    assert said in f"{failed.value} {failed.value.hint}"
