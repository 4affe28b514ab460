import asyncio
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from webrag.errors import DatabaseUnavailableError
from webrag.mcp_server.http_server import (
    MAX_BODY_BYTES,
    PATH,
    ConnectionLimits,
    http_app,
    uvicorn_config,
)
from webrag.mcp_server.server import assemble_server
from webrag.settings import load_settings

from .odd_messages import ODD_MESSAGES, as_bytes

Load = Callable[[], Any]
ACCEPT = {"Accept": "application/json, text/event-stream"}
QUESTION = {"query": "What is it?"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
LISTING = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@asynccontextmanager
async def served(
    load: Load, *, limits: Mapping[str, Any] = MappingProxyType({}), **settings: Any
) -> AsyncIterator[str]:
    """Base URL of a running server with a scripted memory."""
    chosen = load_settings(mcp_transport="streamable-http", **settings)
    chosen_limits = dict(limits)
    connections = chosen_limits.pop("connections", ConnectionLimits())
    app = http_app(assemble_server(chosen, load=load), chosen, **chosen_limits)
    config = uvicorn_config(app, connections)
    config.port = 0
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())  # `serve` would take over signals
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    await task


@asynccontextmanager
async def connected(base: str, **options: Any) -> AsyncIterator[Client]:
    token = options.pop("token", None)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{base}{PATH}", http_client=http)
        async with Client(transport, **options) as client:
            yield client


def text_of(result: Any) -> str:
    content = result.content[0]
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("stateless", [False, True])
async def test_tools_answer_with_progress(load: Load, mode: Any, stateless: bool) -> None:
    seen: list[str | None] = []

    async def note(_value: float, _total: float | None, message: str | None) -> None:
        seen.append(message)

    async with (
        served(load, mcp_stateless=stateless) as base,
        connected(base, mode=mode) as client,
    ):
        result = await client.call_tool("search", QUESTION, progress_callback=note)

    assert text_of(result).startswith("brief of 0")
    assert "Searching 3 documents..." in seen


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic c2VjcmV0", "Bearer secretsecret"])
async def test_requests_without_the_token_are_refused(load: Load, header: str | None) -> None:
    headers = ACCEPT | ({"Authorization": header} if header else {})
    async with (
        served(load, mcp_auth_token="secret") as base,
        httpx2.AsyncClient(base_url=base) as http,
    ):
        answer = await http.post(PATH, json={}, headers=headers)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")


async def test_token_opens_the_server_and_a_session_is_worth_nothing_without_it(
    load: Load,
) -> None:
    authorized = ACCEPT | {"Authorization": "Bearer secret"}
    async with (
        served(load, mcp_auth_token="secret") as base,
        httpx2.AsyncClient(base_url=base) as http,
    ):
        opened = await http.post(PATH, json=INITIALIZE, headers=authorized)
        session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
        stolen = await http.post(PATH, json=LISTING, headers=ACCEPT | session)
        own = await http.post(PATH, json=LISTING, headers=authorized | session)

    assert (opened.status_code, stolen.status_code, own.status_code) == (200, 401, 200)


