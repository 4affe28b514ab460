import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.testing import Result

from webrag.cli.answer_command import answer_command, search_command
from webrag.cli.jobs_commands import list_command
from webrag.cli.options import command_line, with_settings
from webrag.jobs.models import JobKind
from webrag.question import QueryType
from webrag.retrieval.filters import CONTENT_KINDS
from webrag.retrieval.models import RETRIEVAL_MODES
from webrag.settings import Settings

Run = Callable[..., Result]


@pytest.fixture
def seen(added_command: Callable[..., None]) -> list[Settings]:
    """The settings that the command `look` was given; it logs at every level."""
    settings_seen: list[Settings] = []

    @click.command("look")
    @click.option("--port", type=int)
    def look(ctx: click.Context) -> None:
        settings_seen.append(ctx.obj)
        log = logging.getLogger("webrag.look")
        log.debug("a detail")
        log.info("a step")
        log.warning("a %s", "doubt")
        log.error("a failure")
        logging.getLogger("elsewhere").info("chatter")

    added_command(with_settings(look, port="mcp_port"))
    return settings_seen


def test_options_become_settings(webrag: Run, seen: list[Settings], tmp_path: Path) -> None:
    webrag("look", "--collection", "mine", "--data-dir", str(tmp_path), "--port", "99", catch=False)

    (settings,) = seen
    assert (settings.collection, settings.data_dir, settings.mcp_port) == ("mine", tmp_path, 99)


def test_options_left_out_change_nothing(webrag: Run, seen: list[Settings]) -> None:
    webrag("look", catch=False)

    assert seen == [Settings()]


def test_allowed_hosts_are_added_to_the_configured_ones(
    webrag: Run, seen: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBRAG_ALLOW_HOSTS", "intranet")

    webrag("look", "--allow-host", "127.0.0.1:8000", "--allow-host", "other", catch=False)

    assert seen[0].allow_hosts == ("intranet", "127.0.0.1:8000", "other")


def test_settings_file_can_be_named(webrag: Run, seen: list[Settings], tmp_path: Path) -> None:
    path = tmp_path / "my.env"
    path.write_text("WEBRAG_COLLECTION=from_file\n")

    webrag("look", "--env-file", str(path), catch=False)

    assert seen[0].collection == "from_file"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["Warning: a doubt", "Error: a failure"]),
        (["-v"], ["Info: a step", "Warning: a doubt", "Error: a failure"]),
        (["-vv"], ["Debug: a detail", "Info: a step", "Warning: a doubt", "Error: a failure"]),
        (["--quiet"], ["Error: a failure"]),
    ],
    ids=["default", "verbose", "very-verbose", "quiet"],
)
def test_messages_go_to_standard_error_by_level(
    arguments: list[str], expected: list[str], webrag: Run, seen: list[Settings]
) -> None:
    result = webrag("look", *arguments, catch=False)

    assert result.stderr.splitlines() == expected
    assert result.stdout == ""


def test_warnings_of_loading_settings_are_shown(
    webrag: Run, seen: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TOOL_TIMEOUT", "60000")

    assert "Warning: MCP_TOOL_TIMEOUT is '60000'" in webrag("look", catch=False).stderr


def test_logging_is_as_before_after_a_command(webrag: Run, seen: list[Settings]) -> None:
    before = (logging.getLogger().handlers[:], logging.getLogger("webrag").level)

    webrag("look", "-vv", catch=False)

    assert (logging.getLogger().handlers, logging.getLogger("webrag").level) == before


@pytest.mark.parametrize(
    ("command", "option", "words"),
    [
        (answer_command, "intent", get_args(QueryType)),
        (answer_command, "retrieval_mode", RETRIEVAL_MODES),
        (list_command, "kind", get_args(JobKind)),
        (search_command, "has", CONTENT_KINDS),
    ],
)
def test_options_offer_the_words_that_are_understood(
    command: click.Command, option: str, words: Any
) -> None:
    params = command.get_params(click.Context(command))
    (choice,) = (each.type for each in params if each.name == option)

    assert isinstance(choice, click.Choice)
    assert set(choice.choices) == set(words)


@pytest.mark.parametrize(
    ("here", "by_uv", "search_path", "told"),
    [
        ("project/docs", True, "project/.venv/bin", "uv run webrag"),
        ("elsewhere", True, "project/.venv/bin", "{base}/project/.venv/bin/webrag"),
        ("project", False, "", ".venv/bin/webrag"),
        ("elsewhere", False, "", "{base}/project/.venv/bin/webrag"),
        ("elsewhere", False, "project/.venv/bin", "webrag"),
    ],
    ids=["uv run", "uv run --project", "path", "whole path", "active environment"],
)
def test_next_command_can_be_typed_where_the_last_one_was(
    added_command: Callable[..., None],
    webrag: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    here: str,
    by_uv: bool,
    search_path: str,
    told: str,
) -> None:
    @click.command("next")
    def show_next(ctx: click.Context) -> None:
        click.echo(command_line(ctx).program)

    added_command(with_settings(show_next))
    script = tmp_path / "project/.venv/bin/webrag"
    for folder in (script.parent, tmp_path / here):
        folder.mkdir(parents=True, exist_ok=True)
    script.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "project/.venv"))
    monkeypatch.setenv("PATH", str(tmp_path / search_path) if search_path else "")
    monkeypatch.delenv("UV_RUN_RECURSION_DEPTH", raising=False)
    if by_uv:
        monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")
    monkeypatch.chdir(tmp_path / here)

    assert webrag("next").stdout.strip() == told.format(base=tmp_path)
