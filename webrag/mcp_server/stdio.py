"""The protocol over standard input and output; it knows no tools.

The SDK's transport writes. Reading is done here: the SDK leaves what is no message unanswered, and
its reading thread cannot be interrupted, so that an exit waits for the next line.
"""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from webrag.mcp_server.messages import refusal

if TYPE_CHECKING:
    import anyio

_READ_BYTES = 65_536


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve until standard input ends."""
    # The SDK's own way to run it takes no streams.
    lowlevel = server._lowlevel_server
    lines = _MessageLines(_divert_input())
    stdin = cast("anyio.AsyncFile[str]", lines)
    async with stdio_server(stdin=stdin) as (read_stream, write_stream):
        lines.answers.set_result(write_stream)
        options = lowlevel.create_initialization_options()
        await lowlevel.run(read_stream, write_stream, options)


class _MessageLines:
    """The lines of a descriptor that are messages; the others are answered with an error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self.answers: asyncio.Future[Any] = self._loop.create_future()
        # An exit waits for no daemon.
        threading.Thread(target=self._read, name="webrag-stdin", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Each message as a line."""
        while (line := await self._queue.get()) is not None:
            if not line.strip():
                continue
            text = line.decode(errors="replace")
            refused = refusal(text.encode())
            if refused is None:
                yield text
            else:
                await (await self.answers).send(SessionMessage(refused))

    def _read(self) -> None:
        # A loop that was closed takes nothing more, and nobody waits for it.
        with suppress(RuntimeError, asyncio.CancelledError):
            for line in _lines(self._descriptor):
                asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop).result()
            asyncio.run_coroutine_threadsafe(self._queue.put(None), self._loop).result()


def _lines(descriptor: int) -> Iterator[bytes]:
    # Not through a buffered reader: its lock, held by a waiting daemon, breaks the exit.
    rest = bytearray()
    while True:
        try:
            data = os.read(descriptor, _READ_BYTES)
        except OSError:
            data = b""
        if not data:
            break
        *whole, last = data.split(b"\n")
        for part in whole:
            yield bytes(rest + part)
            rest.clear()
        rest += last
    if rest:
        yield bytes(rest)


def _divert_input() -> int:
    """The protocol's input, out of reach of everything else that reads standard input."""
    wire = os.dup(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    return wire