async def test_sessions_beyond_the_limit_are_refused_until_abandoned_ones_end(load: Load) -> None:
    limits = {"max_sessions": 2, "session_idle_s": 1.0}
    async with served(load, limits=limits) as base, httpx2.AsyncClient(base_url=base) as http:
        opened = [await http.post(PATH, json=INITIALIZE, headers=ACCEPT) for _ in range(3)]
        abandoned = {"Mcp-Session-Id": opened[0].headers["Mcp-Session-Id"]}
        await asyncio.sleep(2)
        ended = await http.post(PATH, json=LISTING, headers=ACCEPT | abandoned)
        again = await http.post(PATH, json=INITIALIZE, headers=ACCEPT)

    assert [each.status_code for each in opened] == [200, 200, 503]
    assert (ended.status_code, again.status_code) == (404, 200)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:evil.test"}, 421),
        ({"Host": "localhost:80.evil.test"}, 421),
        ({"Origin": "http://localhost:80@evil.test"}, 403),
        ({"Mcp-Session-Id": "0" * 32}, 404),
    ],
)
async def test_foreign_requests_are_refused(
    load: Load, headers: dict[str, str], status: int
) -> None:
    async with served(load) as base, httpx2.AsyncClient(base_url=base) as http:
        answer = await http.post(PATH, json=LISTING, headers=ACCEPT | headers)

    assert answer.status_code == status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"x" * (MAX_BODY_BYTES + 1), 413, id="too large"),
        pytest.param(b"{", 400, id="no JSON"),
        pytest.param(b"[" * 100_000, 400, id="nested"),
        pytest.param(b'{"jsonrpc": "2.0"}', 400, id="no message"),
        pytest.param(b"\xff\xfe", 400, id="no text"),
    ],
)
async def test_malformed_request_is_refused_and_the_next_one_served(
    load: Load, body: bytes, status: int
) -> None:
    headers = ACCEPT | {"Content-Type": "application/json"}
    async with served(load) as base, httpx2.AsyncClient(base_url=base) as http:
        answer = await http.post(PATH, content=body, headers=headers)
        async with connected(base) as client:
            listed = await client.list_tools()

    assert answer.status_code == status
    assert listed.tools


@pytest.mark.parametrize("revision", [None, "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "message", ["[]", "7", "{}", '{"jsonrpc": "2.0", "id": null, "method": 1}']
)
async def test_message_that_is_no_request_gets_one_line(
    load: Load, message: str, revision: str | None
) -> None:
    headers = ACCEPT | {"Content-Type": "application/json"}
    headers |= {"Mcp-Protocol-Version": revision} if revision else {}
    async with served(load) as base, httpx2.AsyncClient(base_url=base) as http:
        answer = await http.post(PATH, content=message, headers=headers)

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, -32600)
    assert "\n" not in error["message"]


@pytest.mark.parametrize("stateless", [False, True])
async def test_every_odd_message_is_answered_and_fails_nothing(
    load: Load, caplog: pytest.LogCaptureFixture, stateless: bool
) -> None:
    headers = ACCEPT | {"Content-Type": "application/json"}
    async with (
        served(load, mcp_stateless=stateless) as base,
        httpx2.AsyncClient(base_url=base, timeout=30) as http,
    ):
        opened = await http.post(PATH, json=INITIALIZE, headers=headers)
        session = opened.headers.get("mcp-session-id")
        headers |= {"Mcp-Session-Id": session} if session else {}
        answers = {
            name: await http.post(PATH, content=as_bytes(message), headers=headers)
            for name, message in ODD_MESSAGES.items()
        }
        listed = await http.post(PATH, json=LISTING, headers=headers)

    assert [name for name, each in answers.items() if each.status_code not in (200, 400)] == []
    assert [name for name, each in answers.items() if '"jsonrpc":"2.0"' not in each.text] == []
    assert '"tools":' in listed.text
    assert "Traceback" not in caplog.text


async def test_each_of_many_clients_gets_its_own_answer(load: Load, memory: Any) -> None:
    memory.delay_s = 0.05
    memory.echoes = True

    async def ask(base: str, number: int) -> tuple[str, str]:
        async with connected(base, mode="legacy") as client:
            result = await client.call_tool("search", {"query": f"nonce-{number}-end"})
            return f"nonce-{number}-end", text_of(result)

    async with served(load) as base:
        pairs = await asyncio.gather(*(ask(base, number) for number in range(12)))

    assert [nonce for nonce, text in pairs if nonce not in text] == []


async def test_vanished_client_cancels_its_call(load: Load, memory: Any) -> None:
    memory.delay_s = 30
    async with served(load) as base, connected(base) as client:
        running = asyncio.create_task(client.call_tool("search", QUESTION))
        async with asyncio.timeout(10):
            while not memory.calls:
                await asyncio.sleep(0.01)
        running.cancel()
        async with asyncio.timeout(10):
            await memory.cancelled.wait()


