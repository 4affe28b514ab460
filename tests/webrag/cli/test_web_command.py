import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import Result


def test_help_says_where_it_listens_and_what_it_shows(webrag: Callable[..., Result]) -> None:
    shown = " ".join(webrag("web", "--help").output.split())

    assert "prints its address and opens it" in shown
    assert "or a free one when it is taken" in shown
    assert "--no-open" in shown


def test_free_port_is_taken_when_the_usual_one_is_in_use(postgres_dir: Path) -> None:
    command = [sys.executable, "-m", "webrag", "web", "--no-open", "--data-dir", str(postgres_dir)]
    with socket.socket() as taken:
        # Whoever has it already will do.
        with suppress(OSError):
            taken.bind(("127.0.0.1", 8765))
            taken.listen()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            process.terminate()

    found = re.fullmatch(r"WebRAG is at http://127\.0\.0\.1:(\d+)/ \(Ctrl-C ends it\)\n", line)
    assert found is not None
    assert found[1] != "8765"


def test_port_that_was_asked_for_and_is_taken_is_told(webrag: Callable[..., Result]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        result = webrag("web", "--no-open", "--port", port)

    assert result.exit_code == 2
    assert f"Port {port} of 127.0.0.1 is in use by another program." in result.stderr


@pytest.mark.parametrize("screen", [{}, {"DISPLAY": ":0"}], ids=["without", "with"])
def test_browser_is_opened_only_where_there_is_a_screen(
    postgres_dir: Path, tmp_path: Path, screen: dict[str, str]
) -> None:
    opener, opened = tmp_path / "xdg-open", tmp_path / "opened"
    opener.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    opener.chmod(0o755)
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PATH": f"{tmp_path}:{environment['PATH']}", **screen}
    command = [sys.executable, "-m", "webrag", "web", "-q", "--data-dir", str(postgres_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        urlopen(address).close()  # answered once the browser was asked to open
        process.terminate()

    assert opened.exists() == bool(screen)
