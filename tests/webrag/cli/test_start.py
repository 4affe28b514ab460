"""What a command imports before it works: what takes a second must come when needed only."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from click.testing import CliRunner, Result

from webrag.cli.main import main
from webrag.postgres.database import Database

Run = Callable[..., Result]

HEAVY = {
    "httpcore2", "httpx", "httpx2", "llama_index.core", "mcp", "nltk", "openai", "pandas",
    "rich", "sqlalchemy", "tiktoken", "transformers",
}  # fmt: skip
PAGE = """<html><head><title>Kettle</title></head><body><main><h1>Kettle</h1>
<p>Clean the filter of the kettle every three weeks with citric acid.</p></main></body></html>"""
PROGRAM = """
import sys
from webrag.cli.main import main
try:
    main(sys.argv[1:], prog_name="webrag")
finally:
    print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
"""


def imported(*arguments: str) -> tuple[set[str], str]:
    """Modules that a command has imported by its end, and what it printed."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=60
    )
    return set(ran.stderr.splitlines()), ran.stdout


def place(database: Database) -> Sequence[str]:
    config = database.config
    return "--data-dir", str(config.data_dir), "--collection", str(config.collection)


def test_help_imports_neither_the_database_nor_the_settings() -> None:
    modules, shown = imported("--help")

    assert "search" in shown
    assert not modules & {*HEAVY, "psycopg", "numpy", "pydantic"}
    assert len(modules) < 450


def test_a_command_collects_garbage_seldom_and_leaves_the_process_as_it_was() -> None:
    usual, during = gc.get_threshold(), []

    @main.command("probe", hidden=True)
    def probe() -> None:
        during.append(gc.get_threshold()[0])

    try:
        CliRunner().invoke(main, ["probe"], catch_exceptions=False)
    finally:
        del main.commands["probe"]

    assert during[0] > 10 * usual[0]
    assert gc.get_threshold() == usual


@pytest.mark.parametrize(("own", "kept"), [(None, "1"), ("4", "4")])
def test_a_command_computes_on_one_core_unless_the_user_says_how_many(
    own: str | None, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "OPENBLAS_NUM_THREADS"
    monkeypatch.setenv(name, own or "")
    if own is None:
        monkeypatch.delenv(name)

    CliRunner().invoke(main, ["status", "--help"], catch_exceptions=False)

    assert os.environ[name] == kept


def test_wrong_path_imports_nothing_that_answers() -> None:
    modules, _ = imported("answer", "./kettle.html", "How is it cleaned?", "--data-dir", "/tmp")

    assert not modules & {*HEAVY, "psycopg.pq", "webrag.wiring.components"}


def test_status_imports_no_llama_index(database: Database) -> None:
    modules, shown = imported("status", "-q", *place(database))

    assert "Pages stored: 0" in shown
    assert not modules & {*HEAVY, "workflows", "webrag.orchestration.engine"}
    assert not modules & {"webrag.answering.evidence", "webrag.retrieval.search"}


def test_search_imports_no_llama_index(
    static_site: Callable[..., Any], corpus_command: Run, database: Database
) -> None:
    site = static_site({"/": PAGE})
    corpus_command(site, "ingest", f"{site}/")

    modules, shown = imported("search", "How is the filter cleaned?", "-q", *place(database))

    assert "every three weeks with citric acid" in shown
    assert not modules & {*HEAVY, "numpy.ma", "webrag.answering.evidence", "workflows"}
    assert not modules & {"http.cookiejar", "tomllib", "webrag.ingestion.site_maps.reading"}
    assert not modules & {"safetensors", "webrag.orchestration.links.expander"}
    assert len(modules) < 1_000
