"""The corpus behind a stock index."""

from llama_index.core import VectorStoreIndex
from llama_index.core.vector_stores.types import VectorStoreQueryMode

from webrag import CorpusVectorStore, Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(url)
        store: CorpusVectorStore = rag.vector_store()
        index = VectorStoreIndex.from_vector_store(store, embed_model=rag.embed_model())
        modes = (VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.MMR)
        for mode in modes:
            retriever = index.as_retriever(vector_store_query_mode=mode, similarity_top_k=3)
            assert await retriever.aretrieve("idle connection")
