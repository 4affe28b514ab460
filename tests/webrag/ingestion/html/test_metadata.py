from datetime import UTC, datetime

import pytest
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.html.metadata import read_metadata
from webrag.ingestion.models import PageMetadata
from webrag.ingestion.versions import parse_date

URL = "https://www.site.test/docs/page"


def read(head: str, body: str = "", *, root: str = "<html>") -> PageMetadata:
    return read_metadata(
        LexborHTMLParser(f"{root}<head>{head}</head><body>{body}</body></html>"), URL
    )


@pytest.mark.parametrize(
    ("head", "body", "title"),
    [
        ("<title>Install | Site</title>", "<h1>Install</h1>", "Install"),
        ("<title>Install — Site 1.2</title>", "<h1>Install<a>¶</a></h1>", "Install"),
        ("<title>Site: Install</title>", "<h1>Welcome</h1>", "Site: Install"),
        ('<title>A | S</title><meta property="og:title" content="A">', "", "A"),
        ("", "<h1>Only <b>heading</b></h1>", "Only heading"),
        ('<script type="application/ld+json">{"headline": "News"}</script>', "", "News"),
        ('<script type="application/ld+json">{"headline": null}</script>', "", None),
        ("<title> spaced \n out </title>", "", "spaced out"),
        ("", "<p>x</p>", None),
    ],
)
def test_title_is_the_best_of_several_places(head: str, body: str, title: str | None) -> None:
    assert read(head, body).title == title


def test_description_comes_from_either_meta_tag() -> None:
    assert read('<meta name="Description" content=" About x ">').description == "About x"
    assert read('<meta property="og:description" content="About y">').description == "About y"


def test_languages_come_from_the_root_element_first() -> None:
    head = '<meta property="og:locale" content="fr_FR">'

    assert list(filter(None, read(head, root='<html lang="en-GB">').languages)) == [
        "en-GB",
        "fr_FR",
    ]


def test_dates_come_from_meta_tags_and_linked_data() -> None:
    meta = read('<meta property="article:published_time" content="2024-02-03T04:05:06Z">')
    linked = read(
        '<script type="application/ld+json">'
        '{"@graph": [{"datePublished": "2023-05-06", "dateModified": "2023-07"}]}</script>'
    )

    assert meta.published_at == datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert linked.published_at == datetime(2023, 5, 6, tzinfo=UTC)
    assert linked.modified_at == datetime(2023, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize("offset", ["+02:00", "-0800", " +09:00"])
def test_a_page_is_of_the_day_that_it_writes_for_its_readers(offset: str) -> None:
    page = read(f'<meta property="article:published_time" content="2024-02-03T00:30:00{offset}">')
    late = read(f'<meta property="article:published_time" content="2024-02-03T23:30:00{offset}">')

    assert page.published_at == datetime(2024, 2, 3, 0, 30, tzinfo=UTC)
    assert late.published_at == datetime(2024, 2, 3, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize("day", ["14.03.2021", "14. März 2021", "14 March 2021", "2021-03-14"])
def test_a_day_beside_the_heading_dates_a_page_that_says_nothing_else(day: str) -> None:
    march = datetime(2021, 3, 14, tzinfo=UTC)

    assert read("", f"<h1>Paper</h1><div>Vienna, {day}</div><p>It burns.</p>").published_at == march
    assert read("", f"<div>{day} | News</div><h1>Paper</h1><p>It burns.</p>").published_at == march
    far = f"<h1>Paper</h1><p>{'It burns. ' * 99}</p><p>{day}</p>"
    assert read("", far).published_at is None


def test_an_author_is_a_person_rather_than_a_user_an_office_or_the_site() -> None:
    head = '<meta name="author" content="{}"><h1>On paper</h1>'
    byline = "<p class=byline>By Ada Example</p>"

    for name in ("adaex", "The Paper Team", "Paper Mills e.V.", "site"):
        assert read(head.format(name) + byline).author == "Ada Example"
        assert read(head.format(name)).author == name
    assert read(head.format("Se Young Kim") + byline).author == "Se Young Kim"


def test_a_box_around_page_and_sidebar_does_not_make_a_byline_another_pages() -> None:
    byline = "<span class='author'>Ada Example</span>"

    assert read(f"<div class=has-sidebar><h1>Paper</h1>{byline}</div>").author == "Ada Example"
    assert read(f"<h1>Paper</h1><div class=sidebar>{byline}</div>").author is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "soon",
            "2024-13-01",
            "0001-01-01",
            "0000",
            "9999-01-01",
            "10000-01-01",
            "12",
            "1" * 5_000,
        ),
        *("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2024-01-01T00:00:00+99:99"),
        *("Fri, 31 Dec 9999 23:59:59 -2400", "Fri, 31 Dec 99999999999 23:59:59 GMT"),
        *("99999999999999999999 Jan 1 00:00:00", f"1 Jan {'9' * 5_000} 00:00:00"),
    ],
)
def test_implausible_dates_are_none(text: str) -> None:
    assert parse_date(text) is None


