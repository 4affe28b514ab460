"""A postprocessor of one's own in WebRAG's place of the reranker."""

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from webrag import Settings, WebRAG


class Shortest(BaseNodePostprocessor):
    @classmethod
    def class_name(cls) -> str:
        return "Shortest"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=each.node, score=1 / (1 + len(each.text)))
            for each in sorted(nodes, key=lambda each: len(each.text))
        ]


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings, reranker=Shortest(), score_profile="cohere") as rag:
        await rag.ingest(url)
        result = await rag.search("How long does an idle connection stay open?")
        assert isinstance(rag.reranker(), Shortest)
        assert all(each.reranked_score < 0.5 for each in result.chunks)
