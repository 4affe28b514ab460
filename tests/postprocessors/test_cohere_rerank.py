from typing import Any

from llama_index.postprocessor.webrag import CohereRerank

from .conftest import KEY, RerankServer, node

NODES = [node("rank 1"), node("rank 2")]


async def body(server: RerankServer, **fields: Any) -> dict[str, Any]:
    await server.rerank("cohere", **fields).apostprocess_nodes(NODES, query_str="why?")
    assert server.asked[0].path == "/v2/rerank"
    return server.asked[0].body


async def test_request_has_the_published_form(rerank_server: RerankServer) -> None:
    assert await body(rerank_server) == {
        "model": "rerank-v3.5",
        "query": "why?",
        "documents": ["rank 1", "rank 2"],
        "top_n": 2,
        "max_tokens_per_doc": 4096,
    }


async def test_instruction_goes_before_the_question(rerank_server: RerankServer) -> None:
    sent = await body(rerank_server, instruction="Prefer code.")

    assert sent["query"] == "Prefer code.\nwhy?"


async def test_model_and_tokens_can_be_chosen(rerank_server: RerankServer) -> None:
    sent = await body(rerank_server, model="rerank-english-v3.0", max_tokens_per_doc=512)

    assert (sent["model"], sent["max_tokens_per_doc"]) == ("rerank-english-v3.0", 512)


def test_service_is_asked_at_its_published_address() -> None:
    rerank = CohereRerank(api_key=KEY)

    assert rerank.base_url + rerank.path == "https://api.cohere.com/v2/rerank"
    assert rerank.class_name() == "CohereRerank"
