import gzip
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pattern_attacks import stopped_after
from webrag.crawling.sitemap import SitemapReader
from webrag.errors import FetchError, InputError
from webrag.ingestion.site_maps.reading import parse_sitemap

SITE = "https://site.test"


def urlset(*locations: str) -> bytes:
    items = "".join(f"<url><loc>{location}</loc></url>" for location in locations)
    return f'<?xml version="1.0"?><urlset xmlns="x">{items}</urlset>'.encode()


def index(*locations: str) -> bytes:
    items = "".join(f"<sitemap><loc>{location}</loc></sitemap>" for location in locations)
    return f"<sitemapindex>{items}</sitemapindex>".encode()


class Files:
    """A site's files, and which of them were asked for."""

    def __init__(self, files: dict[str, bytes], declared: Sequence[str] = ()) -> None:
        self.files = files
        self.declared = declared
        self.asked: list[str] = []

    async def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        if url not in self.files:
            raise FetchError("no such file", url=url)
        return self.files[url]

    async def named(self, _: str) -> Sequence[str]:
        return self.declared

    async def urls(self, start: str = f"{SITE}/", limit: int = 100) -> list[str]:
        reader = SitemapReader(self.fetch, self.named)
        return list(await reader.entries(start, limit=limit))


async def test_pages_are_listed_in_order_with_their_dates() -> None:
    body = (
        b"<urlset><url><loc>https://site.test/b?x=1&amp;y=2</loc><lastmod>2024-03-01</lastmod></url>"
        b"<url><loc> <![CDATA[https://site.test/a]]> </loc><lastmod>soon</lastmod></url></urlset>"
    )
    files = Files({f"{SITE}/sitemap.xml": body})

    entries = await SitemapReader(files.fetch, files.named).entries(f"{SITE}/", limit=10)

    assert list(entries.items()) == [
        (f"{SITE}/b?x=1&y=2", datetime(2024, 3, 1, tzinfo=UTC)),
        (f"{SITE}/a", None),
    ]


async def test_sitemaps_that_a_page_names_are_read_beside_those_of_robots_txt() -> None:
    maps = {f"{SITE}/maps/{name}.xml": urlset(f"{SITE}/{name}") for name in "ab"}
    files = Files(maps, declared=["/maps/a.xml"])

    found = await SitemapReader(files.fetch, files.named).entries(
        f"{SITE}/", limit=10, named=[f"{SITE}/maps/b.xml"]
    )

    assert list(found) == [f"{SITE}/a", f"{SITE}/b"]


async def test_sitemaps_of_robots_txt_are_read_instead_of_the_usual_place() -> None:
    files = Files({f"{SITE}/maps/1.xml": urlset(f"{SITE}/a")}, declared=["/maps/1.xml"])

    assert await files.urls() == [f"{SITE}/a"]
    assert files.asked == [f"{SITE}/maps/1.xml"]


async def test_usual_place_is_tried_where_robots_txt_names_a_sitemap_that_is_gone() -> None:
    files = Files({f"{SITE}/sitemap.xml": urlset(f"{SITE}/a")}, declared=[f"{SITE}/old-map.xml"])

    assert await files.urls() == [f"{SITE}/a"]


@pytest.mark.parametrize("name", ["sitemap-index.xml", "sitemap_index.xml", "wp-sitemap.xml"])
async def test_list_is_found_where_generators_put_it(name: str) -> None:
    files = Files({f"{SITE}/{name}": urlset(f"{SITE}/a")})

    assert await files.urls() == [f"{SITE}/a"]
    assert f"{SITE}/" not in files.asked, "the page, which the crawl fetches itself"


async def test_index_and_compressed_files_are_followed() -> None:
    files = Files(
        {
            f"{SITE}/sitemap.xml": index(f"{SITE}/1.xml.gz", f"{SITE}/2.xml"),
            f"{SITE}/1.xml.gz": gzip.compress(urlset(f"{SITE}/a"), mtime=0),
            f"{SITE}/2.xml": urlset(f"{SITE}/b"),
        }
    )

    assert await files.urls() == [f"{SITE}/a", f"{SITE}/b"]


