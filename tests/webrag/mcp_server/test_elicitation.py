"""Deleting many pages over MCP: the user is asked, or `confirm` must say that they were."""

from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client
from mcp.types import ElicitResult, TextContent

from webrag.mcp_server.server import assemble_server
from webrag.settings import Settings

Load = Callable[[], Any]
MANY = [f"https://docs.test/{n}" for n in range(21)]


async def forget(
    load: Load, answer: ElicitResult | None, mode: Any = "legacy", **arguments: Any
) -> tuple[str, list[str]]:
    """What the tool says, and what the user was asked."""
    asked: list[str] = []

    async def reply(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        assert answer is not None
        return answer

    options = {} if answer is None else {"elicitation_callback": reply}
    server = assemble_server(Settings(mcp_enable_forget=True), load=load).server
    async with Client(server, mode=mode, **options) as client:
        result = await client.call_tool("forget", arguments)
    content = result.content[0]
    assert isinstance(content, TextContent)
    return content.text, asked


async def test_user_who_agrees_has_many_pages_deleted(load: Load) -> None:
    said, asked = await forget(
        load, ElicitResult(action="accept", content={"agree": True}), url=MANY
    )

    assert "21 pages deleted." in said
    assert asked == ["Delete 21 stored pages?"]


@pytest.mark.parametrize("confirm", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        ElicitResult(action="accept", content={"agree": False}),
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
    ],
    ids=["no", "decline", "cancel"],
)
async def test_user_who_does_not_agree_keeps_the_pages_whatever_the_model_says(
    load: Load, memory: Any, answer: ElicitResult, confirm: bool
) -> None:
    said, _ = await forget(load, answer, url=MANY, confirm=confirm)

    assert "did not agree" in said
    assert memory.calls == []


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(
    ("arguments", "words", "calls"),
    [
        ({"url": MANY}, "repeat the call with confirm=true", 0),
        ({"url": MANY, "confirm": False}, "repeat the call with confirm=true", 0),
        ({"url": MANY, "confirm": True}, "21 pages deleted.", 1),
        ({"url": MANY[:20]}, "20 pages deleted.", 1),
    ],
)
async def test_client_that_cannot_ask_must_confirm(
    load: Load, memory: Any, mode: Any, arguments: Any, words: str, calls: int
) -> None:
    said, _ = await forget(load, None, mode, **arguments)

    assert words in said
    assert len(memory.calls) == calls
