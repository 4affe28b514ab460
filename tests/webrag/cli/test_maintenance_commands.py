"""Forget, reindex, doctor and drop, as they are typed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from psycopg import sql

from webrag.concurrency import run_blocking
from webrag.postgres.database import Database, table

Run = Callable[..., Result]

PAGE = """<html><head><title>{0}</title></head><body><main><h1>{0}</h1>
{1}</main></body></html>"""
SECTION = """<h2>Part {1} of {0}</h2>
<p>Part {1} tells about {0} number {1}, at some length, so that it counts.</p>"""
DIMENSIONS = 48  # of the embedding server


def page(title: str, sections: int = 2) -> str:
    return PAGE.format(title, "".join(SECTION.format(title, n) for n in range(sections)))


@pytest.fixture
def site(static_site: Callable[..., Any]) -> Any:
    return static_site({f"/{name}": page(name) for name in ("apples", "bananas", "cherries")})


@pytest.fixture
def filled(site: Any, corpus_command: Run) -> Any:
    result = corpus_command(site, "ingest", *(f"{site}/{n}" for n in ("apples", "bananas")))
    assert result.exit_code == 0, result.stderr
    return site


@pytest.fixture
def other_model(embedding_service: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The settings ask for the model of the embedding server."""
    monkeypatch.setenv("EMBEDDING_PROVIDER", "openai_compatible")
    monkeypatch.setenv("EMBEDDING_MODEL", "test-embedding")
    monkeypatch.setenv("EMBEDDING_DIMENSIONS", str(DIMENSIONS))
    monkeypatch.setenv("EMBEDDING_BASE_URL", embedding_service.url)
    return embedding_service


def status(corpus_command: Run, *arguments: str) -> Any:
    result = corpus_command(None, "status", "--pages", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_forget_removes_the_page_and_says_so(filled: Any, corpus_command: Run) -> None:
    result = corpus_command(None, "forget", f"{filled}/apples", "--yes")

    assert (result.exit_code, result.stdout) == (
        0,
        f"[FORGET REPORT]\n1 page deleted.\n- {filled}/apples\n",
    )
    assert [each["url"] for each in status(corpus_command)["pages"]] == [f"{filled}/bananas"]


def test_forget_of_an_unknown_url_fails_and_forgets_the_others(
    filled: Any, corpus_command: Run
) -> None:
    result = corpus_command(None, "forget", f"{filled}/apples", f"{filled}/nothing", "-q", "--yes")

    assert result.exit_code == 1
    assert result.stderr == f"Error: {filled}/nothing is not stored.\n"
    assert status(corpus_command)["documents"] == 1


def test_forget_takes_a_whole_site(filled: Any, corpus_command: Run) -> None:
    host = filled.removeprefix("http://")
    other = corpus_command(None, "forget", "--site", "docs.test", "--json", "--yes")
    own = corpus_command(None, "forget", "--site", host, "--json", "--yes")

    assert json.loads(other.stdout)["removed"] == []
    assert len(json.loads(own.stdout)["removed"]) == 2
    assert status(corpus_command)["documents"] == 0


def test_forget_takes_pages_older_than_an_age(
    filled: Any, corpus_command: Run, database: Database
) -> None:
    kept = corpus_command(None, "forget", "--older-than", "1h", "--json", "--yes")
    collection = database.config.collection
    older = sql.SQL("update {} set fetched_at = now() - interval '2 hours'").format(
        table(collection, "documents")
    )
    run_blocking(database.run(lambda connection: connection.execute(older)))
    gone = corpus_command(None, "forget", "--older-than", "1h", "--json", "--yes")

    assert len(json.loads(kept.stdout)["removed"]) == 0
    assert len(json.loads(gone.stdout)["removed"]) == 2


@pytest.mark.parametrize("arguments", [(), ("http://a.test/", "--site", "a.test")])
def test_forget_wants_urls_or_conditions(corpus_command: Run, arguments: tuple[str, ...]) -> None:
    result = corpus_command(None, "forget", "--yes", *arguments)

    assert result.exit_code == 2
    assert "URLs, or a site" in result.stderr


def test_age_without_a_unit_is_refused(corpus_command: Run) -> None:
    result = corpus_command(None, "forget", "--older-than", "30")

    assert result.exit_code == 2
    assert "such as 30d" in result.stderr


def test_forget_in_an_empty_database_is_a_sentence(corpus_command: Run) -> None:
    result = corpus_command(None, "forget", "http://docs.test/", "--yes")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "http://docs.test/ is not stored." in result.stderr


def test_forget_needs_yes_when_nobody_can_be_asked(filled: Any, corpus_command: Run) -> None:
    result = corpus_command(None, "forget", f"{filled}/apples")

    assert (result.exit_code, status(corpus_command)["documents"]) == (2, 2)
    assert "needs --yes" in result.stderr


def test_drop_needs_yes_when_nobody_can_be_asked(
    filled: Any, corpus_command: Run, database: Database
) -> None:
    result = corpus_command(None, "corpus", "drop", database.config.collection)

    assert (result.exit_code, status(corpus_command)["documents"]) == (2, 2)
    assert "--yes" in result.stderr


def test_drop_removes_a_collection(filled: Any, corpus_command: Run, database: Database) -> None:
    name = database.config.collection
    dropped = corpus_command(None, "corpus", "drop", name, "--yes")
    again = corpus_command(None, "corpus", "drop", name, "--yes")

    assert dropped.stdout == f"The collection {name} was dropped.\n"
    assert again.exit_code == 1
    assert f"There is no collection '{name}'" in again.stderr


def test_status_lists_the_other_collections(filled: Any, webrag: Run, database: Database) -> None:
    place = ["--data-dir", str(database.config.data_dir), "--collection", "test_other_collection"]
    try:
        shown = webrag("status", *place)
        assert f"{database.config.collection} (2 pages)" in shown.stdout
    finally:
        webrag("corpus", "drop", "test_other_collection", "--yes", *place)


def test_doctor_finds_a_sound_corpus_sound(filled: Any, corpus_command: Run) -> None:
    result = corpus_command(None, "corpus", "check", "--all", "--json")

    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["ok"]) == (0, True), shown
    assert {check["level"] for check in shown["checks"]} == {"ok"}
    offsets = next(check for check in shown["checks"] if check["name"] == "offsets")
    assert offsets["found"].startswith("2 of 2 pages verified")


