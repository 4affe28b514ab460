import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dotenv import dotenv_values
from llama_index.postprocessor.webrag import CohereRerank, JinaRerank, ZeroEntropyRerank

from webrag.cli.serve_commands import mcp_command
from webrag.settings import Settings, load_settings
from webrag.settings.variables import variable_names

ROOT = Path(__file__).parents[3]
GENERATOR = runpy.run_path(str(ROOT / "docs/generate_configuration.py"))
configuration_page, env_example = GENERATOR["configuration_page"], GENERATOR["env_example"]
sections = GENERATOR["settings_by_section"]


def test_configuration_page_is_current() -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")

    assert page == configuration_page(), "run docs/generate_configuration.py"


def test_env_example_is_current() -> None:
    example = (ROOT / ".env.example").read_text(encoding="utf-8")

    assert example == env_example(), "run docs/generate_configuration.py"


def test_types_of_what_can_be_given_are_current() -> None:
    stub = (ROOT / "webrag/settings/given.pyi").read_text(encoding="utf-8")

    assert stub == GENERATOR["given_types"](), "run docs/generate_configuration.py"


def test_notebooks_are_shown_every_setting_that_can_be_given() -> None:
    shown = inspect.signature(load_settings).parameters

    assert next(iter(shown)) == "env_file"
    assert {name for name, info in Settings.model_fields.items() if info.description} <= set(shown)


def test_every_setting_is_in_exactly_one_section() -> None:
    fields = [item.field for _, items in sections() for item in items]

    assert sorted(fields) == sorted(
        name for name, info in Settings.model_fields.items() if variable_names(name, info)
    )
    assert len(fields) <= 75


def test_page_names_everything_that_is_set_in_python_only() -> None:
    page = configuration_page().partition("## What is set in Python only")[2]
    named = set(re.findall(r"^(?:\| |### )`([\w.]+)`", page, re.M))

    assert named >= {
        name
        for name, info in Settings.model_fields.items()
        if name != "origins" and not variable_names(name, info)
    }


def test_reference_is_complete() -> None:
    items = [item for _, items in sections() for item in items]

    assert [each.field for each in items if not each.allowed] == []
    assert [each.field for each in items if not str(each.description).endswith(".")] == []


def described_defaults() -> dict[str, str]:
    return {item.field: item.default_text for _, items in sections() for item in items}


@pytest.mark.parametrize("service", [CohereRerank, JinaRerank, ZeroEntropyRerank])
def test_reference_names_the_model_that_each_reranker_takes_by_itself(service: Any) -> None:
    assert f"`{service.model_fields['model'].default}`" in described_defaults()["reranker_model"]


def test_help_of_the_server_names_the_port_it_takes_by_itself() -> None:
    port = next(option for option in mcp_command.params if option.name == "port")

    assert f"[default: {load_settings().mcp_port}]" in str(port.to_info_dict()["help"])


def test_sections_begin_where_the_settings_say() -> None:
    assert [title for title, _ in sections()] == [
        "Storage", "Fetching", "Embedding", "Retrieval", "Reranking",
        "Questions and how far they are followed", "MCP server", "Callers of the MCP server",
        "Answers and tracing",
    ]  # fmt: skip


def test_env_example_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "example.env"
    path.write_text(env_example(), encoding="utf-8")

    assert dotenv_values(path) == {}


def test_env_example_with_every_line_in_force_keeps_the_defaults(tmp_path: Path) -> None:
    lines = [line[2:] for line in env_example().splitlines() if line[2:].split("=")[0].isupper()]
    path = tmp_path / "all.env"
    path.write_text("\n".join(lines), encoding="utf-8")

    assert load_settings(path).model_dump() == load_settings().model_dump()


def test_settings_load_neither_llama_index_nor_a_database_driver() -> None:
    code = "import sys, webrag.settings; print(sorted({'llama_index', 'psycopg', 'numpy', 'rich', "
    code += "'selectolax', 'mcp'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert result.stdout.strip() == "[]"
