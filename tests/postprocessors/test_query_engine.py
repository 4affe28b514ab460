"""All postprocessors together in LlamaIndex's own query engine."""

from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.webrag import (
    AdjacentContext,
    CrossEncoderRerank,
    DepthDecay,
    LocalRerank,
    RecencyBoost,
    RedundancyFilter,
    TokenBudget,
)
from llama_index.postprocessor.webrag.local_scoring import CrossEncoderScorer, LocalScorer
from llama_index_instrumentation import root_dispatcher

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


CROSS_ENCODER = CrossEncoderScorer(
    lambda _, passages: [float(len(each)) for each in passages],
    LocalScorer(None, str.split, str.split),
    pair_s=0.0,
)


class Listening(BaseEventHandler):
    heard: list[Any] = []  # noqa: RUF012  pydantic copies it

    def handle(self, event: BaseEvent, **_: Any) -> None:
        self.heard.append(event)


@pytest.mark.parametrize("kind", ["local", "cross-encoder", "jina"])
def test_rerankers_alone_tell_listeners_what_they_do(
    rerank_server: RerankServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker: Any = {
        "local": lambda: LocalRerank(top_n=2, encoder=None),
        "cross-encoder": lambda: CrossEncoderRerank(scorer=CROSS_ENCODER, top_n=2),
        "jina": lambda: rerank_server.rerank("jina", top_n=2),
    }[kind]()
    nodes = [NodeWithScore(node=TextNode(text=f"rank {n} port")) for n in range(10, 15)]
    listener = Listening()
    monkeypatch.setattr(root_dispatcher, "event_handlers", [listener])

    ranked = reranker.postprocess_nodes(nodes, query_str="which port?")

    start, end = listener.heard
    assert isinstance(start, ReRankStartEvent)
    assert (len(start.nodes), start.top_n) == (5, 2)
    assert isinstance(end, ReRankEndEvent)
    assert end.nodes == ranked
