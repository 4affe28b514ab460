"""What users copy: client configurations, the registry's file, containers."""

import asyncio
import json
import os
import re
import shlex
import socket
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click
import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from psycopg.conninfo import conninfo_to_dict

import webrag
from webrag.cli import main
from webrag.postgres.database import Database
from webrag.postgres.embedded.server import EmbeddedPostgres
from webrag.settings import Settings
from webrag.settings.variables import is_secret, variable_names

ROOT = Path(__file__).parents[1]
CLIENTS = (ROOT / "docs/clients.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(json|toml|bash)\n(.*?)```", CLIENTS, re.S)
COMPOSE: Any = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVER: Any = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))


def parsed(kind: str, text: str) -> Any:
    return json.loads(text) if kind == "json" else tomllib.loads(text)


CONFIGURATIONS = [parsed(kind, text) for kind, text in BLOCKS if kind != "bash"]
ENTRIES = [
    entry
    for configuration in CONFIGURATIONS
    for key in ("mcpServers", "servers", "context_servers", "mcp_servers")
    for entry in configuration.get(key, {}).values()
]
VARIABLES = {
    name for field, info in Settings.model_fields.items() for name in variable_names(field, info)
}


def test_every_client_is_told_how_to_start_the_server_or_where_it_is() -> None:
    assert len(ENTRIES) == len(CONFIGURATIONS)
    assert [entry for entry in ENTRIES if ("command" in entry) == ("url" in entry)] == []


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if "command" in entry], ids=str)
def test_every_configured_command_exists(entry: dict[str, Any]) -> None:
    words = [entry["command"], *entry["args"]]
    from_clone = ["uv", "run", "--project", "PATH/TO/webrag"]
    assert is_command(words[4:] if words[:4] == from_clone else words)


def is_command(words: list[str]) -> bool:
    """Whether `webrag` takes these words; values of options are not looked at."""
    assert words[0] == "webrag"
    command = main.get_command(click.Context(main), words[1])
    assert command is not None
    known = {option for param in command.params for option in param.opts}
    return {word for word in words[2:] if word.startswith("--")} <= known


def shell_commands() -> list[list[str]]:
    joined = "\n".join(text for kind, text in BLOCKS if kind == "bash").replace("\\\n", " ")
    return [shlex.split(line) for line in joined.splitlines() if line.strip()]


def test_every_command_of_the_page_takes_its_options() -> None:
    ours = [words[words.index("webrag") :] for words in shell_commands() if "mcp" in words[-7:]]
    ours = [words for words in ours if words[1:2] == ["mcp"]]

    assert ours
    assert [words for words in ours if not is_command(words)] == []


def test_every_variable_of_the_page_is_a_setting() -> None:
    named = set(re.findall(r"\b(?:MCP|WEBRAG)_[A-Z_]+\b", CLIENTS)) - {"WEBRAG_TOKEN"}

    assert named - VARIABLES == set()


def test_registry_file_names_this_version_and_settings_there_are() -> None:
    package = SERVER["packages"][0]
    named = {each["name"] for each in package["environmentVariables"]}

    assert (SERVER["version"], package["version"]) == (webrag.__version__, webrag.__version__)
    assert named - VARIABLES == set()
    assert is_command(["webrag", *(each["value"] for each in package["packageArguments"])])


def test_registry_file_keeps_to_the_limits_of_its_schema() -> None:
    package = SERVER["packages"][0]
    known = {"name", "description", "format", "default", "isSecret", "isRequired", "placeholder"}
    formats = {each["format"] for each in package["environmentVariables"]}

    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", SERVER["name"])
    assert max(len(SERVER["description"]), len(SERVER["title"])) <= 100
    assert {"registryType", "identifier", "transport"} <= package.keys()
    assert formats <= {"string", "number", "boolean", "filepath"}
    assert [each for each in package["environmentVariables"] if not each.keys() <= known] == []


