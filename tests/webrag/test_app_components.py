"""WebRAG's parts inside LlamaIndex's own engines, on a real database and a site on loopback."""

import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document, QueryBundle
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.postprocessor.webrag import LocalRerank

from tests.kept_collections import KeptCollections
from webrag import WebRAG
from webrag.errors import ConfigurationError, InputError
from webrag.settings import load_settings

QUESTION = "When is the lamp of the lighthouse lit?"
PAGES = {
    "/": """<html><head><title>Lighthouse</title></head><body><main><h1>The lighthouse</h1>
<p>The lamp of the lighthouse is lit at dusk by the keeper and put out at sunrise.</p>
</main></body></html>""",
    "/code.html": """<html><head><title>Signals</title></head><body><main><h1>Signals</h1>
<p>The lamp of the lighthouse is driven by a small program.</p>
<pre><code class="language-python">lamp.light(at="dusk")</code></pre></main></body></html>""",
}


@pytest.fixture
async def rag(
    postgres_dir: Path, kept_collections: KeptCollections, static_site: Any
) -> AsyncIterator[WebRAG]:
    """WebRAG, open on two stored pages."""
    site = static_site(dict(PAGES))
    name = f"test_{uuid.uuid4().hex[:16]}"
    settings = load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])
    async with WebRAG(settings) as opened:
        await opened.ingest([f"{site}{path}" for path in PAGES])
        yield opened
        await kept_collections.take_back_from(opened)


async def test_retriever_serves_a_stock_query_engine(rag: WebRAG) -> None:
    engine = RetrieverQueryEngine.from_args(
        rag.retriever(top_k=1), llm=MockLLM(), response_mode=ResponseMode.COMPACT
    )

    answered = await engine.aquery(QUESTION)

    assert "lit at dusk" in answered.source_nodes[0].node.get_content()
    assert engine.query(QUESTION).source_nodes == answered.source_nodes


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "simple"])
async def test_retriever_is_fused_with_llama_indexs_own(rag: WebRAG, mode: Any) -> None:
    fused = QueryFusionRetriever(
        [rag.retriever(), rag.vector_index().as_retriever(similarity_top_k=3)],
        llm=MockLLM(),
        mode=mode,
        num_queries=1,
        similarity_top_k=2,
        use_async=True,
    )

    nodes = await fused.aretrieve(QUESTION)

    assert len(nodes) == 2
    assert any("lit at dusk" in node.text for node in nodes)


async def test_job_queue_is_made_once(rag: WebRAG) -> None:
    assert rag.jobs is rag.jobs


async def test_retriever_is_a_tool_of_an_agent(rag: WebRAG) -> None:
    tool = RetrieverTool.from_defaults(rag.retriever(), name="memory", description="Stored pages")

    assert "lit at dusk" in (await tool.acall(QUESTION)).content


async def test_reranker_and_embedding_serve_a_stock_pipeline(rag: WebRAG) -> None:
    reranker = rag.reranker()
    assert reranker is not None
    engine = rag.vector_index().as_query_engine(
        similarity_top_k=3, llm=MockLLM(), node_postprocessors=[reranker]
    )

    answered = await engine.aquery(QUESTION)

    assert "lit at dusk" in answered.source_nodes[0].node.get_content()


@pytest.mark.parametrize("question", [QUESTION, "How is the lamp driven by a program?"])
async def test_rerankers_alone_score_as_a_search_does(rag: WebRAG, question: str) -> None:
    result = await rag.search(question)
    scores = {str(item.chunk.chunk_id): item.reranked_score for item in result.chunks}
    parts = {item.chunk.matches[0].node_id: item.reranked_score for item in result.chunks}
    index = rag.vector_index()
    of_chunks = [
        index.as_retriever(vector_store_query_mode=mode, similarity_top_k=20)
        for mode in ("default", "hybrid", "mmr")
    ]
    own = rag.reranker()
    assert own is not None

    for reranker in (LocalRerank(), own):
        for retriever, searched in (
            (rag.retriever(), scores),
            *((each, parts) for each in of_chunks),
        ):
            nodes = await retriever.aretrieve(question)
            ranked = reranker.postprocess_nodes(nodes, query_str=question)
            assert {each.node_id: each.score for each in ranked} == pytest.approx(
                searched, abs=0.001
            )


async def test_reranker_scores_other_wordings_as_a_search_does(rag: WebRAG) -> None:
    wordings = ["The keeper lights it in the evening.", "the program calls lamp.light"]
    result = await rag.search(QUESTION, wordings=wordings)
    bundle = QueryBundle(QUESTION, custom_embedding_strs=wordings)

    nodes = await rag.retriever().aretrieve(bundle)
    ranked = LocalRerank().postprocess_nodes(nodes, query_bundle=bundle)

    assert {each.node_id: each.score for each in ranked} == pytest.approx(
        {str(item.chunk.chunk_id): item.reranked_score for item in result.chunks}, abs=0.001
    )


async def test_reranker_takes_whole_pages(rag: WebRAG) -> None:
    nodes = await rag.retriever(retrieval_mode="full_context").aretrieve(QUESTION)

    ranked = LocalRerank().postprocess_nodes(nodes, query_str=QUESTION)

    assert {each.node_id for each in ranked} == {each.node_id for each in nodes}


async def test_retriever_takes_the_filters_of_a_search(rag: WebRAG) -> None:
    nodes = await rag.retriever(has=["code"]).aretrieve("lamp")

    assert [node.metadata["title"] for node in nodes] == ["Signals"]
    assert await rag.retriever(years=[1999]).aretrieve("lamp") == []