async def test_index_that_names_itself_ends() -> None:
    files = Files({f"{SITE}/sitemap.xml": index(f"{SITE}/sitemap.xml")})

    assert await files.urls() == []
    assert files.asked.count(f"{SITE}/sitemap.xml") == 1


async def test_files_are_capped() -> None:
    many = {f"{SITE}/{n}.xml": urlset(f"{SITE}/page{n}") for n in range(200)}
    files = Files({f"{SITE}/sitemap.xml": index(*many), **many})

    assert len(await files.urls(limit=1_000)) == 49
    assert len(files.asked) == 50


async def test_limit_is_kept_and_ends_the_reading() -> None:
    maps = {f"{SITE}/{n}.xml": urlset(f"{SITE}/{n}a", f"{SITE}/{n}b") for n in range(5)}
    files = Files({f"{SITE}/sitemap.xml": index(*maps), **maps})

    assert await files.urls(limit=3) == [f"{SITE}/0a", f"{SITE}/0b", f"{SITE}/1a"]
    assert len(files.asked) == 3


async def test_nothing_is_asked_for_without_a_limit() -> None:
    files = Files({})

    assert await files.urls(limit=0) == []
    assert files.asked == []


async def test_pages_of_other_sites_and_doubles_are_left_out() -> None:
    places = (
        f"{SITE}/a",
        "https://other.test/b",
        "https://www.site.test/c",
        f"{SITE}/a",
        "http://",
    )
    files = Files({f"{SITE}/sitemap.xml": urlset(*places)})

    assert await files.urls() == [f"{SITE}/a", "https://www.site.test/c"]


async def test_sitemaps_about_the_start_folder_come_first() -> None:
    maps = {f"{SITE}/{n}.xml": urlset(f"{SITE}/{n}/x") for n in ("blog", "docs")}
    files = Files({f"{SITE}/sitemap.xml": index(*maps), **maps})

    assert await files.urls(f"{SITE}/docs/intro") == [f"{SITE}/docs/x", f"{SITE}/blog/x"]


async def test_sitemap_of_the_folder_is_found() -> None:
    files = Files({f"{SITE}/en/latest/sitemap.xml": urlset(f"{SITE}/en/latest/a")})

    assert await files.urls(f"{SITE}/en/latest/index.html") == [f"{SITE}/en/latest/a"]


async def test_llms_txt_stands_in_for_a_missing_sitemap() -> None:
    text = b"# Site\n\n- [A](/a.md): first\n- [Other](https://other.test/x)\n- [B](<b.md>)\n"
    files = Files({f"{SITE}/llms.txt": text})

    assert await files.urls() == [f"{SITE}/a.md", f"{SITE}/b.md"]


async def test_site_without_any_list_gives_none() -> None:
    assert await Files({}).urls(f"{SITE}/a/b/c") == []


async def test_start_must_be_a_web_address() -> None:
    with pytest.raises(InputError):
        await Files({}).urls("file:///etc/passwd")


@pytest.mark.parametrize(
    ("body", "pages"),
    [
        (b"https://site.test/a\r\nhttps://site.test/b\r\nrubbish", 2),
        (b'<sm:urlset xmlns:sm="x"><sm:url><sm:loc>u</sm:loc></sm:url></sm:urlset>', 1),
        (b"<urlset><url><image:image><image:loc>i</image:loc></image:image></url></urlset>", 0),
        (b"<urlset><url><loc>a</loc></url><url><loc>b", 1),
        (b"\xef\xbb\xbf<urlset><url><loc>a</loc></url></urlset>", 1),
        ("<urlset><url><loc>a</loc></url></urlset>".encode("utf-16"), 1),
        (gzip.compress(b"<urlset><url><loc>a</loc></url>" + b" " * 9_000, mtime=0)[:-12], 1),
        (b"\x1f\x8bnot gzip", 0),
        (b"<html>not found</html>", 0),
        (b"<html>\nhttps://site.test/a was not found\n</html>", 0),
        (b"<urlset><!-- <url><loc>a</loc></url> --><url><loc>b</loc></url></urlset>", 1),
        (b"", 0),
    ],
)
def test_files_of_all_shapes_are_read(body: bytes, pages: int) -> None:
    assert len(parse_sitemap(body).pages) == pages


