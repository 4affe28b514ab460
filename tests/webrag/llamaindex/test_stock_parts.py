"""LlamaIndex's own indexes, engines, agents and servers, over WebRAG."""

import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from llama_agents.server import WorkflowServer
from llama_index.core import Document, DocumentSummaryIndex, StorageContext, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai_like import OpenAILike
from llama_index.node_parser.webrag import ParentChildNodeParser

from tests.kept_collections import KeptCollections
from tests.webrag.orchestration.fake_services import running_services
from webrag import WebRAG, WebRAGToolSpec, load_settings
from webrag.errors import InputError

LEAVES = "The ferry leaves the island at seven, at noon and at five"
QUESTION = "When does the ferry leave the island?"
TEXT = f"# Timetable\n\nFares are paid on board.\n\n## The ferry\n\n{LEAVES}.\n"


@pytest.fixture
async def rag(postgres_dir: Path, kept_collections: KeptCollections) -> AsyncIterator[WebRAG]:
    name = f"test_{uuid.uuid4().hex[:16]}"
    opened = WebRAG(load_settings(data_dir=postgres_dir, collection=name))
    await opened.open()
    yield opened
    await kept_collections.take_back_from(opened)


def indexed(rag: WebRAG, **metadata: Any) -> VectorStoreIndex:
    """The text, cut by our parser and stored by a stock index."""
    return VectorStoreIndex.from_documents(
        [Document(text=TEXT, id_="timetable", metadata=metadata)],
        storage_context=StorageContext.from_defaults(vector_store=rag.vector_store()),
        embed_model=rag.embed_model(),
        transformations=[ParentChildNodeParser()],
    )


async def test_a_stock_index_of_documents_is_found_by_both(rag: WebRAG) -> None:
    documents = [Document(text=TEXT, metadata={"file_name": "timetable.md"})]

    index = VectorStoreIndex.from_documents(
        documents,
        storage_context=StorageContext.from_defaults(vector_store=rag.vector_store()),
        embed_model=rag.embed_model(),
    )

    found = await index.as_retriever().aretrieve(QUESTION)
    result = await rag.search(QUESTION)
    assert LEAVES in found[0].text
    assert LEAVES in result.chunks[0].chunk.text


async def test_a_document_of_a_file_is_cited_by_its_line(rag: WebRAG, tmp_path: Path) -> None:
    path = tmp_path / "time table.md"
    indexed(rag, file_path=str(path), file_name=path.name)

    response = await rag.query_engine(max_quotes=1).aquery(QUESTION)

    assert response.metadata["citations"][0]["link"] == f"{path.as_uri()}#L7"
    assert response.metadata["citations"][0]["title"] == "time table.md"


async def test_a_document_without_file_or_address_is_cited_by_its_id(rag: WebRAG) -> None:
    indexed(rag)

    response = await rag.query_engine(max_quotes=1).aquery(QUESTION)

    assert response.metadata["citations"][0]["link"] == "document:timetable#L7"


async def test_a_line_is_right_where_a_document_is_added_to(rag: WebRAG) -> None:
    indexed(rag)
    more = "\n".join(["Dogs travel free."] * 3 + ["", "# Lost and found", "", "Ask the purser."])
    parser = ParentChildNodeParser()
    nodes = parser.get_nodes_from_documents([Document(text=more, id_="timetable")])
    vectors = await rag.embed_model().aget_text_embedding_batch([node.text for node in nodes])
    for node, vector in zip(nodes, vectors, strict=True):
        node.embedding = vector
    await rag.vector_store().async_add(nodes)

    response = await rag.query_engine(max_quotes=1).aquery("Whom do I ask for what I lost?")

    assert response.metadata["citations"][0]["link"] == "document:timetable#L7"


async def test_a_summary_index_keeps_its_vectors_here(rag: WebRAG) -> None:
    index = DocumentSummaryIndex.from_documents(
        [Document(text=TEXT, id_="timetable")],
        llm=MockLLM(),
        embed_model=rag.embed_model(),
        storage_context=StorageContext.from_defaults(vector_store=rag.vector_store()),
    )

    found = await index.as_retriever(retriever_mode="embedding").aretrieve("ferry")

    assert LEAVES in found[0].text


