"""Quotations are verified, and pages read on."""

from webrag import Citation, Settings, WebRAG, load_settings


async def main(settings: Settings, url: str) -> None:
    assert load_settings(embedding_provider="bundled").embedding_provider == "bundled"
    async with WebRAG(settings) as rag:
        await rag.ingest(url)
        quote = "An idle connection stays open for 95 seconds."
        checks = await rag.verify([Citation(url=url, quote=quote)], live=True)
        assert [check.stored.state for check in checks] == ["exact"]
        excerpt = await rag.read(url, quote=quote, max_tokens=300)
        assert "95 seconds" in excerpt.text