def test_entities_are_not_expanded() -> None:
    bomb = (
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]>'
        b"<urlset><url><loc>&b;</loc></url></urlset>"
    )

    assert parse_sitemap(bomb).pages == (("&b;", ""),)


def test_compressed_bomb_is_cut_off() -> None:
    body = gzip.compress(
        b"<urlset>" + b"<url><loc>a</loc></url>" * 4_000_000, compresslevel=1, mtime=0
    )

    assert len(parse_sitemap(body).pages) <= 50_000


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read(body: bytes) -> None:
    parse_sitemap(body)
    parse_sitemap(b"<urlset><url><loc>" + body)


async def test_fetcher_gives_what_the_reader_needs(make_fetcher: Any, static_site: Any) -> None:
    site = static_site(
        {"/robots.txt": b"Sitemap: /deep/map.xml", "/deep/map.xml": urlset("/a", "b")}
    )
    fetcher = make_fetcher()

    reader = SitemapReader(fetcher.fetch_bytes, fetcher.declared_sitemaps)

    assert list(await reader.entries(str(site), limit=9)) == [
        f"{site}/a",
        f"{site}/deep/b",
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"<urlset></urlset>",
        b"<urlset> </urlset>",
        b'<?xml version="1.0"?>\n<urlset xmlns="x">\n</urlset>\n',
        b"<urlset >",
        b"<s:urlset xmlns:s='x'></s:urlset>",
        b"<sitemapindex></sitemapindex>",
        b"<sitemapindex xmlns='x'><!-- none yet --></sitemapindex>",
        gzip.compress(b"<urlset></urlset>", mtime=0),
        b"<urlset><url></url><url><loc></loc></url></urlset>",
        b"<urlset><url><loc><![CDATA[]]></loc></url></urlset>",
    ],
)
async def test_lists_without_pages_are_empty_lists(body: bytes) -> None:
    files = Files({f"{SITE}/sitemap.xml": body})

    assert await files.urls() == []


@pytest.mark.parametrize(
    "unit",
    [
        "<loc>",
        "<loc> ",
        "<loc><![CDATA[",
        "<loc> <![CDATA[ ",
        "<loc>a",
        "<lastmod> ",
        "<lastmod>2024",
        "<url>",
        "<url><loc>",
        "<url><loc><![CDATA[",
        "<url><lastmod> ",
        " ",
        "&#9",
        "<!-- ",
        "]]>",
    ],
)
@pytest.mark.parametrize("start", ["<urlset><url>", "<urlset><url><loc>", "<sitemapindex>"])
def test_no_sitemap_takes_more_time_than_its_length_explains(start: str, unit: str) -> None:
    with stopped_after(5):
        parse_sitemap((start + unit * (200_000 // len(unit))).encode())


@pytest.mark.parametrize(
    "address",
    ["&#" + "9" * 5_000 + ";", "x" * 5_000, " " * 5_000, "<![CDATA[" + "x" * 5_000 + "]]>"],
)
async def test_an_address_too_long_to_be_one_is_passed_over(address: str) -> None:
    files = Files({f"{SITE}/sitemap.xml": urlset(address, f"{SITE}/a")})

    assert await files.urls() == [f"{SITE}/a"]


@pytest.mark.parametrize("unit", ["](a", "](//other.test/a", "]( ", "](<", "](" + "a" * 9_000])
async def test_no_llms_txt_takes_more_time_than_its_length_explains(unit: str) -> None:
    files = Files({f"{SITE}/llms.txt": unit.encode() * (2_000_000 // len(unit))})

    with stopped_after(20):
        await files.urls()