async def test_sub_questions_are_answered_by_the_query_engine(rag: WebRAG) -> None:
    indexed(rag)
    tool = QueryEngineTool.from_defaults(
        rag.query_engine(), name="timetable", description="Times of the ferry"
    )
    with running_services() as services:
        asked = f'{{"items": [{{"sub_question": "{QUESTION}", "tool_name": "timetable"}}]}}'
        services.texts = [f"```json\n{asked}\n```", "At seven."]
        llm = OpenAILike(model="m", api_base=services.url, api_key="k", is_chat_model=True)
        engine = SubQuestionQueryEngine.from_defaults(
            query_engine_tools=[tool],
            llm=llm,
            question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
            verbose=False,
        )

        response = await engine.aquery("When can I leave?")

        assert str(response) == "At seven."
        assert LEAVES in str(services.asked["chat"][-1])


async def test_a_hypothetical_document_leads_the_retriever(rag: WebRAG) -> None:
    indexed(rag)
    with running_services() as services:
        services.texts = [LEAVES, "At seven."]
        llm = OpenAILike(model="m", api_base=services.url, api_key="k", is_chat_model=True)
        engine = TransformQueryEngine(
            RetrieverQueryEngine.from_args(rag.retriever(top_k=1), llm=llm),
            HyDEQueryTransform(llm=llm),
        )

        response = await engine.aquery("Wann fahren wir?")

        assert str(response) == "At seven."
        assert LEAVES in response.source_nodes[0].text


async def test_scores_of_the_retriever_lie_within_zero_and_one(rag: WebRAG) -> None:
    indexed(rag)

    found = await rag.retriever().aretrieve("The ferry leaves the island")

    assert all(0 <= float(node.score or 0) <= 1 for node in found)
    assert float(found[0].score or 0) > 0.9


# LlamaIndex's agents list the members of their own models, deprecated ones included.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
@pytest.mark.parametrize("is_workflow", [False, True], ids=["FunctionAgent", "AgentWorkflow"])
async def test_an_agent_searches_what_a_stock_index_stored(rag: WebRAG, is_workflow: bool) -> None:
    indexed(rag)

    def play(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        if messages[-1].role == "tool":
            return ChatMessage(role="assistant", content=f"cited: {messages[-1].content}")
        call = ToolCallBlock(tool_call_id="1", tool_name="search", tool_kwargs={"query": QUESTION})
        return ChatMessage(role="assistant", blocks=[call])

    agent = FunctionAgent(
        name="researcher",
        description="Searches",
        tools=WebRAGToolSpec(rag).to_tool_list(),
        llm=MockFunctionCallingLLM(response_generator=play),
    )
    runner: Any = AgentWorkflow(agents=[agent], root_agent="researcher") if is_workflow else agent

    assert LEAVES in str(await runner.run(user_msg=QUESTION))


async def test_a_workflow_with_the_loop_can_be_served(rag: WebRAG) -> None:
    indexed(rag)

    class Report(Workflow):
        @step
        async def research(self, ev: StartEvent) -> StopEvent:
            result = await rag.search(ev.question)
            return StopEvent(result=result.chunks[0].chunk.text)

    server = WorkflowServer()
    server.add_workflow("report", Report(timeout=60))
    transport = httpx.ASGITransport(server.app)
    async with (
        server.contextmanager(),
        httpx.AsyncClient(transport=transport, base_url="http://served.test") as client,
    ):
        answer = await client.post(
            "/workflows/report/run", json={"start_event": {"question": QUESTION}}
        )

    assert LEAVES in answer.text


def test_a_plain_script_needs_no_event_loop(postgres_dir: Path) -> None:
    name = f"test_{uuid.uuid4().hex[:16]}"
    with WebRAG(load_settings(data_dir=postgres_dir, collection=name)) as rag:
        indexed(rag)

        quoted = rag.query_engine().query(QUESTION)
        found = rag.retriever().retrieve(QUESTION)
        result = rag.run(rag.search(QUESTION))
        rag.run(rag.drop_collection())

    assert LEAVES in str(quoted)
    assert LEAVES in found[0].text
    assert LEAVES in result.chunks[0].chunk.text


async def test_with_is_refused_in_an_event_loop() -> None:
    with pytest.raises(InputError, match="async with WebRAG"), WebRAG():
        pass


async def test_run_is_refused_without_a_with_block(rag: WebRAG) -> None:
    with pytest.raises(InputError, match="await the call"):
        rag.run(rag.status())


def test_run_after_the_with_block_says_that_it_is_closed(postgres_dir: Path) -> None:
    name = f"test_{uuid.uuid4().hex[:16]}"
    with WebRAG(load_settings(data_dir=postgres_dir, collection=name)) as rag:
        rag.run(rag.drop_collection())

    with pytest.raises(InputError, match=r"WebRAG is closed: its `with` block has ended"):
        rag.run(rag.status())
