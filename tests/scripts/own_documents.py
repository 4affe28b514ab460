"""Documents that a stock index writes, searched as pages are."""

from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag import OrchestrationResult, Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        note = Document(
            text="# Ferry\n\nThe ferry leaves at six.", metadata={"file_path": "/notes/ferry.md"}
        )
        VectorStoreIndex.from_documents(
            [note],
            storage_context=StorageContext.from_defaults(vector_store=rag.vector_store()),
            embed_model=rag.embed_model(),
            transformations=[ParentChildNodeParser()],
        )
        result: OrchestrationResult = await rag.search("When does the ferry leave?")
        assert result.chunks[0].chunk.source_url == "file:///notes/ferry.md"
        await rag.add_documents([Document(text="# Bus\n\nThe bus leaves at nine.", doc_id="bus")])
        assert (await rag.status()).documents == 2
