"""A query engine whose text a model writes, in pieces."""

from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import MockLLM
from llama_index.postprocessor.webrag import TokenBudget

from webrag import Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(url)
        engine = rag.query_engine(
            source_urls=url,
            similarity_top_k=3,
            node_postprocessors=[TokenBudget(max_tokens=500)],
            llm=MockLLM(max_tokens=20),
            response_mode="compact",
            streaming=True,
            callback_manager=CallbackManager([]),
        )
        response = await engine.aquery("How long does an idle connection stay open?")
        assert isinstance(response, AsyncStreamingResponse)
        pieces = [piece async for piece in response.async_response_gen()]
        assert pieces
        assert len(response.source_nodes) <= 3
