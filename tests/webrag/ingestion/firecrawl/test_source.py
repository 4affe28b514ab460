from collections.abc import Callable

import pytest

from webrag.errors import (
    FetchError,
    PageGoneError,
    UnusablePageError,
)
from webrag.ingestion.extract import extract
from webrag.ingestion.fetch_context import listening
from webrag.ingestion.firecrawl.source import FirecrawlSource

from .fake_firecrawl import KEY, FakeFirecrawl, document

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

    assert (await make_source().fetch(URL)).text == "<p>one\ufffd two \ufffd three</p>"


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
