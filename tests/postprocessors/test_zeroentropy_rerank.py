from typing import Any

import pytest
from llama_index.postprocessor.webrag import ZeroEntropyRerank

from .conftest import KEY, RerankServer, node

NODES = [node("rank 1"), node("rank 2")]


async def body(server: RerankServer, **fields: Any) -> dict[str, Any]:
    await server.rerank("zeroentropy", **fields).apostprocess_nodes(NODES, query_str="why?")
    assert server.asked[0].path == "/v1/models/rerank"
    return server.asked[0].body


async def test_request_has_the_published_form(rerank_server: RerankServer) -> None:
    assert await body(rerank_server) == {
        "model": "zerank-2",
        "query": "why?",
        "documents": ["rank 1", "rank 2"],
        "top_n": 2,
        "latency": "fast",
    }


async def test_instruction_can_have_a_field_where_a_service_has_one(
    rerank_server: RerankServer,
) -> None:
    results = [{"index": index, "relevance_score": 0.5} for index in range(2)]
    rerank_server.answer({"results": results})

    sent = await body(rerank_server, instruction="Prefer code.", instruction_field="instruction")

    assert (sent["instruction"], sent["query"]) == ("Prefer code.", "why?")


async def test_instruction_goes_before_the_question(rerank_server: RerankServer) -> None:
    sent = await body(rerank_server, instruction="Prefer code.")

    assert "instruction" not in sent
    assert sent["query"] == "Prefer code.\nwhy?"


@pytest.mark.parametrize("latency", ["slow", None])
async def test_latency_can_be_chosen(rerank_server: Any, latency: Any) -> None:
    assert (await body(rerank_server, latency=latency)).get("latency") == latency


async def test_model_can_be_chosen(rerank_server: RerankServer) -> None:
    assert (await body(rerank_server, model="zerank-1-small"))["model"] == "zerank-1-small"


def test_service_is_asked_at_its_published_address() -> None:
    rerank = ZeroEntropyRerank(api_key=KEY)

    assert rerank.base_url + rerank.path == "https://api.zeroentropy.dev/v1/models/rerank"
    assert rerank.class_name() == "ZeroEntropyRerank"
