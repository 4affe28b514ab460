import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, MetadataMode
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag import FirecrawlPageReader
from webrag.errors import FetchError, InputError, PageGoneError, SourceUnavailableError
from webrag.ingestion.firecrawl.source import FirecrawlSource

from .conftest import public_resolver
from .fake_firecrawl import KEY, FakeFirecrawl, document, failing

URLS = ["https://docs.test/tables", "https://docs.test/terms"]
TABLES = (
    "<html lang=en><head><title>Tables</title></head><body><main><h1>Tables</h1>"
    "<h2>Ports</h2><p>The ports that are in use.</p>"
    "<table><tr><th>Service</th><th>Port</th></tr><tr><td>broker</td><td>7411</td></tr></table>"
    "<h2>Words</h2><p>See <a href='/terms'>the terms</a> for what they mean.</p>"
    "</main></body></html>"
)
TERMS = (
    "<html><head><title>Terms</title></head><body><main><h1>Terms</h1><dl><dt>lag</dt>"
    "<dd>How far a replica is behind its leader.</dd></dl></main></body></html>"
)


@pytest.fixture
def make_reader(
    firecrawl: FakeFirecrawl, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., FirecrawlPageReader]:
    module = "webrag.ingestion.firecrawl.source"
    made = partial(FirecrawlSource, resolver=public_resolver)
    monkeypatch.setattr(f"{module}.FirecrawlSource", made)
    for url, html in zip(URLS, (TABLES, TERMS), strict=True):
        firecrawl.pages[url] = document(html, markdown="what Firecrawl makes of it")

    def make(**options: Any) -> FirecrawlPageReader:
        given = {"api_key": KEY, "api_url": firecrawl.url}
        return FirecrawlPageReader(**{**given, **options})

    return make


def load(reader: FirecrawlPageReader, urls: str | Sequence[str]) -> list[Document]:
    return reader.load_data(urls)


def test_documents_are_ready_for_the_node_parser(
    make_reader: Callable[..., FirecrawlPageReader],
) -> None:
    documents = load(make_reader(), URLS)

    nodes = ParentChildNodeParser().get_nodes_from_documents(documents)
    by_page = {each.id_: each.text for each in documents}
    assert {node.ref_doc_id for node in nodes} == set(URLS)
    assert all(
        by_page[node.ref_doc_id][node.start_char_idx : node.end_char_idx] == node.text  # type: ignore[attr-defined, index]
        for node in nodes
    )


def test_html_of_each_section_goes_with_its_text(
    make_reader: Callable[..., FirecrawlPageReader],
) -> None:
    documents = load(make_reader(), URLS)

    nodes = ParentChildNodeParser(parent_tokens=24, child_tokens=20).get_nodes_from_documents(
        documents
    )
    parents = [node for node in nodes if node.metadata["chunk_level"] == "parent"]
    with_html = {node.metadata["heading"]: node.metadata.get("html", "") for node in parents}
    assert "<td>7411</td>" in with_html["Ports"]
    assert "7411" not in with_html["Words"]


def test_metadata_says_what_is_known_of_the_page(
    make_reader: Callable[..., FirecrawlPageReader],
) -> None:
    (page,) = load(make_reader(), URLS[0])

    assert page.metadata["title"] == "Tables"
    assert page.metadata["source_url"] == page.id_ == URLS[0]
    assert page.metadata["links"] == ["https://docs.test/terms"]
    assert (page.metadata["source"], page.metadata["status"]) == ("firecrawl", 200)
    assert "](" not in page.text


def test_models_see_neither_html_nor_bookkeeping(
    make_reader: Callable[..., FirecrawlPageReader],
) -> None:
    (page,) = load(make_reader(), URLS[0])

    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        seen = page.get_content(mode)
        assert "<td>" not in seen
        assert page.metadata["content_hash"] not in seen
    assert SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents([page])


def test_one_page_is_scraped_and_several_are_one_batch(
    firecrawl: FakeFirecrawl, make_reader: Callable[..., FirecrawlPageReader]
) -> None:
    load(make_reader(), URLS[0])
    load(make_reader(), URLS)

    assert len(firecrawl.asked("scrape")) == len(firecrawl.asked("batch")) == 1


def test_lazy_loading_asks_for_a_page_when_it_is_wanted(
    firecrawl: FakeFirecrawl, make_reader: Callable[..., FirecrawlPageReader]
) -> None:
    documents = iter(make_reader().lazy_load_data(URLS))

    assert next(documents).id_ == URLS[0]
    assert len(firecrawl.asked("scrape")) == 1


async def test_it_can_be_awaited_and_called_where_a_loop_is_running(
    make_reader: Callable[..., FirecrawlPageReader],
) -> None:
    reader = make_reader()

    awaited, called = await reader.aload_data(URLS[0]), reader.load_data(URLS[0])

    assert awaited[0].text == called[0].text
    assert len(asyncio.all_tasks()) == 1


def test_first_failure_is_raised(
    firecrawl: FakeFirecrawl, make_reader: Callable[..., FirecrawlPageReader]
) -> None:
    firecrawl.pages[URLS[1]] = document("", status=404)

    with pytest.raises(PageGoneError):
        load(make_reader(), URLS)


def test_pages_that_failed_can_be_left_out(
    firecrawl: FakeFirecrawl, make_reader: Callable[..., FirecrawlPageReader]
) -> None:
    firecrawl.pages[URLS[1]] = document("<p></p>")
    reader = make_reader(raise_on_error=False)

    documents = load(reader, [*URLS, "http://10.0.0.1/"])

    assert [each.id_ for each in documents] == URLS[:1]
    assert list(reader.failed) == [URLS[1], "http://10.0.0.1/"]
    assert all(isinstance(error, FetchError) for error in reader.failed.values())


def test_failure_of_the_service_is_named(
    firecrawl: FakeFirecrawl, make_reader: Callable[..., FirecrawlPageReader]
) -> None:
    firecrawl.queue("scrape", failing(402, "Payment Required"))

    with pytest.raises(SourceUnavailableError, match="no credits left"):
        load(make_reader(), URLS[0])


def test_what_is_no_web_address_is_refused_before_anything_is_asked(
    firecrawl: FakeFirecrawl, make_reader: Callable[..., FirecrawlPageReader]
) -> None:
    with pytest.raises(InputError):
        load(make_reader(), [URLS[0], "mailto:me@docs.test"])

    assert firecrawl.calls == []
