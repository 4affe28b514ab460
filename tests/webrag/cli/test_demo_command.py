"""The demo, run as a person runs it: what it prints, and that it keeps to itself."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from webrag.demo import QUESTION
from webrag.postgres.embedded.server import EmbeddedPostgres

Run = Callable[..., Result]

PAGE = (Path(__file__).parents[3] / "docs/guide/install.md").read_text(encoding="utf-8")
SHOWN = PAGE.split("```text\n")[1].split("```")[0]


@pytest.fixture(scope="module")
def demo_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Data folder with a server of its own: all demos on a server share one collection."""
    folder = tmp_path_factory.mktemp("demo")
    server = EmbeddedPostgres(folder)
    server.ensure()
    yield folder
    server.release()


@pytest.fixture(scope="module")
def demo(
    demo_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> subprocess.CompletedProcess[str]:
    """One demo in a process of its own, without settings of this machine, its output in pipes."""
    process = start_demo(demo_dir, tmp_path_factory.mktemp("home"))
    stdout, stderr = process.communicate(timeout=100)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def start_demo(data_dir: Path, home: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "WEBRAG_DATA_DIR": str(data_dir),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "webrag", "demo", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def test_demo_succeeds_without_any_setting(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stderr
    assert QUESTION in demo.stderr


def test_demo_tells_question_best_quotation_its_place_and_one_next_step(
    demo: subprocess.CompletedProcess[str],
) -> None:
    question, quoted, read = demo.stdout.strip().split("\n\n")

    assert question == QUESTION
    assert "the watcher gets the lock and shuts the server down" in " ".join(quoted.split())
    assert re.search(r"/concepts/database\.html$", quoted)
    assert re.match(r"Read [3-9] pages for it in \d+\.\d s, .*\nA page of your choice: ", read)


def test_pages_of_the_demo_can_be_searched_when_its_site_has_stopped(
    demo: subprocess.CompletedProcess[str], webrag: Run, demo_dir: Path
) -> None:
    place = ["--data-dir", str(demo_dir), "--collection", "webrag_demo"]

    found = webrag("search", "How is the embedded database started?", *place)

    assert (found.exit_code, "/concepts/" in found.stdout) == (0, True)


def test_piped_demo_holds_no_escape_codes(demo: subprocess.CompletedProcess[str]) -> None:
    assert "\x1b" not in demo.stdout + demo.stderr


def test_guide_shows_what_the_demo_prints(demo: subprocess.CompletedProcess[str]) -> None:
    port, read = re.compile(r"127\.0\.0\.1:\d+"), re.compile(r"Read \d+ pages for it in \d+\.\d s")
    printed, shown = (
        read.sub("Read pages", port.sub("127.0.0.1:80", text)).partition("A page of your choice")[0]
        for text in (demo.stdout, SHOWN)
    )

    assert printed == shown


def test_demo_runs_anew_each_time_and_uses_no_key(
    webrag: Run, demo_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-unused")
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/unused")
    monkeypatch.setenv("MAX_PAGES_PER_RUN", "5")
    place = ["--data-dir", str(demo_dir)]
    webrag("demo", "--quiet", *place)

    shown = json.loads(webrag("demo", "--json", *place).stdout)

    assert shown["query"] == QUESTION
    assert len(shown["urls_fetched"]) == shown["documents_searched"]


def test_two_demos_at_once_show_the_same(demo_dir: Path, tmp_path: Path) -> None:
    processes = [start_demo(demo_dir, tmp_path, "--json", "--quiet") for _ in range(2)]

    outputs = [process.communicate(timeout=100) for process in processes]

    assert [process.returncode for process in processes] == [0, 0], outputs
    # Each serves the site at a port of its own; one at a time has pages in the collection.
    shown = [json.loads(stdout) for stdout, _ in outputs]
    quoted = [[each["text"] for each in result["passages"]] for result in shown]
    assert quoted[0] == quoted[1] != []
    pages = {len(each["urls_fetched"]) for each in shown}
    assert pages == {each["documents_searched"] for each in shown}


def test_demo_keeps_its_pages_in_a_collection_of_its_own(
    demo: subprocess.CompletedProcess[str], webrag: Run, demo_dir: Path
) -> None:
    place = ["--data-dir", str(demo_dir), "--collection", "webrag_demo"]

    assert json.loads(webrag("status", "--json", *place).stdout)["documents"] > 1


def test_demo_refuses_to_empty_another_collection(corpus_command: Run) -> None:
    result = corpus_command(None, "demo")

    assert result.exit_code == 2
    assert "leave out --collection" in result.stderr


def test_demo_names_a_data_folder_that_cannot_be_used(webrag: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    result = webrag("demo", "--data-dir", str(file / "below"), "-q")

    assert (result.exit_code, result.stdout) == (1, "")
    assert f"The data folder {str(file / 'below')!r} cannot be used: Not a directory." in (
        result.stderr
    )
