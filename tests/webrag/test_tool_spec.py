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

from tests.kept_collections import KeptCollections
from webrag import WebRAG, WebRAGToolSpec, load_settings
from webrag.errors import InputError

LEAVES = "The ferry leaves the island at seven, at noon and at five"
PAGE = f"<html><title>Ferry</title><body><main><h1>The ferry</h1><p>{LEAVES}.</p></main></body>"
QUESTION = "When does the ferry leave the island?"


@pytest.fixture
async def rag(postgres_dir: Path, kept_collections: KeptCollections) -> AsyncIterator[WebRAG]:
    name = f"test_{uuid.uuid4().hex[:16]}"
    settings = load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])
    opened = WebRAG(settings)
    await opened.open()
    yield opened
    await kept_collections.take_back_from(opened)


@pytest.fixture
def site(static_site: Any) -> Any:
    return static_site({"/": PAGE})


@pytest.fixture
def tools(rag: WebRAG) -> dict[str, FunctionTool]:
    return {tool.metadata.get_name(): tool for tool in WebRAGToolSpec(rag).to_tool_list()}


def test_the_tools_are_those_of_the_server(tools: dict[str, FunctionTool]) -> None:
    assert list(tools) == ["answer", "search", "ingest", "status", "read", "verify"]


def test_a_tool_that_there_is_not_is_refused_with_those_there_are(rag: WebRAG) -> None:
    with pytest.raises(InputError, match="no tool 'answr'; there are answer, search, "):
        WebRAGToolSpec(rag).to_tool_list(spec_functions=["answr"])


async def test_a_crawled_site_is_listed_and_can_be_read(
    tools: dict[str, FunctionTool], static_site: Any
) -> None:
    other = PAGE.replace(LEAVES, "The harbour has a cafe")
    linked = PAGE.replace("</p>", ' <a href="/docs/b.html">Harbour</a></p>')
    site = static_site({"/docs/": linked, "/docs/b.html": other})

    await tools["ingest"].acall(url=f"{site}/docs/", max_pages=5)
    host = site.removeprefix("http://")
    listed = (await tools["status"].acall(source_url=host)).content
    text = (await tools["read"].acall(url=f"{host}/docs/b.html")).content

    assert f"{site}/docs/b.html" in listed
    assert "The harbour has a cafe" in text


async def test_a_crawl_starts_from_one_page(tools: dict[str, FunctionTool]) -> None:
    with pytest.raises(InputError, match="A site is crawled from one page"):
        await tools["ingest"].acall(url=["https://a.test/", "https://b.test/"], max_pages=5)


async def test_a_quotation_is_verified(tools: dict[str, FunctionTool], site: Any) -> None:
    await tools["ingest"].acall(url=f"{site}/")

    true = await tools["verify"].acall(url=f"{site}/", quote=LEAVES)
    false = await tools["verify"].acall(url=f"{site}/", quote="The ferry never sails at all")

    assert "1 of 1 are verbatim in the stored version" in true.content
    assert "0 of 1 are verbatim in the stored version" in false.content


async def test_a_search_takes_filters(tools: dict[str, FunctionTool], site: Any) -> None:
    await tools["ingest"].acall(url=f"{site}/")

    without = await tools["search"].acall(query=QUESTION, has=["table"])
    elsewhere = await tools["search"].acall(query=QUESTION, sites=["elsewhere.test"])

    assert LEAVES not in without.content
    assert LEAVES not in elsewhere.content


def test_a_model_is_told_the_modes_it_may_choose(tools: dict[str, FunctionTool]) -> None:
    schema = tools["answer"].metadata.get_parameters_dict()

    assert schema["properties"]["research_mode"]["enum"] == ["fast", "deep"]


def test_descriptions_are_one_line(tools: dict[str, FunctionTool]) -> None:
    told = str(tools["answer"].metadata.description)

    assert told.startswith("Find cited evidence for a question, starting from a web page")
    assert len(told.splitlines()) == 1


async def test_a_wrong_argument_is_a_sentence(tools: dict[str, FunctionTool]) -> None:
    with pytest.raises(InputError) as caught:
        await tools["answer"].acall(url="https://a.test/", query="When?", speed="high")

    assert str(caught.value).startswith("answer has no argument 'speed'; it takes query, wordings,")


async def test_url_and_query_may_come_by_place(rag: WebRAG, site: Any) -> None:
    assert f"\u27ea{LEAVES}" in await WebRAGToolSpec(rag).answer(f"{site}/", QUESTION)


async def test_answer_returns_a_brief_that_quotes_the_page(
    tools: dict[str, FunctionTool], site: Any
) -> None:
    output = await tools["answer"].acall(url=f"{site}/", query=QUESTION)

    assert f"\u27ea{LEAVES}" in output.content


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


async def test_a_passage_that_the_model_has_is_not_quoted_again(
    tools: dict[str, FunctionTool], rag: WebRAG, site: Any
) -> None:
    await tools["ingest"].acall(url=f"{site}/")
    found = rag.evidence(await rag.search(QUESTION))
    had = [str(each.chunk_id) for each in found]
    output = await tools["search"].acall(query=QUESTION, seen=had)

    assert had
    assert LEAVES not in output.content


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
    assert f"\u27ea{LEAVES}" in str(await handler)


@pytest.mark.parametrize("name", ["answer", "search"])
async def test_a_model_is_told_what_wordings_are(tools: dict[str, FunctionTool], name: str) -> None:
    assert "wordings" in tools[name].metadata.get_parameters_dict()["properties"]


@pytest.mark.parametrize("name", ["answer", "search"])
async def test_wordings_reach_the_search(
    tools: dict[str, FunctionTool], site: Any, name: str
) -> None:
    await tools["ingest"].acall(url=f"{site}/")
    page = {"url": f"{site}/"} if name == "answer" else {}

    with pytest.raises(InputError, match="Wording 2 has 501 characters"):
        await tools[name].acall(**page, query=QUESTION, wordings=["boat", "x" * 501])


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("answer", {"intent": "gossip"}, "intent is 'gossip'"),
        ("answer", {"known_context": "half \ud800"}, "known_context"),
        ("answer", {"constraints": ["half \ud800"]}, "constraints"),
        ("search", {"intent": "gossip"}, "intent is 'gossip'"),
    ],
)
async def test_what_is_known_and_wished_reaches_the_search(
    tools: dict[str, FunctionTool], site: Any, name: str, given: dict[str, Any], message: str
) -> None:
    page = {"url": f"{site}/"} if name == "answer" else {}

    with pytest.raises(InputError, match=message):
        await tools[name].acall(**page, query=QUESTION, **given)


def test_each_argument_is_described_where_its_tool_alone_is_given(
    tools: dict[str, FunctionTool],
) -> None:
    for tool in tools.values():
        for field in tool.metadata.get_parameters_dict()["properties"].values():
            assert field["description"]
            assert not field["description"].startswith("As for")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_pages": 501}, "max_pages is 501; one call reads at most 500"),
        ({"url": [f"https://a.test/{n}" for n in range(51)]}, "one call takes at most 50"),
    ],
)
async def test_ingest_takes_no_more_than_one_call_can_do(
    tools: dict[str, FunctionTool], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        await tools["ingest"].acall(**({"url": "https://a.test/"} | given))
