"""Pages date themselves in many places, which do not always agree."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.html.metadata import read_metadata

URL = "https://site.test/page"
MARCH = datetime(2024, 3, 1, tzinfo=UTC)
MAY = datetime(2024, 5, 2, tzinfo=UTC)
Dates = tuple[datetime | None, datetime | None]


def dates(body: str, head: str = "", url: str = URL) -> Dates:
    page = read_metadata(
        LexborHTMLParser(f"<html><head>{head}</head><body>{body}</body></html>"), url
    )
    return page.published_at, page.modified_at


def meta(name: str, content: str) -> str:
    return f'<meta property="{name}" content="{content}">'


def linked(key: str, moment: str) -> str:
    return f'<script type="application/ld+json">{{"{key}": "{moment}"}}</script>'


def test_metadata_counts_before_the_text() -> None:
    head = meta("article:published_time", "2024-03-01") + linked("dateModified", "2024-05-02")

    assert dates("<p>Posted on 2020-01-01</p>", head) == (MARCH, MAY)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<time datetime="2024-03-01">1 March</time>', (MARCH, None)),
        ("<p>Last updated 2024-05-02</p>", (None, MAY)),
        ("<p>Updated <b>2020-01-01</b></p><footer>Last edited: May 2, 2024</footer>", (None, MAY)),
        ("<footer>Zuletzt am 2. Mai 2024 um 13:22 Uhr geändert.</footer>", (None, MAY)),
        ("<footer>Dernière modification le 2 mai 2024</footer>", (None, MAY)),
        ("<p>Copyright 2019 The Authors</p>", (None, None)),
        ("<p>No date.</p>", (None, None)),
        ("<p>posted 01.03.2024 by us</p>", (MARCH, None)),
        ("<p>Posted on 1. 3. 2024.</p>", (MARCH, None)),
        ("<p>Posted with 1.3.2024.1</p>", (None, None)),
        ("<p>Version 3.3.10 of 2019 is out.</p>", (None, None)),
        ("<h1>Kiln</h1><p>Version 22.04.10</p>", (None, None)),
        ("<h1>Kiln</h1><h2>20.10.24</h2><p>2024-03-01</p>", (MARCH, None)),
        ("<p>Old.</p><script>/* Last updated: 2015-03-02 */</script>", (None, None)),
        (f"<p>1 March 2024</p>{'<p>word word</p>' * 300}<p>1 May 2020</p>", (MARCH, None)),
        ("", (None, None)),
    ],
)
def test_text_is_searched_when_metadata_is_silent(html: str, expected: Dates) -> None:
    assert dates(html) == expected


def test_change_before_publication_is_dropped() -> None:
    head = meta("article:published_time", "2024-05-02") + meta("og:updated_time", "2024-03-01")

    assert dates("", head) == (MAY, None)


@pytest.mark.parametrize(
    "body",
    [
        "<p>By Ada</p><p>1 March 2024</p>",
        "<p>Mar. 1, 2024, 10:15</p>",
        "<p>Freitag, <span>1. März 2024</span></p>",
        "<div>01.03.24, 10:15 Uhr</div>",
        "<div>01/03/24, 10:15</div>",
        "<p>1 de marzo de 2024</p>",
        "<p>1 mars 2024</p>",
        "<p>1 марта 2024</p>",
        "<p>2024/03/01</p>",
        f"<p>(1 March 2024) Mills {'that grind ' * 8}.</p>",
        f"<p>1.3.2024 - Mills {'that grind ' * 8}.</p>",
    ],
)
def test_the_day_beside_the_heading_is_that_of_the_page(body: str) -> None:
    title = "<title>On paper | Site</title>"

    assert dates(f"<h1>On paper</h1>{body}", title) == (MARCH, None)
    assert dates(f"<p>News</p>{body}<h3>On paper</h3>", title) == (MARCH, None)


@pytest.mark.parametrize(
    "body",
    [
        "<p>Those who had bought paper on 1 March 2024 could return it, as the mill said to all who"
        " had asked for it in the days before.</p>",
        f"<p>1 March 2024 was the day on which mills {'that grind ' * 8}.</p>",
        "<pre>created = 2024-03-01</pre>",
        "<p>Updated 1 March 2024</p>",
    ],
    ids=["sentence", "beginning of a sentence", "code", "change"],
)
def test_other_days_beside_the_heading_are_not(body: str) -> None:
    assert dates(f"<h1>On paper</h1>{body}")[0] is None


def test_what_readers_see_counts_before_the_address_and_metadata_that_does_not_say_of_what() -> (
    None
):
    shown = "<h1>On paper</h1><p>1 March 2024</p>"
    address = "https://site.test/2024/05/02/paper"

    assert dates(shown, url=address)[0] == MARCH
    assert dates("", url=address)[0] == MAY
    assert dates(shown, meta("date", "2024-05-02"))[0] == MARCH
    assert dates("", meta("date", "2024-05-02"))[0] == MAY
    assert dates(shown, meta("article:published_time", "2024-05-02"))[0] == MAY


def test_a_page_without_headings_has_its_day_at_its_top() -> None:
    assert dates("<p>1 March 2024</p><p>It burns.</p>")[0] == MARCH


def test_a_page_is_of_the_day_that_readers_see_where_metadata_counts_other_hours() -> None:
    head = meta("article:published_time", "2024-02-29T23:10:00Z")

    assert dates("<h1>On paper</h1><p>1 March 2024</p>", head)[0] == MARCH
    assert dates("", head, "https://site.test/2024/03/01/paper")[0] == MARCH


def test_a_wiki_is_of_the_day_of_its_last_change_and_not_of_days_that_it_tells_of() -> None:
    body = "<h1>Kiln</h1><p>Built 1 March 1994</p><p>First fire: 5 May 1994</p>"
    wiki = '<meta name="generator" content="MediaWiki 1.35.0">'

    assert dates(body)[0] == datetime(1994, 5, 5, tzinfo=UTC)
    assert dates(f"{body}<p>This page was last edited on 2 May 2024.</p>", wiki) == (None, MAY)


def test_marks_of_comments_and_of_other_pages_do_not_date_a_page() -> None:
    mark = "<time itemprop=datePublished datetime=2024-05-02>now</time>"

    assert dates(mark)[0] == MAY
    for box in ("div class=comment", "div class=related-posts", "header", "nav"):
        assert dates(f"<{box}>{mark}</{box.split()[0]}>")[0] is None


@pytest.mark.parametrize(
    "name", ["og:published_time", "publish-date", "pub_date", "dcterms.created", "dc.date"]
)
def test_meta_tags_name_the_day_of_publication_in_many_ways(name: str) -> None:
    assert dates("", meta(name, "2024-03-01")) == (MARCH, None)


@pytest.mark.parametrize(
    ("mark", "day"),
    [
        ("<div class=uploaded-date>01.03.24</div>", MARCH),
        ("<p class=datum>1. März 2024</p>", MARCH),
        ("<p class=news-Date>1.3.24</p>", MARCH),
        ("<p class=update>1.3.24</p>", None),
        ("<p class=version>1.3.24</p>", None),
        ("<aside><p class=date>1.3.24</p></aside>", None),
    ],
)
def test_an_element_that_is_called_a_date_is_one(mark: str, day: datetime | None) -> None:
    assert dates(f"<h1>On paper</h1>{'<p>It burns.</p>' * 100}{mark}")[0] == day


def test_linked_data_with_line_breaks_in_its_texts_is_read() -> None:
    script = '{"description": "Two\nlines", "datePublished": "2024-03-01"}'

    head = f'<script type="application/ld+json">{script}</script>'
    assert dates("", head)[0] == MARCH


def test_first_day_of_unix_time_is_no_date() -> None:
    assert dates("<h1>On time</h1><p>1 January 1970</p>")[0] is None


@given(st.text(alphabet="0123456789.-/ ,MarchJune\n", max_size=60))
def test_no_text_beside_a_heading_is_too_odd(text: str) -> None:
    published, _ = dates(f"<h1>On paper</h1><p>{text}</p>")
    assert published is None or published.year >= 1970
