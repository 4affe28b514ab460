"""Retrieval alone."""

from llama_index.core.schema import NodeWithScore, QueryBundle

from webrag import Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(url)
        retriever = rag.retriever(similarity_top_k=2, source_urls=[url])
        question = QueryBundle(
            "How long does an idle connection stay open?",
            custom_embedding_strs=["idle connections are closed after"],
        )
        nodes: list[NodeWithScore] = await retriever.aretrieve(question)
        best = nodes[0]
        assert best.score is not None
        assert "95 seconds" in best.text
        assert best.metadata["source_url"] == url
