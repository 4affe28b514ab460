"""A stock node parser in place of WebRAG's."""

from llama_index.core.node_parser import SentenceSplitter

from webrag import Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    splitter = SentenceSplitter(chunk_size=128, chunk_overlap=0)
    async with WebRAG(settings, node_parser=splitter) as rag:
        await rag.ingest(url)
        assert rag.node_parser() is splitter
        result = await rag.search("How long does an idle connection stay open?")
        assert "95 seconds" in rag.brief(result)