def test_mail_style_date_is_read() -> None:
    assert parse_date("Sat, 03 Feb 2024 04:05:06 GMT") == datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("/real?utm_source=x", URL),
        ("/docs/page/?utm_source=x", "https://www.site.test/docs/page/"),
        ("/docs/page?page=1", URL),
        ("https://site.test/docs/page", "https://site.test/docs/page"),
        ("https://other.test/docs/page", URL),
        ("/", URL),
        ("javascript:x", URL),
    ],
)
def test_canonical_link_counts_for_spellings_of_the_same_address_only(href: str, url: str) -> None:
    assert read(f'<link rel="canonical" href="{href}">').url == url


def test_broken_linked_data_is_ignored() -> None:
    broken = '<script type="application/ld+json">{"a": [</script>'

    assert read(broken + "<title>T</title>").title == "T"


SITE = '<meta property="og:site_name" content="The Mill Post">'
SITES = {
    "heading of the site": (
        f"<title>Bread rises | The Mill Post</title>{SITE}",
        "<h1>The Mill Post</h1><h2>Bread rises</h2>",
    ),
    "logo that leads home": (
        "<title>Bread rises - Mill News of Today</title>",
        "<h1><a href=/>Mill News of Today</a></h1><h2>Bread rises</h2>",
    ),
    "logo that leads to the first page of a copied site": (
        "<title>Bread rises - Mill News of Today</title>",
        "<h1><a href=./index.html>Mill News of Today</a></h1><h2>Bread rises</h2>",
    ),
    "no heading": (f"<title>Bread rises – The Mill Post</title>{SITE}", "<p>x</p>"),
    "name first": (
        f"<title>The Mill Post: news :: Bread rises</title>{SITE}",
        "<h2>Bread rises</h2>",
    ),
    "publisher": (
        "<title>Bread rises « Grain Weekly</title><script type=application/ld+json>"
        '{"@type": "NewsArticle", "publisher": {"name": "Grain Weekly"}}</script>',
        "<p>x</p>",
    ),
    "name of the host": ("<title>Bread rises | Site</title>", "<h1>Site</h1>"),
    "unfilled template": (
        "<title>The Mill Post - </title>",
        "<h1>The Mill Post</h1><h1>Bread rises</h1>",
    ),
}


@pytest.mark.parametrize(("head", "body"), SITES.values(), ids=SITES)
def test_title_is_that_of_the_page_and_not_of_its_site(head: str, body: str) -> None:
    assert read(head, body).title == "Bread rises"


