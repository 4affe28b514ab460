"""WebRAG's retriever and reranker in a stock engine."""

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever

from webrag import Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(url)
        fused = QueryFusionRetriever(
            [rag.retriever(), rag.vector_index().as_retriever(similarity_top_k=5)],
            llm=MockLLM(),
            num_queries=1,
        )
        reranker = rag.reranker()
        assert reranker is not None
        engine = RetrieverQueryEngine.from_args(
            fused, llm=MockLLM(), node_postprocessors=[reranker]
        )
        response = await engine.aquery("How long does an idle connection stay open?")
        assert "95 seconds" in response.source_nodes[0].text
