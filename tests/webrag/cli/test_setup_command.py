"""A language model of one's own: found, tried and written down, or none."""

import json
import stat
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from webrag.cli import main
from webrag.errors import ConfigurationError
from webrag.settings import load_settings
from webrag.settings.model import write_settings
from webrag.wiring import language_models

Run = Callable[..., Result]
KEY = "sk-of-the-user-0123456789"


class Model(BaseHTTPRequestHandler):
    """A server of language models, of which `broken` fails."""

    keys: list[str]

    def do_GET(self) -> None:
        models = [{"id": name, "object": "model"} for name in ("tiny", "broken", "nomic-embed")]
        self._send(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.keys.append(self.headers.get("Authorization", ""))
        if asked["model"] == "broken":
            self._send(400, {"error": {"message": "no such weights"}})
            return
        message = {"role": "assistant", "content": "ready"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send(200, {"id": "1", "object": "chat.completion", "created": 0,
                         "model": asked["model"], "choices": [choice]})  # fmt: skip

    def _send(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def model() -> Iterator[str]:
    Model.keys = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file of a user who has none yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "webrag/.env"


def test_model_that_answers_is_used_from_then_on(webrag: Run, model: str, file: Path) -> None:
    result = webrag("setup", "--server", model, "--model", "tiny")

    settings = load_settings()
    assert result.exit_code == 0, result.stderr
    assert f"tiny at {model} answers" in result.stdout
    assert (settings.orchestration_llm_base_url, settings.orchestration_llm_model) == (
        model,
        "tiny",
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_model_that_does_not_answer_leaves_the_settings_as_they_are(
    webrag: Run, model: str, file: Path
) -> None:
    result = webrag("setup", "--server", model, "--model", "broken")

    assert (result.exit_code, "no such weights" in result.stderr) == (2, True)
    assert not file.exists()


def test_models_of_the_server_are_named_when_none_is_chosen(webrag: Run, model: str) -> None:
    result = webrag("setup", "--server", model)

    assert (result.exit_code, result.stderr) == (
        2, f"Error: Name the model; {model} has: broken, tiny.\n",
    )  # fmt: skip


def test_address_without_such_a_server_is_a_sentence(webrag: Run) -> None:
    result = webrag("setup", "--server", "http://127.0.0.1:9/v1", "--model", "tiny")

    assert result.exit_code == 2
    assert "does not answer" in result.stderr
    assert "Traceback" not in result.output


def test_key_is_sent_and_never_shown(model: str, file: Path) -> None:
    result = CliRunner().invoke(
        main, ["setup", "--server", model, "--model", "tiny", "--key"], input=f"{KEY}\n"
    )

    assert (result.exit_code, Model.keys) == (0, [f"Bearer {KEY}"])
    assert KEY not in result.output
    assert load_settings().orchestration_llm_api_key is not None


def test_none_takes_it_out_and_leaves_other_lines(webrag: Run, model: str, file: Path) -> None:
    file.parent.mkdir()
    file.write_text("# mine\nWEBRAG_COLLECTION=work\nWEBRAG_ORCHESTRATION_LLM_MODEL=old\n")
    webrag("setup", "--server", model, "--model", "tiny")

    result = webrag("setup", "--server", "none", "--json")

    assert json.loads(result.stdout)["server"] is None
    assert file.read_text() == "# mine\nWEBRAG_COLLECTION=work\n"


def test_server_of_this_machine_is_found_without_being_named(
    webrag: Run, model: str, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    monkeypatch.setattr(
        language_models, "_USUAL", (("Mine", model), ("None", "http://127.0.0.1:9/v1"))
    )

    result = webrag("setup")

    assert (result.exit_code, f"Mine at {model}: broken, tiny" in result.stdout) == (0, True)
    assert not file.exists()


def test_variable_that_wins_over_the_file_is_told(
    webrag: Run, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATION_LLM_MODEL", "other")

    result = webrag("setup", "--server", model, "--model", "tiny")

    assert "ORCHESTRATION_LLM_MODEL in the environment wins over the file." in result.stderr


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1))
def test_value_is_read_as_it_was_written(value: str) -> None:
    import tempfile

    from dotenv import dotenv_values

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ".env"
        write_settings(path, {"A": value, "B": "2"})

        assert dotenv_values(path, interpolate=False) == {"A": value, "B": "2"}


def test_value_of_two_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="one line"):
        write_settings(tmp_path / ".env", {"A": "1\nB=2"})
