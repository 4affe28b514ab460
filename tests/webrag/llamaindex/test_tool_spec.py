import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool

from webrag import WebRAG, WebRAGToolSpec, load_settings
from webrag.errors import InputError

LEAVES = "The ferry leaves the island at seven, at noon and at five"
PAGE = f"<html><title>Ferry</title><body><main><h1>The ferry</h1><p>{LEAVES}.</p></main></body>"
QUESTION = "When does the ferry leave the island?"


@pytest.fixture
async def rag(postgres_dir: Path) -> AsyncIterator[WebRAG]:
    name = f"test_{uuid.uuid4().hex[:16]}"
    settings = load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])
    opened = WebRAG(settings)
    await opened.open()
    yield opened
    await opened.drop_collection()


@pytest.fixture
def site(static_site: Any) -> Any:
    return static_site({"/": PAGE})


@pytest.fixture
def tools(rag: WebRAG) -> dict[str, FunctionTool]:
    return {tool.metadata.get_name(): tool for tool in WebRAGToolSpec(rag).to_tool_list()}


def test_the_tools_are_answer_search_and_ingest(tools: dict[str, FunctionTool]) -> None:
    assert list(tools) == ["answer", "search", "ingest"]


def test_a_model_is_told_the_modes_it_may_choose(tools: dict[str, FunctionTool]) -> None:
    schema = tools["answer"].metadata.get_parameters_dict()

    assert schema["properties"]["research_mode"]["enum"] == ["fast", "deep"]


def test_descriptions_are_not_indented(tools: dict[str, FunctionTool]) -> None:
    lines = str(tools["answer"].metadata.description).splitlines()

    assert "Args:" in lines
    assert "Find cited evidence" in "\n".join(lines)


async def test_a_wrong_argument_is_a_sentence(tools: dict[str, FunctionTool]) -> None:
    with pytest.raises(InputError) as caught:
        await tools["answer"].acall(url="https://a.test/", q="When?")

    assert "'q'" in str(caught.value) or "'query'" in str(caught.value)
    assert str(caught.value).endswith("it takes url, query, research_mode, wordings.")


async def test_answer_returns_a_brief_that_quotes_the_page(
    tools: dict[str, FunctionTool], site: Any
) -> None:
    output = await tools["answer"].acall(url=f"{site}/", query=QUESTION)

    assert f'[1] "{LEAVES}' in output.content


async def test_page_text_is_framed_differently_in_each_answer(
    tools: dict[str, FunctionTool], site: Any
) -> None:
    first = await tools["answer"].acall(url=f"{site}/", query=QUESTION)
    second = await tools["answer"].acall(url=f"{site}/", query=QUESTION)
    frames = [output.content.split("<page-")[1].split(">")[0] for output in (first, second)]

    assert frames[0] != frames[1]


async def test_search_finds_what_ingest_has_stored(
    tools: dict[str, FunctionTool], site: Any
) -> None:
    await tools["ingest"].acall(url=f"{site}/")
    output = await tools["search"].acall(query=QUESTION)

    assert LEAVES in output.content


async def test_a_page_that_cannot_be_used_raises_a_sentence(tools: dict[str, FunctionTool]) -> None:
    with pytest.raises(InputError, match="only http and https are allowed"):
        await tools["answer"].acall(url="ftp://example.org/", query=QUESTION)


# LlamaIndex's agents list the members of their own models, deprecated ones included.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
async def test_an_agent_researches_with_the_tools(rag: WebRAG, site: Any) -> None:
    def play(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        if messages[-1].role == "tool":
            return ChatMessage(role="assistant", content=f"cited: {messages[-1].content}")
        arguments = {"url": f"{site}/", "query": QUESTION}
        call = ToolCallBlock(tool_call_id="1", tool_name="answer", tool_kwargs=arguments)
        return ChatMessage(role="assistant", blocks=[call])

    llm = MockFunctionCallingLLM(response_generator=play)
    agent = FunctionAgent(tools=WebRAGToolSpec(rag).to_tool_list(), llm=llm)
    handler = agent.run(QUESTION)
    called = [e.tool_name async for e in handler.stream_events() if isinstance(e, ToolCallResult)]

    assert called == ["answer"]
    assert f'[1] "{LEAVES}' in str(await handler)


@pytest.mark.parametrize("name", ["answer", "search"])
async def test_a_model_is_told_what_wordings_are(tools: dict[str, FunctionTool], name: str) -> None:
    metadata = tools[name].metadata

    assert "wordings" in metadata.get_parameters_dict()["properties"]
    assert "words the page may use" in metadata.description


@pytest.mark.parametrize("name", ["answer", "search"])
async def test_wordings_reach_the_search(
    tools: dict[str, FunctionTool], site: Any, name: str
) -> None:
    await tools["ingest"].acall(url=f"{site}/")
    page = {"url": f"{site}/"} if name == "answer" else {}

    with pytest.raises(InputError, match="Wording 2 has 501 characters"):
        await tools[name].acall(**page, query=QUESTION, wordings=["boat", "x" * 501])
