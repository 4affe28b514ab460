"""Whatever a service does ends in one error that is named, short and without the key."""

import asyncio
import json
import logging
import time
import traceback
from typing import Any

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag import (
    CohereRerank,
    JinaRerank,
    RemoteRerank,
    RerankError,
    ZeroEntropyRerank,
)

from tests.webrag.orchestration.conftest import build_chunk, build_match, build_result
from webrag.answering.language_model import ask, stream
from webrag.embedding.embedder import Embedder
from webrag.errors import ProviderError, SourceUnavailableError, WebRAGError
from webrag.ingestion.firecrawl.source import FirecrawlSource
from webrag.ingestion.models import FirecrawlConfig
from webrag.mcp_server.replies import failure_text
from webrag.orchestration.models import ScoreProfile
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.orchestration.ranking.reranker import ChunkReranker
from webrag.question import Question
from webrag.redaction import remember_secrets
from webrag.wiring.served_language_model import ServedLanguageModel

from .provider_faults import FAULTS, KEY, PROVIDERS, REFUSED, echoes, faulty_server

NOBODY = "http://127.0.0.1:9"
# Four characters of the key that nothing else has, in each form in which it is repeated.
TELLING = ("A7b/9", "A7b%2F", "9Zq+", "4Lm2", "Yh8Wx3", "8Wx3", "c2stY2FuYXJ5", "Wx3")