def test_registry_file_hides_secrets_and_states_defaults_as_the_settings_do() -> None:
    fields = {
        name: (field, info)
        for field, info in Settings.model_fields.items()
        for name in variable_names(field, info)
    }
    stated = {
        each["name"]: (each.get("isSecret", False), each.get("default", ""))
        for each in SERVER["packages"][0]["environmentVariables"]
    }

    assert stated == {
        name: (is_secret(fields[name][1]), str(fields[name][1].default or "")) for name in stated
    }


def test_package_says_which_entry_of_the_registry_is_its_own() -> None:
    # The registry looks for the name in full, so that it must not run on.
    assert f"<!-- mcp-name: {SERVER['name']} -->" in (ROOT / "README.md").read_text("utf-8")


def test_containers_set_settings_there_are() -> None:
    named = set(COMPOSE["services"]["webrag"]["environment"])
    named |= set(re.findall(r"\b(MCP_[A-Z]+)=", DOCKERFILE))

    assert named - VARIABLES == set()


class Overlay(yaml.SafeLoader):
    """Reads what Compose reads in a file that changes another one."""


Overlay.add_constructor("!reset", lambda _loader, _node: None)


def test_containers_of_workers_set_settings_there_are_and_run_a_command_there_is() -> None:
    text = (ROOT / "compose.workers.yaml").read_text(encoding="utf-8")
    services = yaml.load(text, Overlay)["services"]
    worker, server, proxy = (services[name] for name in ("worker", "webrag", "proxy"))

    assert {*worker["environment"], *server["environment"]} - VARIABLES == set()
    assert worker["depends_on"].keys() <= COMPOSE["services"].keys()
    assert is_command(worker["command"])
    assert "[workers]" in DOCKERFILE
    assert [each["deploy"]["replicas"] for each in (server, worker)] == [2, 4]
    # The proxy has the port that one server has alone.
    assert server["ports"] is None
    assert proxy["ports"] == COMPOSE["services"]["webrag"]["ports"]
    assert proxy["command"][-1] == "webrag:8765"


def test_container_checks_its_health_where_the_server_answers() -> None:
    from webrag.mcp_server.http_server import HEALTH_PATH

    assert f"http://127.0.0.1:8765{HEALTH_PATH}" in DOCKERFILE


def test_command_of_the_container_exists() -> None:
    words = json.loads(re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.M)[-1])

    assert is_command(words)
    assert isinstance(main.get_command(click.Context(main), "mcp"), click.Command)


@pytest.fixture
async def container(database: Database) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """The container's command with its variables, as compose starts it: base URL and process."""
    variables = dict(re.findall(r"\b(MCP_[A-Z]+)=(\S+)", DOCKERFILE))
    given = EmbeddedPostgres(database.config.data_dir).conninfo
    parts = {name: value for name, value in conninfo_to_dict(given).items() if value}
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    variables |= {
        "MCP_PORT": str(port),
        "MCP_AUTH_TOKEN": "t0k3n",
        "WEBRAG_DATABASE_URL": f"postgresql:///{parts.pop('dbname')}?{urlencode(parts)}",
        "WEBRAG_COLLECTION": database.config.collection,
    }
    _, *arguments = json.loads(re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.M)[-1])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "webrag", *arguments),
        env=dict(os.environ) | variables,
        stderr=asyncio.subprocess.PIPE,
    )
    yield f"http://127.0.0.1:{port}", process
    if process.returncode is None:
        process.kill()
        await process.wait()


async def test_command_of_the_container_serves_a_corpus_in_an_external_database(
    container: tuple[str, asyncio.subprocess.Process],
) -> None:
    base, process = container
    headers = {"Authorization": "Bearer t0k3n"}
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=30) as http:
        async with asyncio.timeout(60):
            while not await is_ready(http):
                await asyncio.sleep(0.1)
        async with Client(streamable_http_client(f"{base}/mcp", http_client=http)) as client:
            status = await client.call_tool("status", {})
    process.terminate()
    await asyncio.wait_for(process.communicate(), 30)

    assert "Documents indexed: 0" in str(status.content[0])
    assert process.returncode == 0


async def is_ready(http: httpx2.AsyncClient) -> bool:
    try:
        return bool((await http.get("/healthz")).json()["status"] == "ok")
    except httpx2.TransportError:
        return False
