"""Rerankers of services: keys are text, errors have kinds."""

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.webrag import (
    CohereRerank,
    JinaRerank,
    RerankError,
    RerankUnavailableError,
    ZeroEntropyRerank,
)

from webrag import Settings


async def main(settings: Settings, url: str) -> None:
    rerankers = [
        ZeroEntropyRerank(api_key="ze-1", top_n=10, instruction="Prefer code examples"),
        CohereRerank(api_key="co-1", top_n=10),
        JinaRerank(api_key="jina-1", base_url="http://127.0.0.1:1", timeout_s=0.5),
    ]
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("one", "two")]
    failure: RerankError | None = None
    try:
        await rerankers[-1].apostprocess_nodes(nodes, query_str="which?")
    except RerankUnavailableError as error:
        failure = error
    assert failure is not None
