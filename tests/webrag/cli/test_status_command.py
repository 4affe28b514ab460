import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]

PAGE = """<html><head><title>{0}</title></head><body><main><h1>{0}</h1>
<p>This page is about {0}, told at some length so that it counts as a page.</p></main></body>"""


@pytest.fixture
def site(static_site: Callable[..., Any]) -> Any:
    """Two pages."""
    return static_site({"/a": PAGE.format("apples"), "/b": PAGE.format("bananas")})


def test_status_lists_what_is_stored(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a", f"{site}/b")

    result = corpus_command(site, "status", "--pages")

    assert "Pages stored: 2" in result.stdout
    assert f"{site}/a" in result.stdout


def test_status_shows_totals_of_each_site_and_no_pages(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a", f"{site}/b")

    shown = corpus_command(site, "status").stdout

    assert f"- {site.removeprefix('http://')}: 2 pages, " in shown
    assert f"{site}/a" not in shown
    assert "`webrag status --pages` lists the pages." in shown


def test_json_status_holds_no_pages_unless_asked(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a")

    result = corpus_command(site, "status", "--json")

    shown = json.loads(result.stdout)
    assert (shown["documents"], shown["pages"], len(shown["sites"])) == (1, [], 1)


def test_status_of_an_empty_corpus_says_what_to_do(site: Any, corpus_command: Run) -> None:
    assert "Nothing is stored yet" in corpus_command(site, "status").stdout


def test_status_of_an_unknown_page_is_not_that_of_an_empty_corpus(
    site: Any, corpus_command: Run
) -> None:
    corpus_command(site, "ingest", f"{site}/a", f"{site}/b")

    result = corpus_command(site, "status", f"{site}/nope")

    assert f"{site}/nope is not stored; 2 other pages are." in result.stdout


def test_status_names_pages_that_were_never_obtained(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/missing", "--quiet")

    result = corpus_command(site, "status", "--pages")

    assert "Could not be fetched: 1" in result.stdout
    assert f"- {site}/missing\n  (failed " in result.stdout
    assert "HTTP 404" in result.stdout


def test_status_of_a_failed_page_gives_the_reason(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/missing", "--quiet")

    shown = json.loads(corpus_command(site, "status", f"{site}/missing", "--json").stdout)

    assert (shown["documents"], shown["outcomes"]) == (0, {"failed": 1})
    assert shown["failures"][0]["status"] == 404


def test_status_tells_what_came_of_the_last_request(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a")
    corpus_command(site, "ingest", f"{site}/a", "--refresh")

    result = corpus_command(site, "status", "--pages")

    assert ": unchanged)" in result.stdout
