from typing import Literal

import pytest

from webrag.corpus.models import AcquiredPage
from webrag.crawling.report import SiteReport
from webrag.presentation.reports import format_ingest, format_site, format_verification

URL = "https://docs.example.org/install"


def test_ingest_report_names_each_outcome() -> None:
    page = AcquiredPage(
        url=URL,
        requested_url=URL,
        page_id=1,
        title=None,
        outcome="updated",
        depth=0,
        chunk_count=4,
        token_count=800,
    )

    assert format_ingest([page], {"https://gone.example.org/": "404: no such page"}) == (
        "[INGEST REPORT]\n"
        "1 of 2 pages are stored.\n"
        "\n"
        f"- Untitled — {URL}\n"
        "  (updated: the page had changed)\n"
        "- https://gone.example.org/\n"
        "  (failed: 404: no such page)"
    )


def test_report_of_many_pages_counts_them_and_lists_those_that_failed() -> None:
    page = AcquiredPage(
        url=URL, requested_url=URL, page_id=1, title=None, outcome="indexed", depth=0,
        chunk_count=4, token_count=800,
    )  # fmt: skip

    lines = format_ingest([page] * 1_000, {"https://gone.example.org/": "404"}).splitlines()

    assert lines[3:] == ["- 1,000 stored", "- https://gone.example.org/", "  (failed: 404)"]


def test_ingest_report_says_that_another_source_was_used() -> None:
    text = format_ingest([], {URL: "no answer"}, degraded=["Firecrawl was down."])

    assert text.endswith("(failed: no answer)\n\nNote: Firecrawl was down.")


def test_site_report_says_that_another_source_was_used() -> None:
    text = format_site(SiteReport(start_url=URL, degraded=("Firecrawl was\ndown.",)))

    assert "\n\nNote: Firecrawl was down.\n\n" in text


def test_site_report_counts_a_page_of_two_addresses_once() -> None:
    report = SiteReport(start_url=URL, pages={"indexed": 25, "alias": 1})

    assert "\n25 pages are stored, 0 could" in format_site(report)
    assert "\n- 1 found under another address, too\n" in format_site(report)


def test_site_report_gives_totals_reasons_and_how_to_go_on() -> None:
    report = SiteReport(
        start_url=URL,
        pages={"indexed": 1_200, "stored": 3},
        failed={"HTTP 500": 2},
        failures={f"{URL}/x": "The page answered HTTP 500."},
        skipped={"another action": 7},
        queued=90,
        ended="limit",
        resumed=True,
        seconds=61.24,
    )

    assert format_site(report) == (
        "[INGEST REPORT]\n"
        f"Site: {URL} (continued)\n"
        "1,203 pages are stored, 2 could not be fetched (61.2 s).\n"
        "- 1,200 stored\n"
        "- 3 already stored\n"
        "\n"
        "Could not be fetched:\n"
        "- 2: HTTP 500\n"
        f"  {URL}/x: The page answered HTTP 500\n"
        "\n"
        "Left alone:\n"
        "- 7: another action\n"
        "\n"
        "The limit was reached: 90 pages that were found have not been visited. Repeat the"
        " command with a higher --max-pages to go on. 7 addresses of the site were left alone, for"
        " the reasons above: `webrag ingest URL` stores any of them."
    )


def test_site_report_offers_to_store_what_is_a_page_only() -> None:
    pictures = {"files of pictures": 18, "actions": 40}
    many = {"too many combinations of query parameters": 1}

    assert format_site(SiteReport(start_url=URL, skipped=pictures, not_pages=58)).endswith(
        "Every other page that was found has been visited."
    )
    assert format_site(SiteReport(start_url=URL, skipped=pictures | many, not_pages=58)).endswith(
        " 1 address of the site was left alone, for the reasons above: `webrag ingest URL` stores"
        " any of them, and the command with a higher --max-pages takes more of those that were too"
        " many."
    )
    # That limit is the same for every size of a crawl.
    assert "higher" not in format_site(
        SiteReport(start_url=URL, skipped={"too many query parameters": 1})
    )


@pytest.mark.parametrize(
    ("caller", "listed"),
    [
        ("cli", "  `webrag status a.test` and `webrag status b.test` list them all.\n"),
        ("mcp", "  `status source_url=a.test` and `status source_url=b.test` list them all.\n"),
    ],
)
def test_site_report_names_some_failures_and_what_lists_those_of_each_host(
    caller: Literal["cli", "mcp"], listed: str
) -> None:
    failures = {
        f"https://{host}/{n}": "HTTP 500" for n in range(3) for host in ("a.test", "b.test")
    }
    report = SiteReport(start_url="https://a.test/", failures=failures)

    text = format_site(report, caller=caller)

    assert text.count(": HTTP 500") == 5
    assert listed in text


def test_quotation_that_was_not_checked_counts_among_all() -> None:
    text = format_verification([], refused={1: "quote is missing"})

    assert text.startswith("[VERIFICATION]\n0 of 1 are verbatim in the stored version.")