LINKED = '<script type="application/ld+json">{}</script>'
AUTHORS = {
    "meta tag": ('<meta name="author" content="By Ada Wick">', "", "Ada Wick"),
    "linked data": (LINKED.format('{"author": {"name": "Ada Wick"}}'), "", "Ada Wick"),
    "several": (
        LINKED.format('{"author": [{"name": "Ada Wick"}, "Bo Flint"]}'),
        "",
        "Ada Wick, Bo Flint",
    ),
    "reference": (
        LINKED.format(
            '{"@graph": [{"author": {"@id": "#a"}}, {"@id": "#a", "@type": "Person",'
            ' "name": "Ada Wick"}]}'
        ),
        "",
        "Ada Wick",
    ),
    "microdata": ("", "<p itemprop=author><b itemprop=name>Ada Wick</b>, editor</p>", "Ada Wick"),
    "link": ("", "<p>In print, by <a rel=author href=/ada>Ada Wick</a></p>", "Ada Wick"),
    "byline": ("", "<p class=byline>Von Ada Wick</p>", "Ada Wick"),
    "after a day": ("", "<p class=byline>Posted on May 2, 2024 by Ada Wick</p>", "Ada Wick"),
    "before a day": ("", "<p class=byline>von Ada Wick, 2. Mai 2024</p>", "Ada Wick"),
    "before a day alone": ("", "<p class=author>Ada Wick 2. Mai 2024</p>", "Ada Wick"),
    "among other facts": (
        "",
        "<p class=author>2. Mai 2024 · von Ada Wick · in Paper</p>",
        "Ada Wick",
    ),
    "after a label": ("", "<p class=author>Text & Fotos: Ada Wick</p>", "Ada Wick"),
    "for previews": (
        '<meta name="twitter:label1" content="Verfasst von">'
        '<meta name="twitter:data1" content="Ada Wick">',
        "",
        "Ada Wick",
    ),
    "user": ("", "<p class=author>ada1984</p>", "ada1984"),
    "particle": ("", "<p class=author>Ada von Wick</p>", "Ada von Wick"),
    "more of the source that names most": (
        '<meta name="author" content="Ada Wick">',
        "<p class=byline>By Ada Wick and Bo Flint</p>",
        "Ada Wick and Bo Flint",
    ),
    "parts of a line": ("", "<span>By</span> <a href=/team/ada>Ada Wick</a>", "Ada Wick"),
    "after a day apart": (
        "",
        "<p><time>May 2, 2024</time> <span>By</span> <a href=/ada>Ada Wick</a></p>",
        "Ada Wick",
    ),
    "below a line": ("", "<p>A long read<br>By Ada Wick</p>", "Ada Wick"),
    "end of a line about something else": (
        "",
        "<ul><li><code>$missing</code> by <a href=/m>Missing Plugin</a>: tracks.</li></ul>",
        None,
    ),
    "words of a link": ("", "<ul><li><a href=/t>Text Widget Overview</a></li></ul>", None),
    "byline below such a line": (
        "",
        "<p><code>$missing</code> by <a href=/m>Missing Plugin</a>: x</p><p>By Ada Wick</p>",
        "Ada Wick",
    ),
    "words of a link behind a sentence": (
        "",
        "<p>See <a href=/t>Text Widget Overview</a>, or <a href=/p>Paint</a> by Allen Smith, too.",
        None,
    ),
    "such words elsewhere": (
        "",
        "<p>Made <i>by</i> hand.</p><p>May 2, 2024</p><p>Baked <b>with love</b> <i>by</i> us.</p>"
        "<p><i>by</i> <a href=/ada>Ada Wick</a></p>",
        "Ada Wick",
    ),
    "the words elsewhere alone": (
        "",
        "<p><i>by</i> hand</p><p><code>$missing</code> <i>by</i> <a href=/m>Missing Plugin</a>",
        None,
    ),
    "several in a line": ("", "<p>Autoren: Ada Wick und Bo Flint</p>", "Ada Wick und Bo Flint"),
    "photographer": (
        LINKED.format('{"@type": "ImageObject", "author": "Bo Flint"}'),
        "<p class=author>Foto: Bo Flint</p>",
        None,
    ),
    "title before a day": ("", "<p class=author>Yellow Vests and I 2. Mai 2024</p>", None),
    "box with more than a name": ("", f"<p class=author>Ada Wick {'writes. ' * 50}</p>", None),
    "banner of an app": ('<meta name="smartbanner:author" content="Now in the App">', "", None),
    "line without a mark": ("", "<p>Text: Ada Wick</p>", "Ada Wick"),
    "somebody before the site": (
        f'{SITE}<meta name="author" content="The Mill Post">',
        "<p class=author>Ada Wick</p>",
        "Ada Wick",
    ),
    "site alone": (f'{SITE}<meta name="author" content="The Mill Post">', "", "The Mill Post"),
    "address": ('<meta name="author" content="https://a.test/ada">', "", None),
    "account of the machine": ('<meta name="author" content="admin">', "", None),
    "author of a comment": ("", "<div class=comment><p class=author>Ada Wick</p></div>", None),
    "menu of columns": ("", "<nav><p class=author>Ada Wick</p></nav>", None),
    "masthead": ("", "<header><p class=author>Ada Wick</p></header>", None),
    "head of an article": (
        "",
        "<article><header><p class=author>Ada Wick</p></header></article>",
        "Ada Wick",
    ),
    "head with the heading": (
        "",
        "<header><h1>Bread</h1><p class=author>Ada Wick</p></header>",
        "Ada Wick",
    ),
    "field of a form": ("", "<p class=comment-form-author>Name *</p>", None),
    "no author": ("", "<p>The author is dead, says Ada Wick.</p>", None),
}


