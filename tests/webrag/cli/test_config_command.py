import json
import re
from collections.abc import Callable

import pytest
from click.testing import Result

from webrag.settings import Settings
from webrag.settings.variables import variable_names

Run = Callable[..., Result]
SECRETS = [
    "FIRECRAWL_API_KEY",
    "EMBEDDING_API_KEY",
    "OPENAI_API_KEY",
    "RERANKER_API_KEY",
    "ZEROENTROPY_API_KEY",
    "COHERE_API_KEY",
    "JINA_API_KEY",
    "ORCHESTRATION_LLM_API_KEY",
    "MCP_AUTH_TOKEN",
]


def test_config_prints_every_setting_with_value_and_origin(
    webrag: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBRAG_USER_AGENT", "Me/1 " + "x" * 200)

    lines = [line.split("  ") for line in webrag("config", "--all").stdout.splitlines()]

    rows = [[cell.strip() for cell in line if cell] for line in lines if line[0] == ""]
    assert len(rows) == sum(
        bool(variable_names(name, info)) for name, info in Settings.model_fields.items()
    )
    assert ["MCP_PORT", "8765", "default"] in rows
    assert [
        "WEBRAG_USER_AGENT",
        "Me/1 " + "x" * 200,
        "WEBRAG_USER_AGENT in the environment",
    ] in rows


def test_config_as_json_keeps_numbers(webrag: Run) -> None:
    shown = json.loads(webrag("config", "--json", "--collection", "mine").stdout)

    assert shown["MCP_PORT"] == {"value": 8765, "origin": "default"}
    assert shown["WEBRAG_COLLECTION"] == {"value": "mine", "origin": "argument"}
    assert shown["RERANKER_MODEL"]["value"] is None
    assert shown["MCP_ENABLE_FORGET"]["value"] is False


@pytest.mark.parametrize("form", [[], ["--json"], ["--all"]], ids=["text", "json", "all"])
def test_config_masks_every_secret(
    form: list[str], webrag: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(SECRETS):
        monkeypatch.setenv(name, f"sk-hidden-{number}")
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:sk-hidden@db/rag?sslpassword=sk-hidden")

    result = webrag("config", *form)

    assert result.exit_code == 0
    assert "sk-hidden" not in result.output
    assert "postgresql://me:********@db/rag?sslpassword=********" in result.stdout
    assert result.stdout.count("********") == len(SECRETS) + 2


def test_config_shows_what_was_changed_and_what_people_change_and_counts_the_rest(
    webrag: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PORT", "9000")

    shown = webrag("config").stdout

    assert "MCP_PORT" in shown
    assert "WEBRAG_COLLECTION" in shown
    assert "MCP_HOST" not in shown
    names = re.findall(r"^  ([A-Z_]+) ", shown, re.MULTILINE)
    left = int(re.findall(r"^(\d+) more are at their default: --all\.$", shown, re.MULTILINE)[0])
    everything = re.findall(r"^  ([A-Z_]+) ", webrag("config", "--all").stdout, re.MULTILINE)
    assert (len(names), len(names) + left) == (11, len(everything))
