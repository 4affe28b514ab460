import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from webrag.cli.main import _TOLD as TOLD
from webrag.cli.options import with_settings
from webrag.errors import (
    ConfigurationError,
    DatabaseUnavailableError,
    InputError,
    PageGoneError,
)

Run = Callable[..., Result]
COMMANDS = [
    "demo", "setup", "config", "ask", "answer", "search", "read", "verify", "ingest", "login",
    "status", "forget", "reindex", "corpus", "jobs", "web", "mcp", "eval",
]  # fmt: skip
GROUPS = {"jobs": "list", "corpus": "check"}


def failing(error: BaseException) -> click.Command:
    @with_settings
    @click.command("fail")
    def fail(_ctx: click.Context) -> None:
        raise error

    return fail


def test_help_lists_at_most_18_commands_by_what_people_do(webrag: Run) -> None:
    result = webrag("--help")

    listed = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("  ")]
    titles = re.findall(r"^(\w[\w ]+):$", result.stdout, re.MULTILINE)
    assert [each for each in listed if each in COMMANDS] == COMMANDS
    assert len(COMMANDS) <= 18
    assert titles == ["Options", "Start", "Ask", "Add", "Look after", "Serve", "Measure"]


@pytest.mark.parametrize("command", [f"{each} {GROUPS.get(each, '')}" for each in COMMANDS])
def test_help_of_a_command_is_tidy(command: str, webrag: Run) -> None:
    result = webrag(*command.split(), "--help")

    assert result.exit_code == 0
    assert "--allow-host" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


@pytest.mark.parametrize("typed", sorted(TOLD))
def test_word_of_another_program_is_told_its_command_which_exists(typed: str, webrag: Run) -> None:
    result = webrag(typed, "https://docs.example.com/")

    told = re.findall(r"That is `webrag ([\w -]+)", result.stderr)[0].split()
    path = told[:2] if told[0] in GROUPS else told[:1]
    options = [each for each in told if each.startswith("--")]
    assert result.exit_code == 2
    shown = webrag(*path, "--help").stdout
    assert shown.startswith(f"Usage: webrag {' '.join(path)} ")
    assert all(option in shown for option in options)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("compare-versions", "Search twice, with --version OLD and --version NEW."),
        ("models", "WEBRAG_MODELS=small names a set of models; the first use downloads them."),
        ("eval --report", "--out FILE holds what was found for each question."),
        ("ingest --watch", "`webrag ingest FOLDER` reads only the files that have changed."),
        ("reindex --queue", "`webrag reindex` does it at once."),
        ("search --between", "Search twice, with --version OLD and --version NEW."),
        (
            "setup --models",
            "WEBRAG_MODELS=small names a set of models; the first use downloads them.",
        ),
        ("verify --queue", "`webrag verify` does it at once."),
    ],
)
def test_name_of_an_earlier_version_is_told_what_to_use_now(
    typed: str, said: str, webrag: Run
) -> None:
    result = webrag(*typed.split())

    assert result.exit_code == 2
    assert result.stderr.endswith(f"{typed.split()[-1]}'. {said}\n")


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        (["https://docs.example.com/"], "answer https://docs.example.com/ 'your question'"),
        (["docs.example.com"], "answer docs.example.com 'your question'"),
        (["How is it?"], "ask 'How is it?'"),
        (["how", "is", "it"], "ask 'how is it'"),
        (["localhost:80/a", "how", "is", "it"], "answer http://localhost:80/a 'how is it'"),
    ],
)
def test_question_or_address_without_a_command_is_told_the_command(
    typed: list[str], command: str, webrag: Run
) -> None:
    assert f"To ask it: `webrag {command}`." in webrag(*typed).stderr


@pytest.mark.parametrize("typed", ["--version", "version"])
def test_version_is_printed(typed: str, webrag: Run) -> None:
    assert webrag(typed).stdout.startswith("webrag ")


@pytest.mark.parametrize(("typed", "usage"), [("help", ""), ("help ask", " ask")])
def test_help_is_a_word_too(typed: str, usage: str, webrag: Run) -> None:
    assert webrag(*typed.split()).stdout.startswith(f"Usage: webrag{usage} [OPTIONS]")


