"""The whole loop as a query engine, which quotes."""

from webrag import Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        engine = rag.query_engine(url, research_mode="deep", max_quotes=2)
        response = await engine.aquery("How long does an idle connection stay open?")
        assert "95 seconds" in str(response)
        assert response.metadata is not None
        assert response.metadata["citations"]
