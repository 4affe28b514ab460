import pytest

from tests.pattern_attacks import stopped_after
from webrag.ingestion.models import MapMark
from webrag.ingestion.site_maps.indexes import read_index_page
from webrag.ingestion.site_maps.listing import ListedPage, MapRefusedError
from webrag.ingestion.site_maps.reading import NamedMaps, Wanted, read_map

URL = "https://docs.test/man/bookindex.html"
FILLER = "".join(f"<li><a href=p{n}.html>Page {n}</a></li>" for n in range(30))


def names(body: str) -> dict[str, list[str]]:
    found = read_index_page(f"<body><ul>{FILLER}</ul>{body}</body>", URL)
    return {page.url.rpartition("/")[2]: page.names for page in found.pages}


def test_links_carry_the_terms_they_stand_under() -> None:
    body = (
        "<dl><dt>vacuum, <a href=routine.html#v>Recovering Space</a></dt>"
        "<dt>index</dt><dd><dl><dt>unique, <a href=unique.html>Unique Indexes</a></dt></dl></dd>"
        "</dl>"
    )

    found = names(body)

    assert found["routine.html"] == ["vacuum Recovering Space"]
    assert found["unique.html"] == ["index unique Unique Indexes"]


def test_rows_of_tables_are_entries() -> None:
    body = "<table><tr><td>bend</td><td><a href=c.html>Cones</a></td></tr></table>"

    assert names(body)["c.html"] == ["bend Cones"]


def test_page_with_a_few_links_is_no_index() -> None:
    with pytest.raises(MapRefusedError, match="only a few pages"):
        read_index_page("<a href=a.html>A</a>", URL, at_least=2)


@pytest.mark.parametrize("unit", ["<li>", "<dl><dd>", "<dt><a href=x>x", "<li>a<a href=y>y</a>"])
def test_hostile_pages_take_little_time(unit: str) -> None:
    with stopped_after(20), pytest.raises(MapRefusedError):
        read_index_page(unit * 20_000, URL, at_least=3)


HOME = MapMark(kind="home", root="https://docs.test/man/", urls=("https://docs.test/man/",))


def test_first_page_of_a_manual_names_its_index() -> None:
    page = b"<a href=bookindex.html>Index</a>"

    found = read_map(HOME, "https://docs.test/man/a.html", {HOME.urls[0]: page})

    assert isinstance(found, NamedMaps)
    assert [mark.urls for mark in found.marks] == [(URL,)]


def test_first_page_without_an_index_is_read_as_one() -> None:
    found = read_map(HOME, "https://docs.test/man/a.html", {HOME.urls[0]: FILLER.encode()})

    assert not isinstance(found, NamedMaps | Wanted)
    assert found.pages[0] == ListedPage("https://docs.test/man/p0.html", "Page 0", ["Page 0"])


SITEMAP = MapMark(kind="sitemap", root="https://docs.test/", urls=("https://docs.test/s.xml",))


def sitemap_index(*names: str) -> dict[str, bytes]:
    listed = "".join(f"<sitemap><loc>https://docs.test/{name}</loc></sitemap>" for name in names)
    return {SITEMAP.urls[0]: f"<sitemapindex>{listed}</sitemapindex>".encode()}


def sitemap_of(path: str) -> bytes:
    return f"<urlset><url><loc>https://docs.test/{path}</loc></url></urlset>".encode()


def test_sitemaps_of_an_index_are_read_together_and_named_by_addresses() -> None:
    first = sitemap_index("1.xml", "2.xml", "3.xml")
    one, two, three = (f"https://docs.test/{n}.xml" for n in (1, 2, 3))

    assert read_map(SITEMAP, SITEMAP.root, first) == Wanted((one, two, three))
    parts = {one: sitemap_of("a-guide/firing.html"), two: b"", three: sitemap_of("clay.html")}
    found = read_map(SITEMAP, SITEMAP.root, first | parts)
    assert not isinstance(found, NamedMaps | Wanted)
    assert found.pages == (
        ListedPage("https://docs.test/a-guide/firing.html", "a guide firing"),
        ListedPage("https://docs.test/clay.html", "clay"),
    )


def test_of_many_sitemaps_those_named_like_the_page_are_read() -> None:
    names = [f"blog-{n}.xml" for n in range(20)] + ["en/manual.xml", "fr/manual.xml"]

    wanted = read_map(SITEMAP, "https://docs.test/en/manual/kiln.html", sitemap_index(*names))

    assert isinstance(wanted, Wanted)
    assert wanted.urls[:2] == ("https://docs.test/en/manual.xml", "https://docs.test/fr/manual.xml")
    assert len(wanted.urls) == 5


def test_index_whose_sitemaps_say_nothing_is_refused() -> None:
    nested = {"https://docs.test/1.xml": sitemap_index("2.xml")[SITEMAP.urls[0]]}

    with pytest.raises(MapRefusedError, match="no page of the site"):
        read_map(SITEMAP, SITEMAP.root, sitemap_index("1.xml") | nested)


def test_missing_parts_of_a_map_do_not_hide_the_others() -> None:
    mark = MapMark(
        kind="doxygen", root="https://docs.test/", urls=("https://docs.test/navtreedata.js",)
    )
    tree = b'var NAVTREE = [["K","k.html","more"]]'

    wanted = read_map(mark, mark.root, {mark.urls[0]: tree})

    assert wanted == Wanted(("https://docs.test/more.js",))
    found = read_map(mark, mark.root, {mark.urls[0]: tree, "https://docs.test/more.js": b""})
    assert not isinstance(found, NamedMaps | Wanted)
    assert [page.title for page in found.pages] == ["K"]


def test_file_of_a_kind_that_is_not_read_any_more_is_refused() -> None:
    mark = MapMark(kind="rustdoc", root="https://docs.test/", urls=("https://docs.test/s.js",))

    with pytest.raises(MapRefusedError):
        read_map(mark, "https://docs.test/a.html", {mark.urls[0]: b"var searchIndex = {};"})
