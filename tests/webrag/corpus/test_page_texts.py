import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import Document

from tests.kept_collections import KeptCollections
from webrag import WebRAG
from webrag.corpus.rows import document_id_of
from webrag.errors import InputError
from webrag.settings import load_settings

PARAGRAPH = "The ferry leaves the island at seven, at noon and at five, on every day."
PAGE = f"<html><title>Ferry</title><main><h1>Ferry</h1><p>{PARAGRAPH}</p></main></html>"


@pytest.fixture
async def rag(
    postgres_dir: Path, kept_collections: KeptCollections, static_site: Any
) -> AsyncIterator[WebRAG]:
    """Open, with one page stored."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    settings = load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])
    async with WebRAG(settings) as opened:
        await opened.ingest(f"{static_site({'/': PAGE})}/")
        yield opened
        await kept_collections.take_back_from(opened)


async def test_result_leads_to_its_passage_and_the_passage_to_its_page(rag: WebRAG) -> None:
    chunk = (await rag.search("When does the ferry leave?")).chunks[0].chunk

    passage = await rag.passage_text(chunk.chunk_id)
    assert passage is not None
    page = await rag.page_text(passage.document_id)

    assert page is not None
    assert passage.text == chunk.text == page.markdown[passage.char_start : passage.char_end]
    assert (page.url, page.title) == (chunk.source_url, "Ferry")


async def test_unknown_ids_lead_nowhere(rag: WebRAG) -> None:
    assert await rag.page_text(uuid.uuid4()) is None
    assert await rag.passage_text(uuid.uuid4()) is None


async def test_page_is_read_by_address_by_passage_and_around_a_quotation(rag: WebRAG) -> None:
    chunk = (await rag.search("When does the ferry leave?")).chunks[0].chunk

    by_address = await rag.read(chunk.source_url)
    by_passage = await rag.read(passage_id=str(chunk.chunk_id))
    by_quotation = await rag.read(chunk.source_url, quote="at seven, at noon")

    assert PARAGRAPH in by_address.text
    assert by_passage.char_start == chunk.char_start
    assert "at seven, at noon" in by_quotation.text


async def test_page_that_is_not_stored_cannot_be_read_and_nothing_is_fetched(
    rag: WebRAG, static_site: Any
) -> None:
    site = static_site({"/": PAGE})

    with pytest.raises(InputError, match="is not stored; `ingest` fetches it"):
        await rag.read(f"{site}/")

    assert site.paths == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "No page was named"),
        ({"passage_id": uuid.uuid4()}, "is not stored; the page may have changed"),
        ({"passage_id": "x"}, "give a UUID"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": True}, "max_tokens is True"),
        ({"offset": 1, "heading": "Ferry"}, "offset and heading name more than one place"),
    ],
)
async def test_reading_refuses_what_it_cannot_find(
    rag: WebRAG, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        await rag.read(**arguments)


@pytest.mark.parametrize(
    ("contains", "found"), [("", 1), ("FERRY", 1), ("127.0.0.1", 1), ("%", 0), ("_", 0), ("x'", 0)]
)
async def test_pages_are_named_by_words_of_url_or_title(
    rag: WebRAG, contains: str, found: int
) -> None:
    assert [page.title for page in await rag.page_names(contains)] == ["Ferry"] * found


NO_IDS = ["", "x", "1", "' or 1=1 --", "\0", "\ud800", "0" * 33, "g" * 32, 5, None, b"0" * 16, ()]


async def test_what_is_no_id_is_refused_in_a_sentence(
    rag: WebRAG, subtests: pytest.Subtests
) -> None:
    for number, identity in enumerate(NO_IDS):
        for read in (rag.page_text, rag.passage_text):
            with subtests.test(number=number, read=read.__name__):
                with pytest.raises(InputError) as raised:
                    await read(identity)  # type: ignore[arg-type]

                assert str(raised.value).endswith(".")
                assert str(raised.value).isprintable()


async def test_moment_that_is_still_to_come_leaves_no_page_and_the_result_says_why(
    rag: WebRAG,
) -> None:
    for moment in (datetime.now(UTC) + timedelta(days=1), datetime.max.replace(tzinfo=UTC)):
        result = await rag.search("When does the ferry leave?", fetched_since=moment)

        assert not result.chunks
        assert "which is still to come" in result.warnings[-1]


async def test_moment_that_is_past_is_not_said_to_come(rag: WebRAG) -> None:
    past = datetime.now(UTC) - timedelta(days=1)

    result = await rag.search("When does the ferry leave?", sites=["b.test"], fetched_since=past)

    assert "No stored page matches" in result.warnings[-1]
    assert "still to come" not in result.warnings[-1]


async def test_pages_are_listed_in_parts_by_words_and_by_site(
    rag: WebRAG, static_site: Any
) -> None:
    site = static_site({f"/{name}": PAGE.replace("Ferry", f"100% {name}") for name in "abc"})
    await rag.ingest([f"{site}/{name}" for name in "abc"])

    every = await rag.list_pages(limit=2, offset=1)
    worded = await rag.list_pages("100% B")
    of_site = await rag.list_pages("100%", site=str(site).removeprefix("http://"), limit=1)

    assert (len(every.pages), every.total) == (2, 4)
    assert [page.title for page in worded.pages] == ["100% b"]
    assert (len(of_site.pages), of_site.total) == (1, 3)


@pytest.mark.parametrize("bad", ["\0", "\ud83d"])
async def test_pages_are_listed_by_words_that_no_table_takes(rag: WebRAG, bad: str) -> None:
    await rag.add_documents([Document(text="A pump.", metadata={"title": f"Pump {bad}"})])

    assert [page.title for page in (await rag.list_pages(bad)).pages] == ["Pump \ufffd"]
    assert (await rag.list_pages(site=bad)).total == 0


async def test_images_of_a_page_are_known_in_their_order(rag: WebRAG, static_site: Any) -> None:
    figures = (
        '<p>Before.</p><figure><img src="/1.png" alt="Pier"><figcaption>The pier.</figcaption>'
        '</figure><p>After.</p><img src="/2.png" alt="Gulls"><p>End.</p>'
    )
    site = static_site({"/": PAGE.replace("</main>", f"{figures}</main>")})
    report = await rag.ingest(f"{site}/")
    document_id = document_id_of(report.pages[0].url)

    images = await rag.page_images(document_id)

    page = await rag.page_text(document_id)
    assert page is not None
    assert [image.alt for image in images] == ["Pier", "Gulls"]
    assert page.markdown.index("Before") < images[0].position <= page.markdown.index("After")
