from datetime import UTC, datetime

import pytest

from webrag.indexing.models import CorpusStatus, PageStatus
from webrag.presentation.html_status import status_html


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
