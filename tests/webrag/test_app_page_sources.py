import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from tests.kept_collections import KeptCollections
from tests.webrag.ingestion.firecrawl.fake_firecrawl import KEY, FakeFirecrawl, document, failing
from tests.webrag.ingestion.pdf.test_reader import make_pdf
from webrag import WebRAG
from webrag.crawling.report import CrawlOptions
from webrag.settings import Settings

PAGE = (
    "<html><head><title>Limits</title></head><body><main><h1>Limits</h1><p>The broker closes a"
    " connection that is idle for 95 seconds.</p></main></body></html>"
)
QUESTION = "When is an idle connection closed?"
Open = Callable[..., AbstractAsyncContextManager[WebRAG]]


@pytest.fixture
def opened(postgres_dir: Path, kept_collections: KeptCollections) -> Open:
    """Opens a WebRAG on a collection of its own that is dropped when it is left."""

    @asynccontextmanager
    async def make(page_source: Any = None, **settings: Any) -> AsyncIterator[WebRAG]:
        given = {
            "data_dir": postgres_dir,
            "collection": f"test_{uuid.uuid4().hex[:16]}",
            "allow_hosts": ["127.0.0.1"],
        }
        rag = WebRAG(Settings(**{**given, **settings}), page_source=page_source)
        await rag.open()
        try:
            yield rag
        finally:
            await kept_collections.take_back_from(rag)

    return make


@pytest.fixture
def firecrawl() -> Any:
    fake = FakeFirecrawl()
    yield fake
    fake.stop()


class MyReader(BaseReader):
    def load_data(self, urls: list[str]) -> list[Document]:
        return [Document(text=PAGE) for _ in urls]


async def test_reader_can_be_the_page_source(opened: Open) -> None:
    async with opened(MyReader()) as rag:
        result = await rag.answer("http://127.0.0.1/limits", QUESTION)
        status = await rag.status()

    assert "95 seconds" in result.chunks[0].chunk.text
    assert set(result.page_sources.values()) == {"MyReader"}
    assert (status.page_source, status.pages[0].source) == ("MyReader", "MyReader")


async def test_firecrawl_is_used_when_the_settings_name_it(
    opened: Open, firecrawl: FakeFirecrawl
) -> None:
    firecrawl.pages["http://127.0.0.1/limits"] = document(PAGE)
    settings = {"firecrawl_api_key": KEY, "firecrawl_api_url": firecrawl.url}

    async with opened(**settings) as rag:
        result = await rag.answer("http://127.0.0.1/limits", QUESTION)
        status = await rag.status()
        brief = rag.brief(result)

    assert "95 seconds" in result.chunks[0].chunk.text
    assert status.page_source == "firecrawl, else builtin"
    assert "Fetched by: firecrawl (1)" in brief


async def test_several_pages_are_ingested_as_one_batch_of_firecrawl(
    opened: Open, firecrawl: FakeFirecrawl
) -> None:
    urls = [f"http://127.0.0.1/limits/{number}" for number in range(3)]
    firecrawl.pages |= {url: document(PAGE.replace("95", url)) for url in urls}
    settings = {"firecrawl_api_key": KEY, "firecrawl_api_url": firecrawl.url}

    async with opened(**settings) as rag:
        report = await rag.ingest([*urls, "http://127.0.0.1/missing"], refresh=True)

    assert {page.url for page in report.pages} == set(urls), report.failed
    assert list(report.failed) == ["http://127.0.0.1/missing"]
    (batch,) = firecrawl.asked("batch")
    assert (len(batch.body["urls"]), batch.body["maxAge"]) == (4, 0)
    assert firecrawl.asked("scrape") == []


@pytest.mark.parametrize(("refresh", "oldest_ms"), [(False, 604_800_000), (True, 0)])
async def test_refreshing_a_site_reads_it_anew_at_firecrawl(
    opened: Open, firecrawl: FakeFirecrawl, refresh: bool, oldest_ms: int
) -> None:
    firecrawl.pages["http://127.0.0.1/limits"] = document(PAGE)
    settings = {"firecrawl_api_key": KEY, "firecrawl_api_url": firecrawl.url}
    settings["recrawl_after"] = 604_800

    async with opened(**settings) as rag:
        await rag.ingest_site("http://127.0.0.1/limits", CrawlOptions(max_pages=1, refresh=refresh))

    assert [call.body["maxAge"] for call in firecrawl.asked("scrape")] == [oldest_ms]


