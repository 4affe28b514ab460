import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]

PAGE = """<html><head><title>{0}</title></head><body><main><h1>{0}</h1>
<p>This page is about {0}, told at some length so that it counts as a page.</p></main></body>"""


@pytest.fixture
def exported(static_site: Callable[..., Any], corpus_command: Run, tmp_path: Path) -> Path:
    site = static_site({"/a": PAGE.format("apples"), "/b": PAGE.format("bananas")})
    corpus_command(site, "ingest", f"{site}/a", f"{site}/b")
    result = corpus_command(None, "corpus", "export", str(tmp_path / "c.jsonl"))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("2 pages, ")
    return tmp_path / "c.jsonl"


def test_exported_pages_come_back_after_they_were_forgotten(
    exported: Path, corpus_command: Run
) -> None:
    stored = json.loads(corpus_command(None, "status", "--pages", "--json").stdout)["pages"]
    corpus_command(None, "forget", *(page["url"] for page in stored), "--yes")
    result = corpus_command(None, "corpus", "import", str(exported))
    found = corpus_command(None, "search", "What about bananas?")

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("2 pages added")
    assert "Importing pages: 2 of 2" in result.stderr
    assert "This page is about bananas" in found.stdout


def test_bad_line_ends_with_code_1_and_is_named(
    exported: Path, corpus_command: Run, tmp_path: Path
) -> None:
    corpus_command(None, "corpus", "export", str(tmp_path / "plain"))
    with (tmp_path / "plain").open("a") as file:
        file.write("{\n")

    shown = corpus_command(None, "corpus", "import", str(tmp_path / "plain"))
    as_json = corpus_command(None, "corpus", "import", str(tmp_path / "plain"), "--json")

    assert (shown.exit_code, as_json.exit_code) == (1, 1)
    assert "line 4: It is not JSON." in shown.stderr
    assert json.loads(as_json.stdout)["failed"] == {"4": "It is not JSON."}
    assert json.loads(as_json.stdout)["unchanged"] == 2


def test_existing_file_is_not_replaced(exported: Path, corpus_command: Run) -> None:
    result = corpus_command(None, "corpus", "export", str(exported))

    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert corpus_command(None, "corpus", "export", str(exported), "--overwrite").exit_code == 0


def test_missing_file_is_one_sentence(corpus_command: Run, tmp_path: Path) -> None:
    result = corpus_command(None, "corpus", "import", str(tmp_path / "none"))

    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be read" in result.stderr