async def test_retriever_can_return_everything(rag: WebRAG) -> None:
    nodes = await rag.retriever(retrieval_mode="full_context").aretrieve("anything")

    assert {node.score for node in nodes} == {1.0}
    assert {node.metadata["title"] for node in nodes} == {"Lighthouse", "Signals"}


async def test_query_engine_is_a_tool_of_an_agent(rag: WebRAG) -> None:
    tool = QueryEngineTool.from_defaults(rag.query_engine(), name="memory", description="Pages")

    assert "lit at dusk" in (await tool.acall(QUESTION)).content


async def test_query_engine_starts_from_pages(rag: WebRAG) -> None:
    (url, *_) = [page.url for page in (await rag.status()).pages]

    response = await rag.query_engine(url, max_quotes=1).aquery(QUESTION)

    assert {node.metadata["source_url"] for node in response.source_nodes} == {url}
    with pytest.raises(InputError):
        rag.query_engine("no address")


async def test_pages_are_queried_synchronously_inside_a_running_loop(
    rag: WebRAG, static_site: Any
) -> None:
    new = static_site(dict(PAGES))
    engine = rag.query_engine(f"{new}/")

    response = engine.query(QUESTION)

    assert "lit at dusk" in str(response)
    assert await rag.markdown(f"{new}/")
    assert str(await engine.aquery(QUESTION)) == str(response)


async def test_node_parser_and_embedding_are_those_of_the_corpus(rag: WebRAG) -> None:
    nodes = rag.node_parser().get_nodes_from_documents([Document(text="# Lamp\n\nThe lamp.")])

    assert {node.metadata["chunk_level"] for node in nodes} == {"parent", "child"}
    vector = await rag.embed_model().aget_query_embedding("lamp")
    assert len(vector) == 256


def test_parts_of_one_that_is_not_open_are_refused(postgres_dir: Path) -> None:
    with pytest.raises(InputError, match="not open"):
        WebRAG(load_settings(data_dir=postgres_dir)).retriever()


async def test_one_site_or_page_need_not_be_a_list(rag: WebRAG) -> None:
    (url, *_) = [page.url for page in (await rag.status()).pages]
    one_site = await rag.retriever(sites="127.0.0.1").aretrieve("lamp")
    one_page = await rag.retriever(source_urls=url).aretrieve("lamp")

    assert {node.metadata["title"] for node in one_site} == {"Lighthouse", "Signals"}
    assert {node.metadata["source_url"] for node in one_page} == {url}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"top_k": 0}, "top_k is 0; it must be a whole number from 1"),
        ({"retrieval_mode": "chunks"}, "one of chunk, full_context, auto"),
        ({"years": "1999"}, "The year '1999' cannot be used"),
    ],
)
async def test_retriever_refuses_what_no_search_takes(
    rag: WebRAG, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        rag.retriever(**values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"research_mode": "deeep"}, "research_mode is 'deeep'; it must be one of fast, deep"),
        ({"expansion_budget": -1}, "expansion_budget is -1"),
        ({"max_quotes": 0}, "max_quotes is 0"),
    ],
)
async def test_query_engine_refuses_what_no_run_takes(
    rag: WebRAG, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        rag.query_engine(**values)


async def test_retriever_ends_with_the_webrag_it_is_part_of(rag: WebRAG) -> None:
    retriever = rag.retriever()
    await rag.close()

    with pytest.raises(InputError, match="was closed"):
        await retriever.aretrieve("lamp")
    with pytest.raises(InputError, match="was closed"):
        retriever.retrieve("lamp")


async def test_a_retriever_takes_the_stock_name_of_top_k(rag: WebRAG) -> None:
    assert len(await rag.retriever().aretrieve(QUESTION)) > 1
    assert len(await rag.retriever(similarity_top_k=1).aretrieve(QUESTION)) == 1


async def test_a_retriever_refuses_both_names_of_top_k(rag: WebRAG) -> None:
    with pytest.raises(InputError, match="two names of one"):
        rag.retriever(top_k=2, similarity_top_k=1)


async def test_retriever_gives_ten_nodes_unless_told_how_many(rag: WebRAG, tmp_path: Path) -> None:
    text = "".join(f"## Lamp {n}\n\n{'The lamp is lit at dusk. ' * 60}\n\n" for n in range(14))
    (tmp_path / "lamps.md").write_text(text)
    await rag.ingest(tmp_path / "lamps.md")

    assert len(await rag.retriever().aretrieve(QUESTION)) == 10
    assert len(await rag.retriever(similarity_top_k=12).aretrieve(QUESTION)) == 12
    whole = await rag.retriever(retrieval_mode="full_context").aretrieve(QUESTION)
    assert len(whole) > 12


async def test_passages_are_a_table_best_first(rag: WebRAG) -> None:
    result = await rag.search(QUESTION)

    table = result.to_pandas()

    assert list(table["score"]) == sorted(table["score"], reverse=True)
    assert "lit at dusk" in table["text"][0]
    assert {"source_url", "section", "similarity", "published_at"} <= set(table.columns)


async def test_table_without_pandas_says_how_to_get_it(
    rag: WebRAG, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await rag.search(QUESTION)
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ConfigurationError, match="needs the package pandas") as refused:
        result.to_pandas()

    assert "[pandas]" in str(refused.value.hint) or "--extra pandas" in str(refused.value.hint)
