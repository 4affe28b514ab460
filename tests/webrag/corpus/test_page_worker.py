import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.corpus.indexer import CutDocument, LocalCutter, PageWorkers
from webrag.corpus.page_worker import CutSetup
from webrag.errors import UnusablePageError
from webrag.ingestion.models import FetchedPage, NormalizedDocument
from webrag.ingestion.service import ExtractionPool

MakeDocument = Callable[..., NormalizedDocument]
TABLE = "| option | default |\n| --- | --- |\n| max_connections | 100 |\n"
HTML = "<table><tr><th>option<th>default<tr><td>max_connections<td>100</table>"


def setup_of(parser: ParentChildNodeParser) -> CutSetup:
    return CutSetup("tiktoken", "cl100k_base", parser.parent_tokens, parser.child_tokens)


@pytest.fixture
async def workers() -> AsyncIterator[ExtractionPool]:
    pool = ExtractionPool(workers=1, timeout_s=30.0)
    yield pool
    await pool.aclose()


@pytest.fixture
def cutter(workers: ExtractionPool) -> PageWorkers:
    parser = ParentChildNodeParser()
    return PageWorkers(workers, setup_of(parser))


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        pytest.param(None, "", id="guide"),
        pytest.param("", "", id="empty"),
        pytest.param("# 漢字\n\n" + "漢字かな交じり文。" * 300, "", id="cjk"),
        pytest.param(f"# T\n\n{TABLE}", HTML, id="table"),
        pytest.param(
            "# T\n\n![alt](a.png 'Title')\n\nx <|endoftext|> `Vec::new`", "", id="image-and-code"
        ),
        pytest.param("## A\n\ntext\n\n" * 300, "", id="sections"),
    ],
)
async def test_rows_are_the_same_wherever_they_are_made(
    cutter: PageWorkers, make_document: MakeDocument, markdown: str | None, html: str
) -> None:
    document = make_document(html=html)
    if markdown is not None:
        document = make_document(markdown=markdown, html=html)

    there = await cutter.rows(document, depth=3)

    here = await LocalCutter(ParentChildNodeParser()).rows(document, depth=3)
    assert replace(there, postings=[]) == replace(here, postings=[])
    assert list(map(tuple, there.postings)) == list(map(tuple, here.postings))


@pytest.mark.parametrize("place", ["here", "there"])
@pytest.mark.parametrize(
    ("markdown", "said"),
    [
        pytest.param("# a\n\nb\n\n" * 15_000, "20,000 pieces", id="sections"),
        pytest.param("x " * 5_000_001, "10,000,000 can be cut", id="characters"),
    ],
)
async def test_page_beyond_a_limit_is_refused_by_name(
    cutter: PageWorkers, make_document: MakeDocument, place: str, markdown: str, said: str
) -> None:
    chosen: Any = cutter if place == "there" else LocalCutter(ParentChildNodeParser())

    with pytest.raises(UnusablePageError, match=said) as caught:
        await chosen.rows(make_document(markdown=markdown), depth=0)

    assert "https://docs.test/guide is too large to be indexed" in str(caught.value)
    assert caught.value.kind == "too_large"


async def test_deadline_ends_the_cutting_and_names_the_page(make_document: MakeDocument) -> None:
    pool = ExtractionPool(workers=1, timeout_s=30.0)
    parser = ParentChildNodeParser()
    slow = PageWorkers(pool, setup_of(parser), timeout_s=0.05)

    with pytest.raises(UnusablePageError, match=r"https://docs\.test/guide .*longer than 0\.05"):
        await slow.rows(make_document(markdown="A sentence of words. " * 200_000), depth=0)

    await pool.aclose()


async def test_cancelling_ends_the_cutting(
    workers: ExtractionPool, cutter: PageWorkers, make_document: MakeDocument
) -> None:
    await cutter.rows(make_document(), depth=0)
    started = time.monotonic()
    await cutter.rows(make_document(markdown="A sentence of words. " * 4_000), depth=0)
    hundredth_s = time.monotonic() - started
    document = make_document(markdown="A sentence of words. " * 400_000)
    task = asyncio.create_task(cutter.rows(document, depth=0))
    await asyncio.sleep(0.3)
    started = time.monotonic()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    assert time.monotonic() - started < 50 * hundredth_s
    assert (await cutter.rows(make_document(), depth=0)).children


async def test_words_beyond_the_limit_are_refused(
    cutter: PageWorkers, make_document: MakeDocument
) -> None:
    words = "".join(f"x{number:x} " for number in range(310_000))

    with pytest.raises(UnusablePageError, match=r"300,000 different words"):
        await cutter.rows(make_document(markdown=words), depth=0)


def page_of(text: str) -> FetchedPage:
    return FetchedPage(
        requested_url="https://docs.test/guide",
        url="https://docs.test/guide",
        status=200,
        kind="html",
        text=f"<title>Guide</title><body>{text}</body>",
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
        source="test",
    )


HTML_GUIDE = f"<h1>Guide</h1><p>How data is kept.</p>{HTML}"


async def test_page_that_was_converted_is_cut_already() -> None:
    pool = ExtractionPool(workers=1, timeout_s=30.0)
    workers = PageWorkers(pool, setup_of(ParentChildNodeParser()))
    document = await workers.convert(page_of(HTML_GUIDE))
    await pool.aclose()

    there = await workers.rows(document, depth=3)

    here = await LocalCutter(ParentChildNodeParser()).rows(document, depth=3)
    assert replace(there, postings=[]) == replace(here, postings=[])
    assert list(map(tuple, there.postings)) == list(map(tuple, here.postings))


@pytest.mark.parametrize(
    "change", [{"title": "Other"}, {"url": "https://docs.test/b"}, {"metadata": {"team": "x"}}]
)
async def test_page_that_changes_after_its_conversion_is_cut_again(
    cutter: PageWorkers, change: dict[str, Any]
) -> None:
    document = (await cutter.convert(page_of(HTML_GUIDE))).model_copy(update=change)

    there = await cutter.rows(document, depth=0)

    here = await LocalCutter(ParentChildNodeParser()).rows(document, depth=0)
    assert there.children == here.children


async def test_text_that_is_stored_already_is_not_cut(cutter: PageWorkers) -> None:
    first = await cutter.convert(page_of(HTML_GUIDE))

    again = await cutter.convert(page_of(HTML_GUIDE), known=first.content_hash)

    assert isinstance(first, CutDocument)
    assert type(again) is NormalizedDocument
    assert again.markdown == first.markdown


async def test_page_that_is_too_large_to_cut_is_converted_all_the_same(
    cutter: PageWorkers,
) -> None:
    document = await cutter.convert(page_of("<h1>a</h1><p>b</p>" * 15_000))

    with pytest.raises(UnusablePageError, match=r"too large to be indexed.*20,000 pieces"):
        await cutter.rows(document, depth=0)


async def test_cutting_that_takes_too_long_is_told_apart_from_converting() -> None:
    pool = ExtractionPool(workers=1, timeout_s=30.0)
    workers = PageWorkers(pool, setup_of(ParentChildNodeParser()), timeout_s=0.02)
    document = await workers.convert(page_of("<p>A sentence of words.</p>" * 20_000))

    with pytest.raises(UnusablePageError, match=r"cut into passages: it took longer than 0\.02"):
        await workers.rows(document, depth=0)

    await pool.aclose()


async def test_page_that_cannot_be_converted_says_why(cutter: PageWorkers) -> None:
    with pytest.raises(UnusablePageError, match="no readable text"):
        await cutter.convert(page_of(""))
