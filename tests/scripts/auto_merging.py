"""Stock auto-merging over what is stored."""

from llama_index.core.retrievers import AutoMergingRetriever, VectorIndexRetriever
from llama_index.core.vector_stores.types import VectorStoreQueryMode

from webrag import Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(url)
        index = rag.vector_index()
        children = VectorIndexRetriever(
            index, similarity_top_k=20, vector_store_query_mode=VectorStoreQueryMode.HYBRID
        )
        merging = AutoMergingRetriever(children, index.storage_context)
        nodes = await merging.aretrieve("How long does an idle connection stay open?")
        assert nodes[0].node.metadata["chunk_level"] == "parent"
