"""What a terminal hides or obeys is printed as an escape, by the commands themselves."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from webrag.concurrency import run_blocking
from webrag.postgres.database import Database

Run = Callable[..., Result]

PAGE = """<html><head><title>Apples</title></head><body><main><h1>Apples</h1>
<p>This page is about apples, told at some length so that it counts as a page.</p></main></body>"""
UNDRAWN = {
    "direction": "\u202e",
    "isolate": "\u2066",
    "tag": "\U000e0041",
    "zero width": "\u200b",
    "byte order mark": "\ufeff",
    "joiner": "\u034f",
    "shorthand": "\U0001bca0",
    "selector": "\U000e0100",
    "escape": "\x9b",
}
EVERY = "".join(UNDRAWN.values())


def raw(text: str) -> list[str]:
    return [name for name, char in UNDRAWN.items() if char in text]


@pytest.fixture
def stored(static_site: Any, corpus_command: Run, database: Database) -> str:
    """A page whose title, as another version of WebRAG may have stored it, holds all of them."""
    site = static_site({"/a": PAGE})
    assert corpus_command(site, "ingest", f"{site}/a").exit_code == 0
    schema = database.config.collection
    update = f"update {schema}.documents set title = %s"
    run_blocking(database.run(lambda each: each.execute(update, (f"App{EVERY}les",))))
    return str(site)


def test_search_prints_no_undrawn_character_in_its_json(stored: str, corpus_command: Run) -> None:
    result = corpus_command(None, "search", "apples", "--json")

    assert raw(result.output) == []
    titles = [each["title"] for each in json.loads(result.stdout)["passages"]]
    assert titles
    assert "\\u202e" in result.stdout, "a program reads the same text"


def test_status_prints_no_undrawn_character_in_its_json(stored: str, corpus_command: Run) -> None:
    result = corpus_command(None, "status", "--pages", "--json")

    assert raw(result.output) == []
    assert json.loads(result.stdout)["pages"][0]["title"] == f"App{EVERY}les"


def test_status_prints_no_undrawn_character(stored: str, corpus_command: Run) -> None:
    assert raw(corpus_command(None, "status", "--pages").output) == []


@pytest.mark.parametrize("command", ["ingest", "answer", "status", "forget"])
@pytest.mark.parametrize("name", UNDRAWN)
def test_error_about_an_address_prints_no_undrawn_character(
    corpus_command: Run, command: str, name: str
) -> None:
    address = f"https://a{UNDRAWN[name]}b.test:port{UNDRAWN[name]}/"
    more = ["What?"] if command == "answer" else ["--yes"] if command == "forget" else []

    result = corpus_command(None, command, address, *more)

    assert result.exit_code != 0
    assert "port" in result.output
    assert raw(result.output) == []
