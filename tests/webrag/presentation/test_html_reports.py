from datetime import UTC, datetime

import pytest

from webrag.corpus.models import AcquiredPage, CorpusStatus, PageStatus
from webrag.crawling.report import SiteReport
from webrag.presentation.html.display import ingest_html, site_html, status_html


def status(title: str, *, pages: int = 1) -> CorpusStatus:
    page = PageStatus(
        url="https://example.com/a?b=1&c=2",
        title=title,
        chunk_count=3,
        token_count=400,
        fetched_at=datetime(2026, 1, 2, tzinfo=UTC),
        depth=0,
        gone_at=None,
    )
    return CorpusStatus(
        collection="docs",
        documents=pages,
        gone=0,
        chunks=3,
        tokens=400,
        links=0,
        embedding_model="bundled/x",
        embedding_dimensions=256,
        database="embedded",
        pages=(page,) * pages,
    )


def test_titles_and_addresses_of_pages_do_not_become_markup() -> None:
    shown = status_html(status("<script>alert(1)</script>"))

    assert "<script>" not in shown
    assert 'href="https://example.com/a?b=1&amp;c=2"' in shown


def test_long_listings_say_how_many_pages_are_left_out() -> None:
    assert "and 20 more pages" in status_html(status("Page", pages=120))


def test_a_status_is_one_line_in_a_terminal() -> None:
    assert str(status("Page")) == "<CorpusStatus docs: 1 pages, 3 chunks, bundled/x>"


@pytest.mark.parametrize("kind", ["repr", "str"])
def test_no_page_is_listed_in_a_terminal(kind: str) -> None:
    assert "example.com" not in {"repr": repr, "str": str}[kind](status("Page", pages=9))


def test_an_ingest_report_names_failures_below_more_pages_than_it_lists() -> None:
    pages = [
        AcquiredPage(
            url=f"https://example.com/{number}",
            requested_url=f"https://example.com/{number}",
            page_id=number,
            title="Page",
            outcome="indexed",
            depth=0,
            chunk_count=1,
            token_count=9,
        )
        for number in range(120)
    ]

    shown = ingest_html(pages, {"https://example.com/x": "It timed out."})

    assert "and 20 more pages" in shown
    assert "<td>It timed out.</td>" in shown


def test_an_ingest_report_tells_what_became_of_each_page() -> None:
    page = AcquiredPage(
        url="https://example.com/a",
        requested_url="https://example.com/a",
        page_id=1,
        title="A <b>",
        outcome="indexed",
        depth=0,
        chunk_count=4,
        token_count=1_800,
    )
    shown = ingest_html([page], {"https://example.com/b": "404 & gone"}, ["Another source served."])

    assert "1 of 2 pages are in the corpus" in shown
    assert (
        '<tr><td><a href="https://example.com/a">A &lt;b&gt;</a></td><td>indexed</td><td>4</td>'
        "<td>1,800</td></tr>"
    ) in shown
    assert "<td>404 &amp; gone</td>" in shown
    assert "<p>Another source served.</p>" in shown


def test_a_site_report_tells_totals_reasons_and_how_to_go_on() -> None:
    report = SiteReport(
        start_url="https://example.com/",
        pages={"indexed": 1_200},
        failed={"HTTP 500": 2},
        failures={"https://example.com/x": "The page answered HTTP 500."},
        skipped={"another <action>": 7},
        queued=90,
        ended="limit",
    )
    shown = site_html(report)

    assert "1,200 pages are in the corpus, 2 could not be obtained" in shown
    assert "<tr><td>indexed</td><td>1,200</td></tr>" in shown
    assert "<tr><td>not obtained: HTTP 500</td><td>2</td></tr>" in shown
    assert "<tr><td>left alone: another &lt;action&gt;</td><td>7</td></tr>" in shown
    assert "<td>The page answered HTTP 500.</td>" in shown
    assert "90 pages that were found have not been visited" in shown


def test_tables_outweigh_the_rule_by_which_notebooks_put_texts_to_the_right() -> None:
    shown = status_html(status("Page"))

    assert "table.webrag-report.webrag-report :is(th,td){text-align:left}" in shown
    assert '<table class="webrag-report">' in shown
