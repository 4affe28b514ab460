from datetime import UTC, datetime

import pytest

from webrag.ingestion.html.metadata import PageDates, read_dates

URL = "https://site.test/page"
MARCH = datetime(2024, 3, 1, tzinfo=UTC)
MAY = datetime(2024, 5, 2, tzinfo=UTC)


def test_metadata_counts_before_the_text() -> None:
    metas = {"article:published_time": "2024-03-01"}

    dates = read_dates(metas, [{"dateModified": "2024-05-02"}], "<p>2020-01-01</p>", URL)

    assert dates == PageDates(MARCH, MAY)


@pytest.mark.parametrize(
    ("html", "dates"),
    [
        ('<html><body><time datetime="2024-03-01">1 March</time></body></html>', (MARCH, None)),
        ("<html><body><p>Last updated 2024-05-02</p></body></html>", (None, MAY)),
        ("<html><body><p>Copyright 2019 The Authors</p></body></html>", (None, None)),
        ("<html><body><p>No date.</p></body></html>", (None, None)),
        ("<html><body><p>posted 01.03.2024 by us</p></body></html>", (MARCH, None)),
        ("<html><body><p>Version 3.3.10 of 2019 is out.</p></body></html>", (None, None)),
        ("", (None, None)),
    ],
)
def test_text_is_searched_when_metadata_is_silent(
    html: str, dates: tuple[datetime | None, datetime | None]
) -> None:
    assert read_dates({}, [], html, URL) == PageDates(*dates)


def test_change_before_publication_is_dropped() -> None:
    metas = {"article:published_time": "2024-05-02", "article:modified_time": "2024-03-01"}

    assert read_dates(metas, [], "", URL) == PageDates(MAY, None)