async def test_crawl_reports_that_another_source_had_to_be_used(
    opened: Open, firecrawl: FakeFirecrawl, static_site: Callable[..., Any]
) -> None:
    more = PAGE.replace("95", "96")
    site = static_site({"/limits": PAGE.replace("</p>", ' <a href="/more">More</a></p>'),
                        "/more": more})  # fmt: skip
    firecrawl.queue("scrape", *[failing(401, "Unauthorized: Invalid token")] * 5)
    settings = {"firecrawl_api_key": KEY, "firecrawl_api_url": firecrawl.url}

    async with opened(**settings) as rag:
        report = await rag.ingest_site(f"{site}/limits", CrawlOptions(max_pages=2))

    assert report.pages == {"indexed": 2}
    assert len(report.degraded) == 1
    assert "Pages were fetched by the built-in fetcher instead." in report.degraded[0]


SPANNED = "<table><tr><th>Size</th><th>Price</th></tr>" + (
    "<tr><td rowspan='2'>{0} small</td><td>{0} one</td></tr><tr><td>{0} two</td></tr></table>"
)


@pytest.mark.parametrize("form", ["rawHtml", "html", "markdown"])
async def test_sections_read_through_firecrawl_come_with_their_own_tables(
    opened: Open, firecrawl: FakeFirecrawl, form: str
) -> None:
    words = "These words say what the table below is about, and to whom it may be of use. " * 45
    body = "".join(f"<h2>{n}</h2><p>{n}: {words}</p>{SPANNED.format(n)}" for n in ("Ash", "Elm"))
    markdown = "".join(
        f"## {n}\n\n{n}: {words}\n\n| Size | Price |\n| - | - |\n| {n} small | {n} two |\n\n"
        for n in ("Ash", "Elm")
    )
    page = document(f"<h1>Trees</h1>{body}", markdown=f"# Trees\n\n{markdown}")
    for other in {"rawHtml", "html"} - {form}:
        page[other] = None
    firecrawl.pages["http://127.0.0.1/limits"] = page
    settings = {"firecrawl_api_key": KEY, "firecrawl_api_url": firecrawl.url}

    async with opened(**settings) as rag:
        result = await rag.answer("http://127.0.0.1/limits", "What does the small Elm cost?")

    chunks = [item.chunk for item in result.chunks if item.chunk.has_table]
    told = [[name for name in ("Ash", "Elm") if f"{name} two" in chunk.text] for chunk in chunks]
    assert sorted(told) == [["Ash"], ["Elm"]]


async def test_quotation_of_a_pdf_links_to_its_page(
    opened: Open, static_site: Callable[..., Any]
) -> None:
    pages = [["The broker has nine queues."], ["A connection idle for 95 seconds is closed."]]
    body = make_pdf([[*lines, *["More words stand below them."] * 3] for lines in pages])
    site = static_site({"/manual.pdf": body})

    async with opened() as rag:
        result = await rag.answer(f"{site}/manual.pdf", QUESTION)
        brief = rag.brief(result)

    assert f"passage: {site}/manual.pdf#page=2" in brief


async def test_callers_who_share_a_fetch_are_all_told_that_another_source_was_used(
    opened: Open, firecrawl: FakeFirecrawl, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/limits": PAGE})
    firecrawl.queue("scrape", *[failing(401, "Unauthorized: Invalid token")] * 5)
    settings = {"firecrawl_api_key": KEY, "firecrawl_api_url": firecrawl.url}
    url = f"{site}/limits"

    async with opened(**settings) as rag:
        evidence, report, answer = await asyncio.gather(
            rag.answer(url, QUESTION), rag.ingest(url), rag.ask(QUESTION, url=url)
        )

    assert site.paths == ["/limits"]
    told = [" ".join(each.degraded) for each in (evidence, report, answer)]
    assert [text.count("fetched by the built-in fetcher instead") for text in told] == [1, 1, 1]


async def test_page_is_there_although_firecrawl_refuses_the_key_and_everybody_is_told(
    opened: Open, firecrawl: FakeFirecrawl, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/limits": PAGE, "/more": PAGE.replace("95", "96")})
    firecrawl.queue("scrape", *[failing(401, "Unauthorized: Invalid token")] * 5)
    settings = {"firecrawl_api_key": KEY, "firecrawl_api_url": firecrawl.url}

    async with opened(**settings) as rag:
        result = await rag.answer(f"{site}/limits", QUESTION)
        report = await rag.ingest(f"{site}/more")
        brief = rag.brief(result)

    sentence = (
        "Firecrawl refused the API key (HTTP 401). Check FIRECRAWL_API_KEY, or take it out to use"
        " the built-in fetcher. Pages were fetched by the built-in fetcher instead."
    )
    assert result.degraded == report.degraded == (sentence,)
    assert f"Degraded: {sentence}" in brief
    assert len(firecrawl.calls) == 1
    assert KEY not in brief
