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
SHOWN = PAGE[PAGE.index("```text\nConfidence") :].split("```")[1].removeprefix("text\n")
SECTION = re.compile(r"^\[[A-Z][A-Z -]+\]$", re.M)


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


def citations(output: str) -> str:
    """The section that holds the quotations, with lines joined."""
    return " ".join(SECTION.split(output.split("[CITATIONS]")[1])[0].split())


def test_demo_succeeds_without_any_setting(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stderr
    assert QUESTION in demo.stderr


def test_demo_prints_the_sections_of_a_brief_in_order(
    demo: subprocess.CompletedProcess[str],
) -> None:
    assert SECTION.findall(demo.stdout) == [
        "[SOURCES]",
        "[CITATIONS]",
        "[EXPANSION TRACE]",
        "[STATS]",
    ]


def test_demo_cites_the_page_with_the_answer_first(demo: subprocess.CompletedProcess[str]) -> None:
    cited = citations(demo.stdout)

    assert "the watcher gets the lock and shuts the server down" in cited
    number = re.search(r"\[1\] chars .*?Source (\[\d\])", cited)
    assert number is not None
    assert re.search(rf"^{re.escape(number[1])} .*/concepts/database\.html ", demo.stdout, re.M)


def test_demo_shows_a_page_two_links_away(demo: subprocess.CompletedProcess[str]) -> None:
    assert "/concepts/database.html (depth 2" in demo.stdout


def test_demo_ends_with_its_question_and_the_best_quotation(
    demo: subprocess.CompletedProcess[str],
) -> None:
    end = " ".join(demo.stdout.split("[STATS]")[1].split())

    assert f"The question was: {QUESTION}" in end
    assert "the watcher gets the lock and shuts the server down" in end


def test_the_search_that_the_demo_suggests_works_as_printed(
    demo: subprocess.CompletedProcess[str], demo_dir: Path, tmp_path: Path
) -> None:
    suggested = demo.stdout.rpartition("What to try next:\n")[2].splitlines()[0]
    environment = {"HOME": str(tmp_path), "PATH": "/nowhere", "WEBRAG_DATA_DIR": str(demo_dir)}

    result = subprocess.run(
        ["/bin/sh", "-c", suggested], env=environment, capture_output=True, text=True, timeout=60
    )

    assert result.returncode == 0, result.stderr
    assert "/concepts/" in result.stdout


def test_piped_demo_holds_no_escape_codes(demo: subprocess.CompletedProcess[str]) -> None:
    assert "\x1b" not in demo.stdout + demo.stderr


def test_readme_shows_sections_the_demo_prints_in_their_order(
    demo: subprocess.CompletedProcess[str],
) -> None:
    shown = SECTION.findall(SHOWN)

    assert shown
    assert [name for name in SECTION.findall(demo.stdout) if name in shown] == shown


def test_readme_quotes_what_the_demo_quotes(demo: subprocess.CompletedProcess[str]) -> None:
    (quotation,) = re.findall("\u27ea.+?\u27eb", citations(SHOWN).partition("[1] chars")[2])

    assert quotation in citations(demo.stdout)


def test_readme_shows_where_the_demo_found_its_quotation(
    demo: subprocess.CompletedProcess[str],
) -> None:
    place = re.compile(r"\[1\] chars \d+-\d+")

    assert place.findall(SHOWN) == place.findall(citations(demo.stdout))[:1]


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
