"""All postprocessors together in LlamaIndex's own query engine."""

from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.postprocessor.webrag import (
    AdjacentContext,
    DepthDecay,
    LocalRerank,
    RecencyBoost,
    RedundancyFilter,
    TokenBudget,
)

from .conftest import RerankServer

TEXT = " ".join(f"Sentence rank {number} says a little about the port." for number in range(10, 90))


def engine(server: RerankServer) -> RetrieverQueryEngine:
    document = Document(text=TEXT, metadata={"depth": 1, "published_at": "2026-01-01"})
    splitter = SentenceSplitter(chunk_size=120, chunk_overlap=0)
    index = VectorStoreIndex.from_documents(
        [document, document], transformations=[splitter], embed_model=MockEmbedding(embed_dim=4)
    )
    chain: list[Any] = [
        LocalRerank(),
        server.rerank("jina", top_n=8),
        DepthDecay(),
        RecencyBoost(),
        RedundancyFilter(top_n=2),
        AdjacentContext(docstore=index.docstore),
        TokenBudget(max_tokens=1000),
    ]
    return RetrieverQueryEngine.from_args(
        index.as_retriever(similarity_top_k=50),
        llm=MockLLM(),
        response_mode=ResponseMode.COMPACT,
        node_postprocessors=chain,
    )


async def test_postprocessors_work_in_a_row_in_a_stock_query_engine(
    rerank_server: RerankServer,
) -> None:
    answered = await engine(rerank_server).aquery("which port?")

    nodes = answered.source_nodes
    assert len(nodes) > 2
    assert [bool(item.metadata.get("is_adjacent")) for item in nodes[:3]] == [False, False, True]
    assert len({item.node.node_id for item in nodes}) == len(nodes)


def test_the_same_holds_for_the_synchronous_query(rerank_server: RerankServer) -> None:
    assert len(engine(rerank_server).query("which port?").source_nodes) > 2
