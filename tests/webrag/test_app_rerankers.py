import re
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document
from llama_index.postprocessor.webrag import ScaledScores

from tests.kept_collections import KeptCollections
from webrag import WebRAG, load_settings
from webrag.errors import ConfigurationError
from webrag.orchestration.models import ScoreProfile

URL = "http://127.0.0.1/limits"
QUESTION = "When does the broker close an idle connection?"
PAGE = "".join(
    f"<h2>{topic}</h2><p>{' '.join([text] * 40)}</p>"
    for topic, text in (
        ("Idle", "The broker closes an idle connection when nothing was sent."),
        ("Certificates", "The broker renews certificates every night."),
    )
)
Open = Callable[..., AbstractAsyncContextManager[WebRAG]]


class Reader(BaseReader):
    def load_data(self, urls: list[str]) -> list[Document]:
        return [Document(text=f"<html><body><main>{PAGE}</main></body></html>") for _ in urls]


class Grader(CustomLLM):
    """A model that grades passages about certificates 9 of 10, and all others 2."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, *_: Any, **__: Any) -> CompletionResponse:
        asked = prompt.rsplit("Let's try this now", 1)[1]
        shown = re.findall(r"Document (\d+):\n(.*?)(?=\nDocument \d+:|\nQuestion:|\Z)", asked, re.S)
        grades = (
            f"Doc: {number}, Relevance: {9 if 'renews certificates' in text else 2}"
            for number, text in shown
        )
        return CompletionResponse(text="\n".join(grades))

    def stream_complete(self, prompt: str, *_: Any, **__: Any) -> Any:
        yield self.complete(prompt)


@pytest.fixture
def opened(postgres_dir: Path, kept_collections: KeptCollections) -> Open:
    """Opens a WebRAG with this reranker on a collection of its own that is dropped afterwards."""

    @asynccontextmanager
    async def make(provider: str = "auto", **parts: Any) -> AsyncIterator[WebRAG]:
        settings = load_settings(
            data_dir=postgres_dir,
            collection=f"test_{uuid.uuid4().hex[:16]}",
            allow_hosts=["127.0.0.1"],
            reranker_provider=provider,
        )
        rag = WebRAG(settings, page_source=Reader(), **parts)
        await rag.open()
        try:
            yield rag
        finally:
            await kept_collections.take_back_from(rag)

    return make


async def test_reranker_of_llama_index_decides_the_order(opened: Open) -> None:
    rerank = ScaledScores(reranker=LLMRerank(llm=Grader(), top_n=20), scale=(0, 10))
    async with opened(reranker=rerank) as rag:
        result = await rag.answer(URL, QUESTION)

    best, *_, last = sorted(result.chunks, key=lambda item: -item.reranked_score)
    assert "certificates" in best.chunk.text
    assert (best.reranked_score, last.reranked_score) == pytest.approx((0.9, 0.2))


async def test_reranker_of_ones_own_that_fails_is_named_in_the_result(opened: Open) -> None:
    class Broken(Grader):
        @llm_completion_callback()
        def complete(self, *_: Any, **__: Any) -> CompletionResponse:
            raise ConnectionError("no model")

    async with opened(reranker=LLMRerank(llm=Broken(), top_n=20)) as rag:
        result = await rag.answer(URL, QUESTION)

    assert result.chunks
    assert "LLMRerank failed (ConnectionError: no model)" in result.degraded[0]


async def test_unknown_score_profile_is_refused(opened: Open) -> None:
    with pytest.raises(ConfigurationError, match="no score profile 'best'; there are"):
        async with opened(reranker=LLMRerank(llm=Grader()), score_profile="best"):
            pass


async def test_score_profile_needs_a_reranker(opened: Open) -> None:
    with pytest.raises(ConfigurationError, match="pass reranker"):
        async with opened(score_profile=ScoreProfile(name="mine")):
            pass


@pytest.mark.parametrize("provider", ["zeroentropy", "cohere", "jina"])
async def test_service_without_a_key_leaves_the_order_of_the_search_and_every_result_says_so(
    opened: Open, provider: str
) -> None:
    async with opened("none") as rag:
        expected = await rag.answer(URL, QUESTION)

    async with opened(provider) as rag:
        results = [
            await rag.answer(URL, QUESTION),
            await rag.search(QUESTION),
            await rag.ask(QUESTION, url=URL),
        ]
        status = await rag.status()

    assert status.documents == 1
    assert _ranked_texts(results[0]) == _ranked_texts(expected)
    for result in results:
        (note,) = result.degraded
        assert f"RERANKER_PROVIDER={provider} needs a key" in note
        assert f"{provider.upper()}_API_KEY" in note


def _ranked_texts(result: Any) -> list[tuple[str, float]]:
    return [(each.chunk.text, each.reranked_score) for each in result.chunks]
