import time

import pytest

from webrag.ingestion.firecrawl.client import ScrapedPage
from webrag.ingestion.firecrawl.source import page_content

SAID = "A sentence that stands on the page. " * 4


def test_own_html_comes_first() -> None:
    raw = f"<html><body><p>{SAID}</p></body></html>"

    assert page_content(ScrapedPage(raw_html=raw, html=f"<p>{SAID}</p>", markdown=SAID)) == raw


@pytest.mark.parametrize("hidden", ["script", "style", "template", "noscript"])
def test_what_nobody_sees_does_not_count(hidden: str) -> None:
    raw = f"<body><{hidden}>{SAID * 20}</{hidden}><div id=app></div></body>"

    content = page_content(ScrapedPage(raw_html=raw, html=f"<p>{SAID}</p>", markdown=SAID))

    assert SAID.strip() in content
    assert hidden not in content


def test_markdown_stands_in_where_all_html_is_empty() -> None:
    content = page_content(ScrapedPage(raw_html="<body></body>", markdown=f"# Guide\n\n{SAID}"))

    assert "<h1>Guide</h1>" in content


def test_other_kinds_than_html_are_read_from_the_markdown() -> None:
    page = ScrapedPage(
        raw_html="%PDF-1.7 " + SAID * 9, markdown=SAID, content_type="application/pdf"
    )

    assert "%PDF" not in page_content(page)


def test_page_without_content_is_empty() -> None:
    assert page_content(ScrapedPage(title="Nothing", status=200)) == ""


@pytest.mark.parametrize("bomb", ["<script>" * 60_000, "<" * 500_000, "<a " * 150_000])
def test_hostile_markup_is_measured_in_linear_time(bomb: str) -> None:
    started = time.perf_counter()

    page_content(ScrapedPage(raw_html=bomb, markdown=SAID))

    assert time.perf_counter() - started < 2
