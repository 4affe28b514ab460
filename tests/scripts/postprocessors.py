"""Postprocessors on nodes of any origin."""

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.postprocessor.webrag import (
    AdjacentContext,
    DepthDecay,
    LocalRerank,
    RecencyBoost,
    RedundancyFilter,
    TokenBudget,
)

from webrag import Settings


async def main(settings: Settings, url: str) -> None:
    texts = ["Cats sleep.", "A timeout of 40 seconds is given.", "Dogs bark."]
    nodes = [
        TextNode(text=text, metadata={"published_at": "2024-05-31", "depth": depth})
        for depth, text in enumerate(texts)
    ]
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    scored = [NodeWithScore(node=node, score=0.5) for node in nodes]
    for step in (
        LocalRerank(top_n=3),
        RecencyBoost(weight=0.05, half_life_days=365, date_keys=["published_at"]),
        DepthDecay(rate=0.1),
        RedundancyFilter(top_n=3),
        AdjacentContext(docstore=docstore, radius=1),
        TokenBudget(max_tokens=200),
    ):
        scored = step.postprocess_nodes(scored, query_str="Which timeout is given?")
    assert "40 seconds" in scored[0].text
