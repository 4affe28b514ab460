"""Versions at the terminal: named when pages are stored, asked for, refused."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import Result

QUESTION = "When is an idle connection closed?"
OLD = "The broker closes a connection that is idle for 95 seconds, whatever its clients want."
NEW = "The broker closes a connection that is idle for 30 seconds, whatever its clients want."

Run = Callable[..., Result]


def page(text: str) -> str:
    return f"<html><title>Limits</title><body><main><h1>Limits</h1><p>{text}</p></main></body>"


@pytest.fixture
def site(static_site: Any, corpus_command: Run) -> Any:
    started = static_site(
        {"/1.9/a": page(OLD), "/1.10/a": page(NEW), "/plain": page(f"{OLD} It is so.")}
    )
    urls = (f"{started}/1.9/a", f"{started}/1.10/a")
    assert corpus_command(started, "ingest", *urls).exit_code == 0
    return started


@pytest.fixture
def host(site: Any) -> str:
    return urlsplit(str(site)).netloc


@pytest.mark.parametrize(
    "options", [("--site", "{host}@1.9"), ("--site", "{host}", "--version", "1.9")]
)
def test_version_is_searched_however_it_is_named(
    corpus_command: Run, site: Any, host: str, options: tuple[str, ...]
) -> None:
    named = [each.format(host=host) for each in options]

    result = corpus_command(site, "search", QUESTION, *named)

    assert result.exit_code == 0, result.output
    assert OLD in result.stdout.replace("\n", " ")
    assert "was searched" not in result.output


def test_queued_page_keeps_the_version_that_it_was_given(
    corpus_command: Run, site: Any, host: str
) -> None:
    corpus_command(site, "ingest", f"{site}/plain", "--version", "3.2", "--queue")
    corpus_command(site, "jobs", "work", "--until-empty")

    shown = corpus_command(site, "status")
    listed = json.loads(corpus_command(site, "status", "--json").stdout)["sites"]

    assert "\n  versions: 3.2, 1.10, 1.9\n" in shown.stdout
    assert [each["versions"] for each in listed] == [{host: ["3.2", "1.10", "1.9"]}]


def test_newest_version_is_searched_and_named(corpus_command: Run, site: Any, host: str) -> None:
    result = corpus_command(site, "search", QUESTION, "--json")

    document = json.loads(result.stdout)
    assert {each["version"] for each in document["passages"]} == {"1.10"}
    assert f"Of {host}, version 1.10 was searched; also stored: 1.9." in document["warnings"][0]


def test_named_page_of_another_version_is_refused(
    corpus_command: Run, site: Any, host: str
) -> None:
    url = f"{site}/1.9/a"

    other = corpus_command(site, "answer", url, QUESTION, "--site", host, "--version", "2")
    own = corpus_command(site, "answer", url, QUESTION, "--site", host, "--version", "1.9")

    assert (other.exit_code, own.exit_code) == (2, 0)
    assert f"Version 2 of {host} is not stored; there are 1.10, 1.9." in other.stderr


@pytest.mark.parametrize("command", ["search", "ask"])
def test_missing_version_ends_with_code_2_and_those_there_are(
    corpus_command: Run, site: Any, host: str, command: str
) -> None:
    result = corpus_command(site, command, QUESTION, "--site", host, "--version", "2")

    assert result.exit_code == 2
    assert "is not stored; there are 1.10, 1.9." in result.stderr


def test_named_version_is_stored(corpus_command: Run, site: Any) -> None:
    ingested = corpus_command(site, "ingest", f"{site}/plain", "--version", "v3.2", "--json")
    found = corpus_command(site, "search", QUESTION, "--version", "3.2", "--json")

    assert json.loads(ingested.stdout)["pages"][0]["version"] == "3.2"
    assert [each["url"] for each in json.loads(found.stdout)["passages"]] == [f"{site}/plain"]


def test_crawled_pages_get_the_named_version(corpus_command: Run, site: Any) -> None:
    start = f"{site}/plain"

    crawled = corpus_command(site, "ingest", start, "--max-pages", "1", "--version", "3.2")

    assert crawled.exit_code == 0, crawled.output
    assert corpus_command(site, "search", QUESTION, "--version", "3.2").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("ingest", "https://docs.test/", "--version", "newest"),
        ("search", QUESTION, "--version", "newest"),
    ],
)
def test_what_is_no_version_is_refused_at_once(webrag: Run, arguments: tuple[str, ...]) -> None:
    result = webrag(*arguments)

    assert result.exit_code == 2
    assert "The version 'newest' cannot be used" in result.stderr


def test_text_of_a_moment_is_quoted_after_the_page_has_changed(
    corpus_command: Run, static_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBRAG_KEEP_VERSIONS", "1")
    routes = {"/a": page(OLD)}
    started = static_site(routes)
    url = f"{started}/a"
    assert corpus_command(started, "ingest", url).exit_code == 0
    moment = datetime.now(UTC).isoformat()
    routes["/a"] = page(NEW)
    assert corpus_command(started, "ingest", url, "--refresh").exit_code == 0

    answered = corpus_command(started, "answer", url, QUESTION, "--as-of", moment, "--json")
    asked = corpus_command(started, "ask", QUESTION, "--as-of", moment)
    refused = corpus_command(started, "search", QUESTION, "--as-of", "1w")

    document = json.loads(answered.stdout)
    quotation = document["passages"][0]["quotations"][0]
    assert (quotation["text"], quotation["as_of"]) == (OLD, document["as_of"])
    assert datetime.fromisoformat(document["as_of"]).isoformat() == moment
    assert "for 95 seconds" in asked.stdout
    assert f"Limits, as of {moment[:10]}" in asked.stdout
    assert (refused.exit_code, refused.stdout) == (2, "")
    # Of the same minute, or of two.
    told = rf"is not there; the earliest texts? held: from {moment[:10]} \d\d:\d\d"
    assert re.search(told, refused.stderr)