async def test_health_tells_starting_from_ready(load: Load) -> None:
    opening = asyncio.Event()

    @asynccontextmanager
    async def slow() -> AsyncIterator[Any]:
        await opening.wait()
        yield load()

    async with served(slow) as base, httpx2.AsyncClient(base_url=base) as http:
        before = await http.get("/healthz")
        opening.set()
        await asyncio.sleep(0.1)
        after = await http.get("/healthz")

    assert [each.json()["status"] for each in (before, after)] == ["starting", "ok"]


async def test_health_reports_a_database_that_is_down_and_notices_when_it_is_up(
    load: Load,
) -> None:
    failures = [DatabaseUnavailableError("down")]

    def flaky() -> Any:
        if failures:
            raise failures.pop()
        return load()

    async with served(flaky) as base, httpx2.AsyncClient(base_url=base) as http:
        await asyncio.sleep(0.2)
        before = await http.get("/healthz")
        await asyncio.sleep(0.2)
        after = await http.get("/healthz")

    assert (before.status_code, after.status_code) == (503, 200)


@pytest.fixture
async def process(postgres_dir: Path, static_site: Any) -> AsyncIterator[Any]:
    """A server of its own, as `webrag mcp --transport http` starts it; its port and process."""
    environment = dict(os.environ) | {
        "WEBRAG_DATA_DIR": str(postgres_dir),
        "WEBRAG_COLLECTION": f"http_{os.getpid()}",
        "WEBRAG_ALLOW_HOSTS": "127.0.0.1",
        "MCP_HOST": "0.0.0.0",
        "MCP_TRANSPORT": "stdio",  # the option wins
    }
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "webrag", "mcp", "--transport", "http", "--port", str(port)),
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )
    yield f"http://127.0.0.1:{port}", started
    if started.returncode is None:
        started.kill()
        await started.wait()


async def until_ready(base: str) -> None:
    async with httpx2.AsyncClient(base_url=base) as http, asyncio.timeout(60):
        while True:
            try:
                if (await http.get("/healthz")).json()["status"] == "ok":
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.1)


async def test_terminated_server_finishes_its_calls_and_warns_of_its_openness(
    process: Any, static_site: Any
) -> None:
    base, server = process
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(_request: Any) -> Any:
        loop.call_soon_threadsafe(reached.set)
        time.sleep(1)
        text = "The tide comes in at noon, and it leaves again at six in the evening."
        return 200, {"Content-Type": "text/html"}, f"<main><h1>Tide</h1><p>{text}</p></main>"

    site = static_site({"/": slow, "/quick": "<main><p>The ebb comes at six.</p></main>"})
    await until_ready(base)
    async with connected(base) as client:
        question = {"url": f"{site}/", "query": "When does the tide come in?"}
        # A busy machine may take most of the time allowed to load models and start a worker.
        await client.call_tool("answer", question | {"url": f"{site}/quick"})
        call = asyncio.create_task(client.call_tool("answer", question))
        await asyncio.wait_for(reached.wait(), 30)
        server.send_signal(signal.SIGTERM)
        result = await call

    log = (await asyncio.wait_for(server.communicate(), 30))[1].decode()
    assert "at noon" in text_of(result)
    assert server.returncode == 0
    assert "Waiting for 1 calls to finish" in log
    assert "WebRAG MCP server stopped" in log
    assert re.search(r"WARNING .*ANYBODY who can reach 0\.0\.0\.0", log)


async def test_interrupted_server_cancels_its_call_and_ends_without_a_traceback(
    process: Any, static_site: Any
) -> None:
    base, server = process
    reached, delivered = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(_request: Any) -> Any:
        loop.call_soon_threadsafe(reached.set)
        delivered.wait(30)
        return 200, {"Content-Type": "text/html"}, "<main><p>The tide comes in.</p></main>"

    site = static_site({"/": slow})
    await until_ready(base)
    async with connected(base) as client:
        question = {"url": f"{site}/", "query": "When does the tide come in?"}
        call = asyncio.create_task(client.call_tool("answer", question))
        await asyncio.wait_for(reached.wait(), 30)
        server.send_signal(signal.SIGINT)
        log = (await asyncio.wait_for(server.communicate(), 30))[1].decode()
        delivered.set()
        call.cancel()

    assert server.returncode == 0
    assert "WebRAG MCP server stopped" in log
    assert "Traceback" not in log
