from typing import Any

from llama_index.postprocessor.webrag import JinaRerank

from .conftest import KEY, RerankServer, node

NODES = [node("rank 1"), node("rank 2")]


async def body(server: RerankServer, **fields: Any) -> dict[str, Any]:
    await server.rerank("jina", **fields).apostprocess_nodes(NODES, query_str="why?")
    assert server.asked[0].path == "/v1/rerank"
    return server.asked[0].body


async def test_request_has_the_published_form(rerank_server: RerankServer) -> None:
    assert await body(rerank_server) == {
        "model": "jina-reranker-v2-base-multilingual",
        "query": "why?",
        "documents": ["rank 1", "rank 2"],
        "top_n": 2,
        "return_documents": False,
    }


async def test_instruction_goes_before_the_question(rerank_server: RerankServer) -> None:
    sent = await body(rerank_server, instruction="Prefer code.")

    assert sent["query"] == "Prefer code.\nwhy?"


async def test_model_can_be_chosen(rerank_server: RerankServer) -> None:
    assert (await body(rerank_server, model="jina-reranker-m0"))["model"] == "jina-reranker-m0"


def test_service_is_asked_at_its_published_address() -> None:
    rerank = JinaRerank(api_key=KEY)

    assert rerank.base_url + rerank.path == "https://api.jina.ai/v1/rerank"
    assert rerank.class_name() == "JinaRerank"
