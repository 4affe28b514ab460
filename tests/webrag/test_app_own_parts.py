"""WebRAG with a program's own embedding, language model and node parser."""

import uuid
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    SentenceSplitter,
    TokenTextSplitter,
)

from tests.kept_collections import KeptCollections
from webrag import WebRAG, load_settings
from webrag.errors import ConfigurationError
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database

TEXT = "# Ferries\n\n" + "The ferry leaves the island at noon. Gulls follow it to the pier. " * 20
QUESTION = "When does the ferry leave?"


class Words(BaseEmbedding):
    """Embeds a text as the words it holds, each at a place of its own."""

    size: int = 24
    asked: list[str] = []  # noqa: RUF012  pydantic copies it

    def _get_text_embedding(self, text: str) -> list[float]:
        self.asked.append(text)
        vector = [0.0] * self.size
        for word in text.lower().split():
            vector[zlib.crc32(word.strip(".?#").encode()) % self.size] += 1.0
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Writer(CustomLLM):
    """Counts how often it is asked."""

    asked: list[str] = []  # noqa: RUF012  pydantic copies it

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, *_: Any, **__: Any) -> CompletionResponse:
        self.asked.append(prompt)
        return CompletionResponse(text="")

    def stream_complete(self, prompt: str, *_: Any, **__: Any) -> Any:
        yield self.complete(prompt)


@pytest.fixture
async def settings(postgres_dir: Path, kept_collections: KeptCollections) -> AsyncIterator[Any]:
    """Settings of a collection of its own."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    yield load_settings(data_dir=postgres_dir, collection=name)
    database = Database(DatabaseConfig(data_dir=postgres_dir, collection=name))
    await kept_collections.take_back(database)
    await database.close()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A file about ferries."""
    path = tmp_path / "ferries.md"
    path.write_text(TEXT)
    return path


async def test_texts_and_questions_are_embedded_with_the_model_given(
    settings: Any, page: Path
) -> None:
    model = Words(model_name="counts")

    async with WebRAG(settings, embed_model=model) as rag:
        await rag.ingest(page)
        result = await rag.search(QUESTION)
        status = await rag.status()

        assert rag.embed_model() is model
    assert any("Gulls" in text for text in model.asked)
    assert QUESTION in model.asked
    assert "noon" in result.chunks[0].chunk.text
    assert (status.embedding_model, status.embedding_dimensions) == ("Words/counts", 24)


async def test_collection_is_opened_again_with_the_same_model_without_asking_it(
    settings: Any,
) -> None:
    async with WebRAG(settings, embed_model=Words(model_name="counts")):
        pass
    again = Words(model_name="counts")

    async with WebRAG(settings, embed_model=again):
        assert again.asked == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Words(model_name="other"), "made with the embedding model Words/counts"),
        (None, "embedding model 'Words/counts'"),
    ],
)
async def test_collection_of_another_model_is_refused(
    settings: Any, other: Words | None, message: str
) -> None:
    async with WebRAG(settings, embed_model=Words(model_name="counts")):
        pass

    with pytest.raises(ConfigurationError, match=message) as refused:
        await WebRAG(settings, embed_model=other).open()

    assert other is not None or "WebRAG(embed_model=...)" in str(refused.value.hint)


async def test_stored_text_is_embedded_again_with_a_model_given_later(
    settings: Any, page: Path
) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(page)

    await WebRAG(settings, embed_model=Words(model_name="counts")).reindex()

    async with WebRAG(settings, embed_model=Words(model_name="counts")) as rag:
        assert "noon" in (await rag.search(QUESTION)).chunks[0].chunk.text


async def test_language_model_given_is_asked_for_answers(settings: Any, page: Path) -> None:
    writer = Writer()

    async with WebRAG(settings, llm=writer) as rag:
        await rag.ingest(page)
        await rag.ask(QUESTION)

    assert any(QUESTION in prompt for prompt in writer.asked)


@pytest.mark.parametrize(
    "parser",
    [
        SentenceSplitter(chunk_size=64, chunk_overlap=0),
        TokenTextSplitter(chunk_size=64),
        HierarchicalNodeParser.from_defaults(chunk_sizes=[256, 128, 64], chunk_overlap=0),
    ],
)
async def test_pages_are_cut_by_the_node_parser_given(
    settings: Any, page: Path, parser: Any
) -> None:
    async with WebRAG(settings, node_parser=parser) as rag:
        await rag.ingest(page)
        nodes = await rag.vector_store().aget_nodes()
        result = await rag.search(QUESTION)

        assert rag.node_parser() is parser
    assert len(nodes) > 4
    assert "noon" in result.chunks[0].chunk.text


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"embed_model": "text-embedding-3-small"}, "give a LlamaIndex embedding"),
        ({"llm": "gpt-4o-mini"}, "give a LlamaIndex LLM"),
        ({"node_parser": "sentences"}, "give a LlamaIndex node parser"),
        ({"reranker": "cohere"}, "give a LlamaIndex postprocessor"),
        ({"page_source": "firecrawl"}, "give a LlamaIndex web reader"),
    ],
)
async def test_name_in_place_of_a_part_is_refused(
    settings: Any, part: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await WebRAG(settings, **part).open()
