import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from webrag.errors import (
    FetchError,
    InputError,
    PageGoneError,
    RefusedAddressError,
    UnusablePageError,
)
from webrag.ingestion.asides import listening
from webrag.ingestion.extract import extract
from webrag.ingestion.firecrawl.models import FirecrawlConfig
from webrag.ingestion.firecrawl.source import FirecrawlSource

from .conftest import public_resolver
from .fake_firecrawl import KEY, FakeFirecrawl, Fault, document

URL = "https://docs.test/guide"
PAGE = (
    '<html lang="en"><head><title>Guide</title><meta name="description" content="How to.">'
    "</head><body><nav><a href='/home'>Home</a></nav><main><h1>Guide</h1><p>Set the <code>retry"
    "</code> option; see <a href='/options'>all options</a> for what else there is to set.</p>"
    "<table><tr><th>Option</th><th>Default</th></tr><tr><td>retry</td><td>3</td></tr></table>"
    "</main></body></html>"
)
MakeSource = Callable[..., FirecrawlSource]


@pytest.fixture
def guide(firecrawl: FakeFirecrawl) -> FakeFirecrawl:
    firecrawl.pages[URL] = document(PAGE, markdown="# Guide\n\nSet the `retry` option.")
    return firecrawl


async def test_page_comes_as_its_own_html(guide: FakeFirecrawl, make_source: MakeSource) -> None:
    page = await make_source().fetch(URL)

    assert (page.text, page.kind, page.status, page.source) == (PAGE, "html", 200, "firecrawl")
    assert page.url == page.requested_url == URL


async def test_text_offsets_and_links_are_made_here(
    guide: FakeFirecrawl, make_source: MakeSource
) -> None:
    read = extract(await make_source().fetch(URL))

    link = next(link for link in read.links if link.url == "https://docs.test/options")
    assert read.markdown[link.char_start : link.char_end] == "all options"
    assert (read.title, read.description, read.language) == ("Guide", "How to.", "en")
    assert "](" not in read.markdown


async def test_request_is_what_the_published_interface_asks_for(
    guide: FakeFirecrawl, make_source: MakeSource
) -> None:
    await make_source(max_age_s=3600, timeout_s=10).fetch(URL)

    body = guide.asked("scrape")[0].body
    assert body["formats"] == [{"type": t} for t in ("markdown", "html", "rawHtml", "links")]
    assert (body["onlyMainContent"], body["skipTlsVerification"]) == (False, False)
    assert (body["maxAge"], body["timeout"]) == (3_600_000, pytest.approx(9_000, abs=200))


@pytest.mark.parametrize(("age", "sent"), [(0, 0), (None, 172_800_000)])
async def test_cached_copies_are_as_old_as_the_recrawl_setting_allows(
    guide: FakeFirecrawl, make_source: MakeSource, age: float | None, sent: int
) -> None:
    await make_source(max_age_s=age).fetch(URL)

    assert guide.asked("scrape")[0].body["maxAge"] == sent


async def test_fresh_page_is_not_taken_from_firecrawls_cache(
    guide: FakeFirecrawl, make_source: MakeSource
) -> None:
    await make_source(max_age_s=3600).fetch(URL, fresh=True)

    assert guide.asked("scrape")[0].body["maxAge"] == 0


async def test_fake_refuses_formats_as_strings_as_the_published_interface_does(
    guide: FakeFirecrawl,
) -> None:
    import firecrawl as sdk

    client = sdk.AsyncFirecrawl(api_key=KEY, api_url=guide.url)
    with pytest.raises(sdk.FirecrawlError) as caught:
        await client.scrape(URL, formats=["markdown"])

    assert caught.value.status_code == 422
    await client._v2_client.async_http_client.close()


