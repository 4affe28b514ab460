"""The server as clients start it: a process of its own, over its standard streams."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from .odd_messages import ODD_MESSAGES, as_bytes

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
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
FRAME = re.compile(r"\n<page-([0-9a-f]{8})>\n.+?\n</page-\1>\n", re.DOTALL)
INSTALL = """<html lang="en"><head><title>Install Kiln</title></head><body><main>
<h1>Install Kiln</h1>
<p>Kiln needs Python 3.11 or newer, and nothing else. It runs on every desktop system, and most
people install it in less than a minute.</p>
<h2>From a package</h2>
<p>Run <code>pip install kiln</code>. The command downloads one wheel of two megabytes.</p>
<p>Limits are described under <a href="/config">configuration of a firing</a>.</p>
</main></body></html>"""
CONFIG = """<html lang="en"><head><title>Configuration</title></head><body><main>
<h1>Configuration</h1>
<p>Kiln reads its settings from the environment once, when it starts.</p>
<h2>Timeouts</h2>
<p>KILN_TIMEOUT sets how many seconds a firing may take. The default is 120 seconds.</p>
</main></body></html>"""


def text_of(result: CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, TextContent)
    return content.text


@pytest.fixture
def site(static_site: Callable[..., Any]) -> Any:
    return static_site({"/": INSTALL, "/config": CONFIG})


@pytest.fixture
def parameters(site: Any, postgres_dir: Path) -> StdioServerParameters:
    environment = {
        "WEBRAG_DATA_DIR": str(postgres_dir),
        "WEBRAG_COLLECTION": f"stdio_{os.getpid()}",
        "WEBRAG_ALLOW_HOSTS": urlsplit(str(site)).netloc,
    }
    return StdioServerParameters(
        command=sys.executable, args=["-m", "webrag", "mcp"], env=dict(os.environ) | environment
    )


async def test_server_answers_searches_and_reports_over_stdio(
    parameters: StdioServerParameters, site: Any
) -> None:
    question = "How many seconds may a firing take by default?"
    arguments = {"url": f"{site}/", "query": question, "research_mode": "deep"}
    progress: list[float] = []

    async def note(value: float, _total: float | None, _message: str | None) -> None:
        progress.append(value)

    async with Client(stdio_client(parameters)) as client:
        tools = (await client.list_tools()).tools
        answer = await client.call_tool("answer", arguments, progress_callback=note)
        search = await client.call_tool("search", {"query": "How is Kiln installed?"})
        status = await client.call_tool("status", {"source_url": urlsplit(str(site)).netloc})

    assert [tool.name for tool in tools] == [
        "answer",
        "search",
        "read",
        "status",
        "ingest",
        "verify",
    ]
    assert "The default is 120 seconds." in text_of(answer).split("\n[CITATIONS]\n")[1]
    assert FRAME.search(text_of(answer))
    assert progress == sorted(set(progress))
    assert len(progress) >= 3
    assert "pip install kiln" in text_of(search)
    assert "Install Kiln — " in text_of(status)


async def test_quotation_of_an_answer_can_be_verified_and_its_passage_read(
    parameters: StdioServerParameters, site: Any
) -> None:
    question = {"url": f"{site}/config", "query": "How many seconds may a firing take?"}
    quote = "The default is 120 seconds."
    async with Client(stdio_client(parameters)) as client:
        answer = await client.call_tool("answer", question)
        citation = {"url": f"{site}/config", "quote": quote}
        verified = await client.call_tool("verify", {"citations": [citation]})
        around = {"url": f"{site}/config", "quote": quote, "max_tokens": 300}
        page = await client.call_tool("read", around)

    assert quote in text_of(page)
    assert quote in text_of(answer)
    assert "1 of 1 are verbatim in the stored version." in text_of(verified)
    assert "1 of 1 are verbatim on the live page." in text_of(verified)


async def test_slow_page_costs_a_partial_brief_and_repeating_the_call_continues(
    parameters: StdioServerParameters, static_site: Callable[..., Any]
) -> None:
    delivered = threading.Event()

    def slow(_request: Any) -> tuple[int, dict[str, str], str]:
        delivered.wait(300)
        return 200, {"Content-Type": "text/html"}, CONFIG

    site = static_site({"/": INSTALL, "/config": slow})
    environment = {"MCP_SOFT_DEADLINE": "6", "WEBRAG_ALLOW_HOSTS": urlsplit(str(site)).netloc}
    assert parameters.env is not None
    parameters = parameters.model_copy(update={"env": parameters.env | environment})
    arguments = {"url": [f"{site}/", f"{site}/config"], "query": "What does Kiln need?"}
    async with Client(stdio_client(parameters)) as client:
        await client.call_tool("status", {})  # so that starting costs no page its time
        while "Time ran out" in text_of(await client.call_tool("ingest", {"url": f"{site}/"})):
            pass  # starting what reads pages may take longer than the deadline
        asked_before = site.paths.count("/")
        async with asyncio.timeout(12):
            partial = text_of(await client.call_tool("answer", arguments))
        delivered.set()
        repeated = [text_of(await client.call_tool("answer", arguments))]
        while "\nPartial: " in repeated[-1] and len(repeated) < 5:  # on a busy machine
            repeated.append(text_of(await client.call_tool("answer", arguments)))

    assert "Kiln needs Python 3.11" in partial.split("\n[CITATIONS]\n")[1]
    assert "- CONTINUE: Time ran out; repeat the same `answer` call" in partial
    assert "\nPartial: " not in repeated[-1]
    assert f"URLs fetched: 1 ({site}/config)" in "".join(repeated)
    assert site.paths.count("/") == asked_before


async def test_two_servers_work_on_one_corpus_at_once(
    parameters: StdioServerParameters, site: Any
) -> None:
    async def ask(path: str, query: str) -> str:
        async with Client(stdio_client(parameters)) as client:
            arguments = {"url": f"{site}{path}", "query": query}
            return text_of(await client.call_tool("answer", arguments))

    install, config = await asyncio.gather(
        ask("/", "How is Kiln installed?"), ask("/config", "How many seconds may a firing take?")
    )

    assert "pip install kiln" in install
    assert "The default is 120 seconds." in config


Process = asyncio.subprocess.Process


async def started(parameters: StdioServerParameters) -> Process:
    return await asyncio.create_subprocess_exec(
        parameters.command,
        *parameters.args,
        env=parameters.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


async def until_logged(process: Process, words: bytes) -> None:
    assert process.stderr is not None
    async with asyncio.timeout(60):
        while words not in await process.stderr.readline():
            pass


async def exchanged(process: Process, *messages: dict[str, Any] | str) -> Any:
    """What the server answers to the last message."""
    assert process.stdin is not None
    assert process.stdout is not None
    for message in messages:
        text = message if isinstance(message, str) else json.dumps(message)
        process.stdin.write(text.encode() + b"\n")
    return json.loads(await asyncio.wait_for(process.stdout.readline(), 30))


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [(signal.SIGTERM, 143, b"was terminated"), (signal.SIGINT, 130, b"was interrupted")],
)
async def test_server_told_to_end_releases_its_database(
    parameters: StdioServerParameters, number: signal.Signals, code: int, words: bytes
) -> None:
    process = await started(parameters)
    await until_logged(process, b"WebRAG is ready")

    process.send_signal(number)
    output, log = await asyncio.wait_for(process.communicate(), 30)

    assert process.returncode == code
    assert output == b""
    assert words in log
    assert b"Traceback" not in log


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_server_told_to_end_during_a_call_cancels_it_and_leaves_nothing_running(
    static_site: Callable[..., Any],
    tmp_path: Path,
    made_cluster: Path,
    number: signal.Signals,
    code: int,
) -> None:
    shutil.copytree(made_cluster, tmp_path / "postgres/cluster")
    reached, delivered = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(_request: Any) -> tuple[int, dict[str, str], str]:
        loop.call_soon_threadsafe(reached.set)
        delivered.wait(30)
        return 200, {"Content-Type": "text/html"}, CONFIG

    site = static_site({"/": INSTALL, "/slow": slow})
    environment = {
        "WEBRAG_DATA_DIR": str(tmp_path),
        "WEBRAG_ALLOW_HOSTS": urlsplit(str(site)).netloc,
    }
    process = await started(
        StdioServerParameters(
            command=sys.executable, args=["-m", "webrag", "mcp"], env=dict(os.environ) | environment
        )
    )
    await exchanged(process, INITIALIZE)
    await exchanged(process, INITIALIZED, called(2, "ingest", url=f"{site}/"))
    assert process.stdin is not None
    process.stdin.write(json.dumps(called(3, "ingest", url=f"{site}/slow")).encode() + b"\n")
    await asyncio.wait_for(reached.wait(), 60)
    children = descendants(process.pid)

    process.send_signal(number)
    _, log = await asyncio.wait_for(process.communicate(), 30)
    delivered.set()

    assert process.returncode == code
    assert b"Traceback" not in log
    await until(lambda: not (tmp_path / "postgres/cluster/postmaster.pid").exists())
    await until(lambda: not any(is_running(child) for child in children))


NO_REQUESTS = {
    "{": -32700,
    "[]": -32600,
    "7": -32600,
    '{"jsonrpc": "2.0", "id": null, "method": "ping"}': -32600,
    '{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}': -32600,
    '{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": []}': -32600,
}


async def test_line_that_is_no_request_is_answered_and_the_next_one_served(
    parameters: StdioServerParameters,
) -> None:
    process = await started(parameters)

    refused = {line: (await exchanged(process, line))["error"] for line in NO_REQUESTS}
    initialized = await exchanged(process, INITIALIZE)
    _, log = await asyncio.wait_for(process.communicate(b""), 30)

    assert {line: error["code"] for line, error in refused.items()} == NO_REQUESTS
    assert [e["message"] for e in refused.values() if len(e["message"].splitlines()) != 1] == []
    assert initialized["id"] == 1
    assert b"Traceback" not in log


async def test_every_odd_line_is_answered_and_ends_nothing(
    parameters: StdioServerParameters,
) -> None:
    process = await started(parameters)
    await exchanged(process, INITIALIZE, INITIALIZED)

    answers = {}
    for name, message in ODD_MESSAGES.items():
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(as_bytes(message) + b"\n")
        answers[name] = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
    served = await exchanged(process, {"jsonrpc": "2.0", "id": 99, "method": "ping"})
    _, log = await asyncio.wait_for(process.communicate(b""), 60)

    assert [name for name, each in answers.items() if not {"result", "error"} & set(each)] == []
    assert served == {"jsonrpc": "2.0", "id": 99, "result": {}}
    assert b"Traceback" not in log


def called(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def descendants(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.05)


async def test_server_ends_when_its_input_ends(parameters: StdioServerParameters) -> None:
    process = await asyncio.create_subprocess_exec(
        parameters.command,
        *parameters.args,
        env=parameters.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    output, log = await asyncio.wait_for(process.communicate(b""), timeout=30)

    assert process.returncode == 0
    assert output == b""
    assert b"WebRAG MCP server stopped" in log
