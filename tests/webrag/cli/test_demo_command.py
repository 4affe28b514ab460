import json
from collections.abc import Callable

import pytest
from click.testing import Result

from webrag.demo import QUESTION
from webrag.indexing.database import Database

Run = Callable[..., Result]


def test_demo_finds_the_answer_two_links_away_in_a_collection_of_its_own(
    webrag: Run, database: Database
) -> None:
    place = ["--data-dir", str(database.config.data_dir)]

    result = webrag("demo", *place)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("[SOURCES]")
    assert "the watcher gets the lock and shuts the server down" in result.stdout
    assert "(depth 2" in result.stdout
    assert "What to try next:" in result.stdout
    assert QUESTION in result.stderr
    status = webrag("status", "--json", "--collection", "webrag_demo", *place)
    assert json.loads(status.stdout)["documents"] > 1


def test_demo_runs_anew_each_time_and_uses_no_key(
    corpus_command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-unused")
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/unused")
    monkeypatch.setenv("MAX_PAGES_PER_RUN", "5")
    corpus_command(None, "demo", "--quiet")

    shown = json.loads(corpus_command(None, "demo", "--json").stdout)

    assert shown["query"] == QUESTION
    assert len(shown["urls_fetched"]) == shown["corpus_stats"]["total_documents"]
