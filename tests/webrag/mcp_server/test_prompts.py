from typing import Any

from mcp import Client
from mcp.types import TextContent

from webrag.mcp_server.server import assemble_server
from webrag.settings import Settings


async def prompt(load: Any, **arguments: str) -> str:
    async with Client(assemble_server(Settings(), load=load).server) as client:
        found = await client.get_prompt("cited_answer", arguments)
    content = found.messages[0].content
    assert isinstance(content, TextContent)
    return content.text


async def test_prompt_names_the_tools_there_are(load: Any) -> None:
    text = await prompt(load, question="How long?", url="https://a.example/")

    assert "How long?" in text
    assert "Call `answer` with url=https://a.example/" in text
    assert "`verify`" in text


async def test_prompt_without_a_page_starts_with_what_is_stored(load: Any) -> None:
    assert "Call `search`" in await prompt(load, question="How long?")


async def test_prompt_is_listed_with_its_arguments(load: Any) -> None:
    async with Client(assemble_server(Settings(), load=load).server) as client:
        listed = (await client.list_prompts()).prompts

    arguments = {each.name: each.required for each in listed[0].arguments or []}
    assert arguments == {"question": True, "url": False}