# Options about a question are made from the fields of its model.
@pytest.mark.parametrize(("command", "needed"), [("answer", ["pydantic"]), ("ingest", [])])
def test_help_loads_nothing_heavy_that_it_does_not_need(command: str, needed: list[str]) -> None:
    code = (
        "import sys\n"
        "from webrag.cli import main\n"
        f"main(['{command}', '--help'], standalone_mode=False)\n"
        "heavy = {'llama_index', 'pydantic', 'numpy', 'psycopg', 'mcp', 'rich'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert result.stdout.endswith(f"heavy: {needed}\n"), result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["answer"], id="no-url"),
        pytest.param(["answer", "http://localhost/"], id="no-question"),
        pytest.param(["answer", "http://localhost/", "q", "--mode", "best"], id="mode"),
        pytest.param(["answer", "http://localhost/", "q", "--budget", "-1"], id="budget"),
        pytest.param(["answer", "http://localhost/", "q", "--intent", "x"], id="intent"),
        pytest.param(["search"], id="no-search-question"),
        pytest.param(["search", "q", "--top-k", "0"], id="top-k"),
        pytest.param(["ingest"], id="no-page"),
        pytest.param(["mcp", "--transport", "pigeon"], id="transport"),
        pytest.param(["dance"], id="unknown-command"),
        pytest.param(["status", "--collection", "No!"], id="collection"),
        pytest.param(["status", "--env-file", "/does/not/exist"], id="env-file"),
        pytest.param(["status", "--allow-host", "http://localhost"], id="allow-host"),
    ],
)
def test_wrong_usage_ends_with_code_2_and_says_why(arguments: list[str], webrag: Run) -> None:
    result = webrag(*arguments)

    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("The question is empty."), 2),
        (ConfigurationError("A setting is wrong."), 2),
        (PageGoneError("The page is gone.", url="http://localhost/", status=404), 1),
        (DatabaseUnavailableError("The database is down."), 1),
    ],
)
def test_error_is_one_sentence_and_an_exit_code(
    error: Exception, code: int, webrag: Run, added_command: Callable[..., None]
) -> None:
    added_command(failing(error))

    result = webrag("fail")

    assert (result.exit_code, result.stdout, result.stderr) == (code, "", f"Error: {error}\n")


def test_hint_follows_the_error(webrag: Run, added_command: Callable[..., None]) -> None:
    added_command(failing(InputError("The URL is wrong.", hint="Give an http(s) URL.")))

    assert webrag("fail").stderr == "Error: The URL is wrong.\nGive an http(s) URL.\n"


def test_error_is_json_when_json_is_asked_for(
    webrag: Run, added_command: Callable[..., None]
) -> None:
    added_command(failing(PageGoneError("Gone.", url="http://localhost/é", status=404)))

    result = webrag("fail", "--json")

    assert json.loads(result.stdout) == {
        "error": {
            "type": "PageGoneError",
            "message": "Gone.",
            "url": "http://localhost/é",
            "status": 404,
            "hint": None,
        }
    }
    assert (result.exit_code, result.stderr) == (1, "")


def test_wrong_setting_is_json_when_json_is_asked_for(
    webrag: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAX_PAGES_PER_RUN", "many")

    result = webrag("search", "--json", "question")

    error = json.loads(result.stdout)["error"]
    assert (result.exit_code, error["type"]) == (2, "ConfigurationError")
    assert error["message"].startswith("MAX_PAGES_PER_RUN is 'many' but must be")


def test_defect_is_a_sentence_without_a_traceback(
    webrag: Run, added_command: Callable[..., None]
) -> None:
    added_command(failing(ZeroDivisionError("division by zero")))

    result = webrag("fail")

    assert result.exit_code == 1
    assert "unexpectedly (ZeroDivisionError: division by zero)" in result.stderr
    assert "Traceback" not in result.output


def test_verbose_shows_where_an_error_happened(
    webrag: Run, added_command: Callable[..., None]
) -> None:
    added_command(failing(ZeroDivisionError("division by zero")))

    assert "Traceback (most recent call last)" in webrag("fail", "--verbose").stderr


@pytest.mark.parametrize(("typed", "said"), [("serch", " Did you mean 'search'?"), ("xyzzy", "")])
def test_command_that_does_not_exist_is_told_its_nearest_neighbour(
    typed: str, said: str, webrag: Run
) -> None:
    result = webrag(typed)

    assert result.exit_code == 2
    assert result.stderr.endswith(f"No such command '{typed}'.{said}\n")


@pytest.mark.parametrize("option", ["--json", "--collection", "--allow-host"])
def test_option_before_the_command_is_told_its_place(option: str, webrag: Run) -> None:
    result = webrag(option, "x", "status")

    assert result.exit_code == 2
    assert f"Options follow a command: `webrag COMMAND {option}`." in result.stderr


def test_interrupt_ends_with_code_130(webrag: Run, added_command: Callable[..., None]) -> None:
    added_command(failing(KeyboardInterrupt()))

    result = webrag("fail")

    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.startswith("Interrupted.")


def test_output_that_the_terminal_cannot_encode_does_not_fail() -> None:
    code = (
        "import click\n"
        "from webrag.cli import main\n"
        "main.add_command(click.command('say')(lambda: click.echo('— \\udcff')))\n"
        "main(['say'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={"PYTHONIOENCODING": "latin-1"}
    )

    assert (result.returncode, result.stdout) == (0, b"\\u2014 \\udcff\n")


def test_module_runs_the_same_command() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "webrag", "--version"], capture_output=True, text=True
    )

    assert result.stdout.startswith("webrag ")


def test_output_that_cannot_be_written_is_no_defect() -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "webrag", "config"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )

    assert result.returncode == 1
    assert result.stderr == "Error: The output cannot be written: No space left on device.\n"