BYLINES = {
    "after the time": "<time>May 2, 2024 10:30 am</time> <span>By Ada Wick</span>",
    "after a German time": "<time>Donnerstag, 3. Mai 2024, 12:00 Uhr</time> <b>Von Ada Wick</b>",
    "after hours": "<span>3 hours ago</span> by <a href=/ada>Ada Wick</a>",
    "after minutes": "<span>5 min read</span> <span>By Ada Wick</span>",
    "after a section": "<span>Politics</span><span>By Ada Wick</span>",
    "after a section that links": "Posted in <a href=/n>News</a> by <a href=/ada>Ada Wick</a>",
    "in a link": "<a href=/ada>By Ada Wick</a>",
    "in a link after words": "<span>Opinion</span> <a href=/ada>By Ada Wick</a>",
}


@pytest.mark.parametrize("line", BYLINES.values(), ids=BYLINES)
def test_author_is_read_from_an_ordinary_byline(line: str) -> None:
    assert read("", f"<h1>Bread rises</h1><p>{line}</p><p>Flour.</p>").author == "Ada Wick"


@pytest.mark.parametrize("kind", AUTHORS)
def test_author_is_named_by_the_first_source_that_names_a_person(kind: str) -> None:
    head, body, author = AUTHORS[kind]
    assert read(head, body).author == author


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (SITE, "The Mill Post"),
        (LINKED.format('{"publisher": {"name": "The Mill Post"}}'), "The Mill Post"),
        (LINKED.format('{"@type": "WebSite", "name": "The Mill Post"}'), "The Mill Post"),
        ('<meta name="twitter:site" content="@millpost">', None),
        ("", None),
    ],
)
def test_site_is_named_as_it_names_itself(head: str, name: str | None) -> None:
    assert read(head).site_name == name


HOME = '<link rel="{}" title="{}" href="index.html"><title>{}</title>'


@pytest.mark.parametrize("title", ["1. Introduction", "Chapter 6. Sources", "A.2 Keys"])
def test_a_numbered_title_tells_of_which_document_it_is_a_part(title: str) -> None:
    for rel in ("home", "HOME"):
        head = HOME.format(rel, "Kiln User Manual", title)
        assert read(head, f"<h2>{title}</h2>").title == f"{title} \u2013 Kiln User Manual"


@pytest.mark.parametrize(
    ("title", "document"),
    [
        ("Introduction", "Kiln User Manual"),
        ("10 ways to bake", "Kiln User Manual"),
        ("A kiln", "Kiln User Manual"),
        ("1. Kiln User Manual", "Kiln User Manual"),
        ("1. Introduction", "Home"),
        ("1. Introduction", ""),
    ],
)
def test_other_titles_stay_as_they_are(title: str, document: str) -> None:
    assert read(HOME.format("home", document, title)).title == title


def test_heading_that_readers_see_is_the_title_where_the_title_tag_is_for_search_engines() -> None:
    head = "<title>Ovens 2024: bake bread | Mill</title>"
    assert read(head, "<h1>How we bake better bread at home</h1>").title == (
        "How we bake better bread at home"
    )