async def test_server_of_ones_own_needs_no_key(
    firecrawl: FakeFirecrawl, make_source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRECRAWL_API_KEY", "fc-from-the-environment")
    firecrawl.key = ""
    firecrawl.pages[URL] = document(PAGE)

    await make_source(api_key=None).fetch(URL)

    assert "authorization" not in firecrawl.calls[0].headers


async def test_pdf_is_read_from_firecrawls_markdown(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.pages[URL] = document(
        "",
        markdown="# Manual\n\nTurn the [left](https://docs.test/left) valve *slowly*.",
        metadata={"contentType": "application/pdf", "title": "The manual", "numPages": 2},
    )

    read = extract(await make_source().fetch(URL))

    assert read.title == "The manual"
    assert read.markdown == "# Manual\n\nTurn the left valve *slowly*."
    assert [link.url for link in read.links] == ["https://docs.test/left"]


async def test_cleaned_html_stands_in_for_missing_html_with_what_is_known_of_the_page(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.pages[URL] = document(
        "<p>Ten words are enough to make a small page here, says everybody.</p>",
        rawHtml=None,
        links=["https://docs.test/menu"],
        metadata={"title": "Guide & more", "language": "de", "description": "Kurz."},
    )

    read = extract(await make_source().fetch(URL))

    assert (read.title, read.description, read.language) == ("Guide & more", "Kurz.", "de")
    assert [link.url for link in read.links] == ["https://docs.test/menu"]


async def test_page_drawn_by_scripts_is_read_as_it_was_drawn(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    drawn = "<h1>Guide</h1><p>" + "This sentence was put here by a script. " * 5 + "</p>"
    firecrawl.pages[URL] = document(
        drawn,
        rawHtml="<html><head><script>var x = '" + "y" * 900 + "'</script></head>"
        "<body><div id=app>Loading</div></body></html>",
        markdown="# Guide\n\n" + "This sentence was put here by a script. " * 5,
    )

    assert "put here by a script" in extract(await make_source().fetch(URL)).markdown


async def test_redirect_is_recorded(firecrawl: FakeFirecrawl, make_source: MakeSource) -> None:
    firecrawl.pages[URL] = document(PAGE, metadata={"url": "https://docs.test/new-guide"})

    page = await make_source().fetch(URL)

    assert (page.requested_url, page.url) == (URL, "https://docs.test/new-guide")


async def test_half_characters_and_nul_never_reach_the_text(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.pages[URL] = document("<p>one\x00 two \ud800 three</p>")

    assert (await make_source().fetch(URL)).text == "<p>one two ? three</p>"


# What the page's own site says.


@pytest.mark.parametrize(
    ("status", "kind", "sentence"),
    [
        (404, PageGoneError, "does not exist (HTTP 404)"),
        (410, PageGoneError, "does not exist (HTTP 410)"),
        (401, FetchError, "not open to everyone (HTTP 401)"),
        (403, FetchError, "not open to everyone (HTTP 403)"),
        (500, FetchError, "answered HTTP 500"),
    ],
)
async def test_status_of_the_pages_site_is_an_error_of_its_own(
    firecrawl: FakeFirecrawl,
    make_source: MakeSource,
    status: int,
    kind: type[FetchError],
    sentence: str,
) -> None:
    firecrawl.pages[URL] = document("<h1>Sorry</h1>", status=status)

    with pytest.raises(FetchError) as caught:
        await make_source().fetch(URL)

    assert type(caught.value) is kind
    assert sentence in str(caught.value)
    assert caught.value.status == status


async def test_warning_is_passed_on(firecrawl: FakeFirecrawl, make_source: MakeSource) -> None:
    firecrawl.pages[URL] = document(PAGE, warning="The page was cut after 10 sections")
    heard: list[str] = []

    with listening(heard.append):
        await make_source().fetch(URL)

    assert heard == [f"Firecrawl remarks on {URL}: The page was cut after 10 sections."]


async def test_empty_page_is_unusable_and_says_why(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.pages[URL] = document("", metadata={"error": "blank page"})

    with pytest.raises(UnusablePageError, match=r"nothing to read on .*: blank page"):
        await make_source().fetch(URL)


async def test_huge_page_is_unusable(firecrawl: FakeFirecrawl, make_source: MakeSource) -> None:
    firecrawl.pages[URL] = document("<p>" + "word " * 1_000)

    with pytest.raises(UnusablePageError, match="5,003 characters; at most 1,000"):
        await make_source(max_chars=1_000).fetch(URL)


# What may be sent at all.


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/admin",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://intranet.test/wiki",
        "http://10.0.0.1/",
        "http://docs.test:22/",
        "http://[::ffff:192.168.0.1]/",
        "http://0x7f.1/",
    ],
)
async def test_private_address_is_never_sent(
    firecrawl: FakeFirecrawl, make_source: MakeSource, url: str
) -> None:
    source = make_source()

    with pytest.raises(RefusedAddressError):
        await source.fetch(url)
    with pytest.raises(RefusedAddressError):
        await source.map(url)

    assert firecrawl.calls == []


async def test_name_without_address_is_never_sent(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    with pytest.raises(FetchError, match="was not found"):
        await make_source().fetch("https://nowhere.example/")

    assert firecrawl.calls == []


@pytest.mark.parametrize("url", ["ftp://docs.test/", "file:///etc/passwd", "docs.test", ""])
async def test_what_is_no_web_address_is_refused(make_source: MakeSource, url: str) -> None:
    with pytest.raises(InputError):
        await make_source().fetch(url)


async def test_allowed_host_is_sent_to_a_server_of_ones_own(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.pages["http://intranet.test/wiki"] = document(PAGE)

    page = await make_source(allowed_hosts=("intranet.test",)).fetch("http://intranet.test/wiki")

    assert page.text == PAGE


async def test_allowed_host_is_not_sent_to_the_public_service() -> None:
    config = FirecrawlConfig(api_key=KEY, allowed_hosts=("intranet.test",))
    source = FirecrawlSource(config, resolver=public_resolver)

    with pytest.raises(RefusedAddressError):
        await source.fetch("http://intranet.test/wiki")


async def test_page_that_came_from_a_private_address_is_refused(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.pages[URL] = document(PAGE, metadata={"url": "http://169.254.169.254/latest"})

    with pytest.raises(RefusedAddressError):
        await make_source().fetch(URL)


# Lists of a site's pages.


async def test_map_lists_the_pages_of_a_site(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.sites["https://docs.test/"] = [
        {"url": "https://docs.test/a#top", "title": "Page\nA", "description": "About a."},
        {"url": "https://docs.test/b?utm_source=x"},
        "https://docs.test/c",
        {"url": "https://docs.test/a", "title": "again"},
        {"url": "mailto:me@docs.test"},
        {"url": "javascript:alert(1)", "title": "no page"},
    ]

    found = await make_source().map("https://docs.test", limit=50)

    assert [(link.url, link.title, link.description) for link in found] == [
        ("https://docs.test/a", "Page A", "About a."),
        ("https://docs.test/b", "", ""),
        ("https://docs.test/c", "", ""),
    ]


async def test_map_asks_for_no_more_than_wanted(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.sites[URL] = [{"url": f"https://docs.test/{n}"} for n in range(9)]

    found = await make_source().map(URL, search="retry", limit=4)

    body = firecrawl.asked("map")[0].body
    assert (body["limit"], body["search"], body["sitemap"]) == (4, "retry", "include")
    assert len(found) == 4


@pytest.mark.parametrize("body", [{"success": True}, {"success": True, "links": None}])
async def test_map_without_links_is_empty(
    firecrawl: FakeFirecrawl, make_source: MakeSource, body: Any
) -> None:
    firecrawl.queue("map", *[Fault(200, body)] * 3)

    outcome = await asyncio.gather(make_source().map(URL), return_exceptions=True)

    assert outcome == [[]] or "could not be understood" in str(outcome[0])
