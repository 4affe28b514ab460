"""Which memory a call works on; the server over stdio has one for its only caller."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from mcp.server.mcpserver import Context

from webrag.mcp_server.runtime import Runtime

__all__ = ["Entry", "shared_entry"]

Entry = Callable[[Context[Any, Any], str | None], AbstractAsyncContextManager[Runtime]]
"""Lets one call in, given the name of its tool (None for reading a resource).

Raises AccessDeniedError when its caller may not do that, or not now.
"""


def shared_entry(runtime: Runtime) -> Entry:
    """Everybody is let in and works on the same memory."""

    @asynccontextmanager
    async def entered(_context: Context[Any, Any], _tool: str | None) -> AsyncIterator[Runtime]:
        yield runtime

    return entered
