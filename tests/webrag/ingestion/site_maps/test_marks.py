import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tests.pattern_attacks import stopped_after
from webrag.ingestion.models import MapMark
from webrag.ingestion.site_maps.marks import find_marks

PAGE = "https://docs.test/en/guide/start.html"
ROOT = "https://docs.test/en/"


def marks(head: str, body: str = "", url: str = PAGE) -> list[tuple[str, str, tuple[str, ...]]]:
    html = f"<html><head>{head}</head><body>{body}</body></html>"
    found = find_marks(LexborHTMLParser(html), url)
    return [(mark.kind, mark.root, mark.urls) for mark in found]


SPHINX = ("sphinx", ROOT, (f"{ROOT}searchindex.js",))
MKDOCS = ("mkdocs", ROOT, (f"{ROOT}search/search_index.json", f"{ROOT}search.json"))


@pytest.mark.parametrize(
    ("head", "mark"),
    [
        # Sphinx 1, 3 and 8.
        (
            "<script>var DOCUMENTATION_OPTIONS = { URL_ROOT: '../', VERSION: '1' };</script>"
            "<script src='../_static/doctools.js'></script>",
            SPHINX,
        ),
        (
            "<script id='documentation_options' data-url_root='../'"
            " src='../_static/documentation_options.js'></script>",
            SPHINX,
        ),
        ("<script src='../_static/documentation_options.js?v=5929fcd5'></script>", SPHINX),
        # MkDocs, Material, Zensical.
        (
            "<meta name=generator content='mkdocs-1.6.1'><script>var base_url = \"..\";</script>",
            MKDOCS,
        ),
        (
            '<script>var base_url = ".."</script><script src="../search/main.js"></script>',
            MKDOCS,
        ),
        (
            "<meta name=generator content='mkdocs-1.6, mkdocs-material-9'>"
            '<script id=__config type=application/json>{"base": "..", "features": []}</script>',
            MKDOCS,
        ),
        (
            "<meta name=generator content='zensical-0.0.10'>"
            '<script id=__config type=application/json>{"base":".."}</script>',
            ("mkdocs", ROOT, MKDOCS[2][::-1]),
        ),
        # mdBook before and since 0.5, whose names are hashed.
        (
            '<script>var path_to_root = "../";</script>',
            ("mdbook", ROOT, (f"{ROOT}searchindex.js",)),
        ),
        (
            '<script>const path_to_root = "../"; window.path_to_searchindex_js ='
            ' "searchindex-1f2e.js";</script>',
            ("mdbook", ROOT, (f"{ROOT}searchindex-1f2e.js",)),
        ),
        # rustdoc.
        (
            "<div id=rustdoc-vars data-root-path='../' data-current-crate=kiln></div>",
            ("index_page", ROOT, (f"{ROOT}kiln/all.html",)),
        ),
        (
            "<meta name=rustdoc-vars data-root-path='../' data-current-crate=kiln>",
            ("index_page", ROOT, (f"{ROOT}kiln/all.html",)),
        ),
        (
            "<meta name=generator content='javadoc/ClassWriterImpl'>"
            '<script>var pathtoroot = "../";</script>',
            (
                "javadoc",
                ROOT,
                (f"{ROOT}type-search-index.js", f"{ROOT}member-search-index.js"),
            ),
        ),
        (
            "<meta name=generator content='Doxygen 1.9.4'><script src='../search/search.js'>"
            "</script>",
            ("doxygen", ROOT, (f"{ROOT}search/searchdata.js",)),
        ),
        (
            "<meta name=generator content='Doxygen 1.12.0'><script src='../navtreedata.js'>"
            "</script><script src='../search/searchdata.js'></script>",
            ("doxygen", ROOT, (f"{ROOT}navtreedata.js", f"{ROOT}search/searchdata.js")),
        ),
        (
            "<meta name=generator content='Docusaurus v3.5.2'>"
            "<script src='/en/assets/js/main.a1b2c3d4.js' defer></script>",
            ("docusaurus", ROOT, (f"{ROOT}search-index.json", f"{ROOT}search-doc.json")),
        ),
        (
            "<meta name=generator content='VitePress v1.5.0'>"
            "<link rel=modulepreload href='/en/assets/chunks/theme.Ab1.js'>",
            ("vitepress", ROOT, (f"{ROOT}assets/chunks/theme.Ab1.js",)),
        ),
        (
            "<link rel=alternate type=application/json href='/en/index.json'>",
            ("json", ROOT, (f"{ROOT}index.json",)),
        ),
        (
            "<script src='/en/assets/js/just-the-docs.js'></script>",
            ("json", ROOT, (f"{ROOT}assets/js/search-data.json",)),
        ),
        (
            "<link rel=alternate type=text/plain href='/en/llms.txt'>",
            ("llms", ROOT, (f"{ROOT}llms.txt",)),
        ),
    ],
)
def test_generators_are_known_by_what_their_pages_say(
    head: str, mark: tuple[str, str, tuple[str, ...]]
) -> None:
    assert marks(head) == [mark]


@pytest.mark.parametrize(
    "body",
    [
        "<a href=../bookindex.html>Index</a>",
        "<a href=../bookindex.html> General\n Index </a>",
        "<a rel=index href=../bookindex.html>A to Z</a>",
    ],
)
def test_index_made_for_readers_is_known_by_the_link_to_it(body: str) -> None:
    url = f"{ROOT}bookindex.html"

    assert marks("", body) == [("index_page", ROOT, (url,))]


def test_first_page_called_index_is_no_index() -> None:
    assert marks("<link rel=index href=../index.html>", "<a href=./>Index</a>") == []


def test_page_without_a_mark_names_the_manuals_first_page() -> None:
    body = "<a accesskey=h href=/en/index.html>Home</a>"

    assert marks("", body) == [("home", ROOT, (f"{ROOT}index.html",))]
    assert marks("", body, url=f"{ROOT}index.html") == []


@pytest.mark.parametrize(
    "head",
    [
        "<script>var path_to_root = 'https://evil.test/';</script>",
        '<script>var path_to_root = "https://evil.test/";</script>',
        "<script src='https://evil.test/_static/doctools.js'></script>",
        "<link rel=index href='https://evil.test/genindex.html'>",
        "<script data-url_root='javascript:alert(1)' src='_static/doctools.js'></script>",
        "<meta name=generator content=Sphinx>",
    ],
)
def test_marks_that_lead_to_other_sites_or_nowhere_are_left_out(head: str) -> None:
    assert marks(head) == []


@given(st.text(max_size=60))
def test_whatever_a_mark_says_its_addresses_are_on_the_pages_site(value: str) -> None:
    escaped = value.replace('"', "&quot;")
    head = (
        f'<script data-url_root="{escaped}" src="_static/doctools.js"></script>'
        f'<meta name="rustdoc-vars" data-root-path="{escaped}">'
    )

    for mark in find_marks(LexborHTMLParser(f"<html><head>{head}</head></html>"), PAGE):
        assert isinstance(mark, MapMark)
        assert all(url.startswith("https://docs.test/") for url in (mark.root, *mark.urls))


@pytest.mark.parametrize(
    "unit", ["<script>var base_url = ", "<a href=x>Index</a>", "URL_ROOT:  ", "<link rel=index>"]
)
def test_many_marks_take_little_time(unit: str) -> None:
    with stopped_after(5):
        find_marks(LexborHTMLParser(unit * 20_000), PAGE)
