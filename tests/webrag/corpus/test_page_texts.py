import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from webrag import WebRAG
from webrag.settings import load_settings

PARAGRAPH = "The ferry leaves the island at seven, at noon and at five, on every day."
PAGE = f"<html><title>Ferry</title><main><h1>Ferry</h1><p>{PARAGRAPH}</p></main></html>"


@pytest.fixture
async def rag(postgres_dir: Path, static_site: Any) -> AsyncIterator[WebRAG]:
    """Open, with one page stored."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    settings = load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])
    async with WebRAG(settings) as opened:
        await opened.ingest(f"{static_site({'/': PAGE})}/")
        yield opened
        await opened.drop_collection()


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