def leaks(text: str) -> list[str]:
    return [part for part in TELLING if part in text]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_fault_ends_in_one_named_error(
    provider: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    started = time.monotonic()

    with (
        faulty_server(FAULTS[fault]) as url,
        pytest.raises((WebRAGError, RerankError)) as raised,
    ):
        await PROVIDERS[provider](NOBODY if fault == REFUSED else url, 0.8)

    error = raised.value
    own = [each.getMessage() for each in caplog.records if each.name.startswith("webrag")]
    shown = f"{error} {error!r} {getattr(error, 'hint', '')} {failure_text(error)} {own}"
    shown += "".join(traceback.format_exception(error, chain=True, limit=0))
    assert len(str(error)) < 600
    assert "\n" not in str(error)
    assert leaks(shown) == []
    assert time.monotonic() - started < 30


class Failing(BaseNodePostprocessor):
    """A reranker of somebody else, whose error repeats what a service said."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        del nodes, query_bundle
        raise RuntimeError(f"headers: {{'authorization': 'Bearer {KEY}'}}, {echoes()}")


def reranker(kind: type[RemoteRerank], url: str) -> RemoteRerank:
    return kind(api_key=KEY, base_url=url, backoff_s=0.01, timeout_s=1.0)


@pytest.mark.parametrize("fault", ["401", "500", "wrong shape", "malformed JSON", "429 without"])
@pytest.mark.parametrize("kind", [ZeroEntropyRerank, CohereRerank, JinaRerank])
async def test_reranker_that_fails_is_named_and_the_order_kept(
    kind: type[RemoteRerank], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = build_result(build_chunk(matches=(build_match("one"),)))
    with faulty_server(FAULTS[fault]) as url:
        ranked, note = await ChunkReranker(reranker(kind, url), ScoreProfile(name="test")).rerank(
            "why?", result
        )

    assert len(ranked) == 1
    assert note is not None
    assert "passages keep the order of the search" in note
    assert leaks(note + caplog.text) == []


async def test_foreign_reranker_s_error_shows_no_key(caplog: pytest.LogCaptureFixture) -> None:
    result = build_result(build_chunk(matches=(build_match("one"),)))
    remember_secrets(KEY)

    _, note = await ChunkReranker(Failing(), ScoreProfile(name="test")).rerank("why?", result)

    assert leaks(str(note) + caplog.text) == []


def language_model(url: str) -> Any:
    return ServedLanguageModel(
        model="m", api_base=f"{url}/v1", api_key=KEY, is_chat_model=True, max_retries=0
    )


@pytest.mark.parametrize("fault", ["401", "500", "wrong shape", "malformed JSON", "huge body"])
async def test_analysis_that_fails_says_so_without_the_key(fault: str) -> None:
    with faulty_server(FAULTS[fault]) as url:
        model = language_model(url)
        analysis, degraded = await QueryAnalyzer(llm=model, timeout_s=5).analyze(
            Question.of("tabs vs spaces")
        )
        await model._get_aclient().close()

    assert analysis.method == "rule_based"
    assert degraded is not None
    assert leaks(degraded) == []


def saying(content: str) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content},
        "finish_reason": "stop",
    }
    about = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**about, "choices": [choice]}).encode()


async def test_answer_of_a_model_that_repeats_the_key_is_cleaned() -> None:
    with faulty_server(lambda handler: handler.send(200, saying(f"It is {echoes()}."))) as url:
        model = language_model(url)
        said = await ask(model, [("user", "What is the key?")])
        await model._get_aclient().close()

    assert said.startswith("It is key ***, Authorization: Bearer ***")
    assert leaks(said) == []


async def test_analysis_of_a_model_that_repeats_the_key_is_cleaned() -> None:
    found = {
        "sub_queries": [f"why {KEY}"],
        "query_type": "factual",
        "complexity": "simple",
        "key_concepts": [KEY],
    }
    with faulty_server(lambda handler: handler.send(200, saying(json.dumps(found)))) as url:
        model = language_model(url)
        analysis, _ = await QueryAnalyzer(llm=model, timeout_s=5).analyze(Question.of("why?"))
        await model._get_aclient().close()

    assert analysis.method == "llm"
    assert leaks(str(analysis)) == []


async def test_stream_of_a_model_that_repeats_the_key_is_cleaned() -> None:
    def chunks(handler: Any) -> None:
        text = f"It is {echoes()}. That is all."
        lines = []
        for at in range(0, len(text), 5):
            delta = {"index": 0, "delta": {"content": text[at : at + 5]}, "finish_reason": None}
            about = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            lines.append(f"data: {json.dumps({**about, 'choices': [delta]})}\n\n")
        body = "".join([*lines, "data: [DONE]\n\n"]).encode()
        handler.send(200, body, {"Content-Type": "text/event-stream"})

    with faulty_server(chunks) as url:
        model = language_model(url)
        said = "".join([piece async for piece in stream(model, [("user", "why?")])])
        await model._get_aclient().close()

    assert said.startswith("It is key ***,")
    assert said.endswith("That is all.")
    assert leaks(said) == []


async def public(_host: str, _port: int) -> list[str]:
    return ["93.184.215.14"]


async def test_page_in_which_firecrawl_repeats_the_key_is_cleaned() -> None:
    page = {
        "html": f"<p>Hello {KEY} world</p>",
        "rawHtml": f"<p>Hello {KEY} world</p>",
        "warning": echoes(),
        "metadata": {"statusCode": 200, "sourceURL": "https://page.test/", "title": KEY},
    }
    body = json.dumps({"success": True, "data": page}).encode()
    with faulty_server(lambda handler: handler.send(200, body)) as url:
        source = FirecrawlSource(FirecrawlConfig(api_url=url, api_key=KEY), resolver=public)
        fetched = await source.fetch("https://page.test/")
        await source.aclose()

    assert "Hello *** world" in fetched.text
    assert leaks(repr(fetched)) == []


class ForeignEmbedding(BaseEmbedding):
    """Stands for a model whose package raises whatever it likes."""

    api_key: str = KEY

    def _get_query_embedding(self, query: Any) -> Any:
        del query
        raise RuntimeError(echoes())

    _get_text_embedding = _aget_query_embedding = _get_query_embedding


async def test_foreign_embedding_s_error_shows_no_key() -> None:
    with pytest.raises(ProviderError) as raised:
        await Embedder(ForeignEmbedding(), 2).embed_query("why?")

    assert leaks("".join(traceback.format_exception(raised.value, limit=0))) == []


async def test_logs_of_every_fault_show_no_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="webrag")
    caplog.set_level(logging.DEBUG, logger="llama_index.postprocessor.webrag")
    with faulty_server(FAULTS["500"]) as url:
        outcomes = await asyncio.gather(
            *(each(url, 2.0) for each in PROVIDERS.values()), return_exceptions=True
        )

    own = [
        each.getMessage()
        for each in caplog.records
        if each.name.startswith(("webrag", "llama_index.postprocessor.webrag"))
    ]
    assert all(isinstance(each, WebRAGError | RerankError) for each in outcomes)
    assert any(isinstance(each, SourceUnavailableError) for each in outcomes)
    assert leaks(" ".join(own)) == []
