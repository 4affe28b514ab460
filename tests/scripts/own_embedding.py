"""An embedding of one's own."""

from llama_index.core.embeddings import BaseEmbedding

from webrag import Settings, WebRAG


class Letters(BaseEmbedding):
    """Counts letters."""

    def _get_text_embedding(self, text: str) -> list[float]:
        counts = [float(text.lower().count(letter)) for letter in "etaoinshrdlucmfw"]
        return [count / (sum(counts) or 1.0) for count in counts]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings, embed_model=Letters(model_name="letters-16")) as rag:
        await rag.ingest(url)
        assert isinstance(rag.embed_model(), Letters)
        assert (await rag.search("How long does an idle connection stay open?")).chunks
