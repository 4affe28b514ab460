"""Pages of configured origins may call the server from a browser."""

from typing import Any

import httpx2
import pytest

ORIGIN = "https://app.example"
ASKED = {
    "Origin": ORIGIN,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version",
}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "page", "version": "1"},
    },
}


async def test_browser_that_asks_beforehand_is_let_in_without_a_token(
    serving_mcp: Any, load: Any
) -> None:
    settings = {"mcp_allowed_origins": [ORIGIN], "mcp_auth_token": "t" * 32}
    async with serving_mcp(load, **settings) as base, httpx2.AsyncClient() as http:
        asked = await http.options(f"{base}/mcp", headers=ASKED)
        called = await http.post(f"{base}/mcp", headers={"Origin": ORIGIN}, json=HELLO)

    assert asked.status_code == 200
    assert asked.headers["access-control-allow-origin"] == ORIGIN
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert "mcp-protocol-version" in asked.headers["access-control-allow-headers"]
    assert called.status_code == 401
    assert called.headers["access-control-allow-origin"] == ORIGIN


async def test_page_of_a_configured_origin_may_read_the_answer_and_the_session(
    serving_mcp: Any, load: Any
) -> None:
    headers = {"Origin": ORIGIN, "Accept": "application/json, text/event-stream"}
    async with (
        serving_mcp(load, mcp_allowed_origins=[ORIGIN]) as base,
        httpx2.AsyncClient() as http,
    ):
        answer = await http.post(f"{base}/mcp", headers=headers, json=HELLO)

    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]


@pytest.mark.parametrize("configured", [[], ["https://other.example"]])
async def test_page_of_another_origin_is_refused_beforehand(
    serving_mcp: Any, load: Any, configured: list[str]
) -> None:
    async with (
        serving_mcp(load, mcp_allowed_origins=configured) as base,
        httpx2.AsyncClient() as http,
    ):
        asked = await http.options(f"{base}/mcp", headers=ASKED)

    assert asked.status_code == 403
    assert "access-control-allow-origin" not in asked.headers
