import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from webrag.mcp_server.http_server import ConnectionLimits, connection_limits, uvicorn_config

SHORT = ConnectionLimits(connections=40, request_s=0.5, idle_s=0.5)
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _echo(request: Request) -> PlainTextResponse:
    if request.query_params.get("slow"):
        await asyncio.sleep(1.5)
    await request.body()
    return PlainTextResponse("ok")


@asynccontextmanager
async def served(limits: ConnectionLimits) -> AsyncIterator[uvicorn.Server]:
    app = Starlette(routes=[Route("/", _echo, methods=["GET", "POST"])])
    config = uvicorn_config(app, limits)
    config.port = 0
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())  # `serve` would take over signals
    while not server.started:
        await asyncio.sleep(0.01)
    yield server
    server.should_exit = True
    await task


async def connect(server: uvicorn.Server) -> Connection:
    port = server.servers[0].sockets[0].getsockname()[1]
    return await asyncio.open_connection("127.0.0.1", port)


async def closed(connection: Connection) -> bytes:
    """What the server still says before it closes the connection."""
    reader, writer = connection
    try:
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def silent(connection: Connection) -> None:
    del connection


async def half_a_header(connection: Connection) -> None:
    connection[1].write(b"GET / HTTP/1.1\r\nHost: local")


async def half_a_body(connection: Connection) -> None:
    connection[1].write(HALF_A_BODY)


async def answered_and_idle(connection: Connection) -> None:
    connection[1].write(GET)
    await connection[0].readuntil(b"ok")


async def answered_and_half_a_header(connection: Connection) -> None:
    await answered_and_idle(connection)
    connection[1].write(b"GET / HT")


@pytest.mark.parametrize(
    "behave", [silent, half_a_header, half_a_body, answered_and_idle, answered_and_half_a_header]
)
async def test_connection_that_keeps_the_server_waiting_is_closed(
    behave: Callable[[Connection], Awaitable[None]],
) -> None:
    async with served(SHORT) as server:
        connection = await connect(server)
        await behave(connection)

        assert await closed(connection) == b""
        assert not server.server_state.connections


@pytest.mark.parametrize("sent", [GET, HALF_A_BODY], ids=["header", "body"])
async def test_byte_now_and_then_buys_no_time(sent: bytes) -> None:
    async with served(SHORT) as server:
        _, writer = connection = await connect(server)
        started = time.monotonic()
        trickle = asyncio.create_task(_trickle(writer, sent[:-1]))

        await closed(connection)
        trickle.cancel()

    assert time.monotonic() - started < 0.05 * len(sent)


async def _trickle(writer: asyncio.StreamWriter, sent: bytes) -> None:
    for byte in sent * 10:
        writer.write(bytes([byte]))
        await asyncio.sleep(0.1)


async def test_long_answer_is_not_cut_off() -> None:
    async with served(SHORT) as server:
        reader, writer = await connect(server)
        writer.write(GET.replace(b"GET /", b"GET /?slow=1"))

        head = await asyncio.wait_for(reader.readuntil(b"ok"), 20)
        writer.close()

    assert head.startswith(b"HTTP/1.1 200")


async def test_hundred_idle_connections_are_gone_and_the_next_request_served() -> None:
    limits = ConnectionLimits(connections=200, request_s=1.0, idle_s=1.0)
    async with served(limits) as server:
        idle = [await connect(server) for _ in range(100)]
        await asyncio.gather(*map(closed, idle))

        assert not server.server_state.connections
        connection = await connect(server)
        await answered_and_idle(connection)
        connection[1].close()


async def test_connection_beyond_the_limit_is_told_so_and_closed() -> None:
    limits = ConnectionLimits(connections=3, request_s=20, idle_s=20)
    async with served(limits) as server:
        kept = [await connect(server) for _ in range(3)]
        for each in kept:
            await answered_and_idle(each)

        said = await closed(await connect(server))

        assert said.startswith(b"HTTP/1.1 503 ")
        await answered_and_idle(kept[0])
        for _, writer in kept:
            writer.close()


@pytest.mark.parametrize(
    ("files", "connections"),
    [(None, 2000), (-1, 2000), (1024, 768), (100_000, 2000), (10, 64), (0, 64), (2256, 2000)],
)
def test_files_for_the_database_are_kept_back(files: int | None, connections: int) -> None:
    assert connection_limits(files).connections == connections
