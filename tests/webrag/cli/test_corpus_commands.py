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


def test_ingest_reports_every_page(site: Any, corpus_command: Run) -> None:
    result = corpus_command(site, "ingest", f"{site}/a", f"{site}/b")

    assert result.exit_code == 0, result.stderr
    assert "2 of 2 pages" in result.stdout
    assert f"{site}/b" in result.stdout


def test_ingest_of_a_fresh_page_makes_no_request(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a")
    site.requests.clear()

    result = corpus_command(site, "ingest", f"{site}/a", "--json")

    assert json.loads(result.stdout)["pages"][0]["outcome"] == "stored"
    assert site.requests == []


def test_refresh_asks_the_site_again(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a")
    site.requests.clear()

    corpus_command(site, "ingest", f"{site}/a", "--refresh")

    assert "/a" in [request.path for request in site.requests]


def test_failed_page_ends_with_code_1_and_keeps_the_others(site: Any, corpus_command: Run) -> None:
    result = corpus_command(site, "ingest", f"{site}/a", f"{site}/missing", "--json")

    shown = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [page["url"] for page in shown["pages"]] == [f"{site}/a"]
    assert list(shown["failed"]) == [f"{site}/missing"]


def test_only_page_failing_is_one_sentence(site: Any, corpus_command: Run) -> None:
    result = corpus_command(site, "ingest", f"{site}/missing", "--quiet")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("Error: ")


def test_wrong_url_is_refused_before_anything_is_fetched(site: Any, corpus_command: Run) -> None:
    result = corpus_command(site, "ingest", f"{site}/a", "ftp://example.com/", "--quiet")

    assert (result.exit_code, result.stdout, site.requests) == (2, "", [])


def test_status_lists_what_is_stored(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a", f"{site}/b")

    result = corpus_command(site, "status")

    assert "Documents indexed: 2" in result.stdout
    assert f"{site}/a" in result.stdout


def test_status_can_leave_the_pages_out(site: Any, corpus_command: Run) -> None:
    corpus_command(site, "ingest", f"{site}/a")

    result = corpus_command(site, "status", "--no-urls", "--json")

    shown = json.loads(result.stdout)
    assert (shown["documents"], shown["pages"]) == (1, [])


def test_status_of_an_empty_corpus_says_what_to_do(site: Any, corpus_command: Run) -> None:
    assert "Nothing is indexed yet" in corpus_command(site, "status").stdout