def test_doctor_fails_with_a_remedy_when_the_model_does_not_fit(
    filled: Any, corpus_command: Run, other_model: Any
) -> None:
    result = corpus_command(None, "corpus", "check")

    assert result.exit_code == 1
    assert "fail  model" in result.stdout
    assert "webrag reindex" in result.stdout


def test_refused_model_is_accepted_after_the_command_the_refusal_names(
    filled: Any, corpus_command: Run, other_model: Any
) -> None:
    refused = corpus_command(None, "search", "What about apples?")
    done = corpus_command(None, "reindex")
    found = corpus_command(None, "search", "What about apples?", "--json")

    assert refused.exit_code == 2
    assert "webrag reindex" in refused.stderr
    assert done.exit_code == 0, done.stderr
    assert "openai_compatible/test-embedding" in done.stdout
    assert found.exit_code == 0, found.stderr
    assert f"{filled}/apples" in found.stdout


def test_reindex_and_back_leaves_a_sound_corpus(
    filled: Any,
    corpus_command: Run,
    other_model: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = json.loads(corpus_command(None, "reindex", "--json").stdout)
    added = corpus_command(filled, "ingest", f"{filled}/cherries")
    monkeypatch.setenv("EMBEDDING_PROVIDER", "bundled")
    back = json.loads(corpus_command(None, "reindex", "--json").stdout)
    again = json.loads(corpus_command(None, "reindex", "--json").stdout)
    doctor = corpus_command(None, "corpus", "check", "--all", "--json")

    assert added.exit_code == 0, added.stderr
    assert (before["dimensions"], back["dimensions"]) == (DIMENSIONS, 256)
    assert back["previous_model"] == "openai_compatible/test-embedding"
    assert back["chunks"] > before["chunks"] > 0
    assert again["was_current"]
    assert doctor.exit_code == 0, doctor.stdout
    assert status(corpus_command)["embedding_dimensions"] == 256


def test_killed_reindex_serves_the_old_index_and_goes_on_where_it_stopped(
    static_site: Callable[..., Any],
    corpus_command: Run,
    other_model: Any,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = static_site({f"/{n}": page(f"animal{n}", 60) for n in range(8)})
    monkeypatch.setenv("EMBEDDING_PROVIDER", "bundled")
    filled = corpus_command(site, "ingest", *(f"{site}/{n}" for n in range(8)))
    assert filled.exit_code == 0, filled.stderr
    # 256 chunks go in eight requests and are stored then; the ninth belongs to the next ones.
    other_model.holds_from = 9
    command = [sys.executable, "-m", "webrag", "reindex", "--data-dir"]
    command += [str(database.config.data_dir), "--collection", database.config.collection]
    chosen = {"EMBEDDING_PROVIDER": "openai_compatible"}
    process = subprocess.Popen(
        command, env={**os.environ, **chosen}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while other_model.requests < 9 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()

    meanwhile = corpus_command(None, "search", "Tell me about animal3", "--json")
    doctor = corpus_command(None, "corpus", "check", "--json")
    other_model.holds_from = None
    other_model.held.set()
    monkeypatch.setenv("EMBEDDING_PROVIDER", "openai_compatible")
    resumed = corpus_command(None, "reindex", "--json")

    assert meanwhile.exit_code == 0, meanwhile.stderr
    assert f"{site}/3" in meanwhile.stdout
    unfinished = next(c for c in json.loads(doctor.stdout)["checks"] if c["name"] == "model")
    assert unfinished["level"] == "warn"
    report = json.loads(resumed.stdout)
    assert report["chunks"] == 480
    assert report["embedded"] == 480 - 256
    assert corpus_command(None, "corpus", "check", "--all", "--quiet").exit_code == 0


def test_reindex_of_nothing_is_a_sentence(corpus_command: Run, other_model: Any) -> None:
    result = corpus_command(None, "reindex")

    assert result.exit_code == 2
    assert "does not exist yet" in result.stderr


def test_failing_embedding_leaves_the_corpus_as_it_was(
    filled: Any, corpus_command: Run, other_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDING_DIMENSIONS", "12")
    failed = corpus_command(None, "reindex")
    monkeypatch.setenv("EMBEDDING_PROVIDER", "auto")

    assert failed.exit_code == 1
    assert "48" in failed.stderr
    assert status(corpus_command)["embedding_dimensions"] == 256
    assert corpus_command(None, "search", "apples").exit_code == 0


def test_forget_asks_on_a_terminal(filled: Any, database: Database, tmp_path: Path) -> None:
    """The answer comes over a real pseudo-terminal."""
    import pty

    parent, child = pty.openpty()
    command = [sys.executable, "-m", "webrag", "forget", f"{filled}/apples", "--data-dir"]
    command += [str(database.config.data_dir), "--collection", database.config.collection]
    process = subprocess.Popen(
        command, stdin=child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    os.write(parent, b"n\n")
    out, err = process.communicate(timeout=60)
    os.close(parent)
    os.close(child)

    assert (process.returncode, out) == (1, "")
    assert "Forget 1 page?" in err
