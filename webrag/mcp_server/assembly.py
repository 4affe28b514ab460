"""Puts the MCP server together for a set of settings; serves nothing yet."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import quote

from mcp.server.mcpserver import MCPServer
from mcp.types import Icon

from webrag.errors import InputError, WebRAGError
from webrag.mcp_server.resources import PageServer, add_prompts, add_resources
from webrag.mcp_server.runtime import LoadMemory, RunningCalls, Runtime, shared_entry
from webrag.mcp_server.schemas import INSTRUCTIONS
from webrag.mcp_server.tools import ResearchTools
from webrag.settings import Settings

if TYPE_CHECKING:
    from webrag.app import WebRAG
    from webrag.mcp_server.authorization.gate import Admission
    from webrag.mcp_server.authorization.setup import Access

logger = logging.getLogger(__name__)

# English prose has between four and five.
_MOST_CHARS_PER_TOKEN = 6
# Without it the tool list took 1.3 times as long as a bare server's, with it 1.2 times.
_HEAD_START_S = 0.5
# A page with a marked line, under a lens.
_ICON = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#2563eb"'
    ' stroke-width="2"><path d="M4 3h11v7M4 3v18h8M7 8h5M7 12h3" />'
    '<circle cx="16" cy="16" r="4" /><path d="m19 19 3 3" /></svg>'
)


@dataclass
class AssembledServer:
    """A server and what a transport needs to know of it.

    Attributes:
        runtime: Whether the memory is open.
        calls: The calls under way.
        settings: What memories are opened with.
        access: Who may use it over HTTP, and on which collection; None over stdio.
    """

    server: MCPServer[Runtime]
    runtime: Runtime
    calls: RunningCalls
    settings: Settings
    access: "Access | None" = None

    @property
    def admission(self) -> "Admission | None":
        """Who is let in over HTTP; None for everybody."""
        return None if self.access is None else self.access.admission

    async def renew(self, settings: Settings) -> None:
        """Open the memories anew with other settings; with the old ones where that fails.

        Raises:
            InputError: Calls are under way.
            WebRAGError: The memory cannot be opened so.
        """
        if self.calls:
            raise InputError(
                "A question or a crawl is under way: wait for it or stop it, then save again."
            )
        before, self.settings = self.settings, settings
        try:
            await self._reopen()
        except WebRAGError:
            self.settings = before
            await self._reopen()
            raise

    async def _reopen(self) -> None:
        if self.access is not None:
            await self.access.close()
        await self.runtime.renew()


def assemble_server(settings: Settings, *, load: LoadMemory | None = None) -> AssembledServer:
    """A server that is ready to run; neither LlamaIndex nor a database is touched yet.

    Must be called where it will run: one server serves one event loop.

    Args:
        settings: Deadlines, what is offered, who may use it, what the memory is opened with.
        load: Makes the memory, unopened; None for `WebRAG(settings)`. Runs in a thread.

    Raises:
        ConfigurationError: The file with tokens cannot be used.
    """
    # Over HTTP nobody waits for the process to start.
    head_start_s = _HEAD_START_S if settings.mcp_transport == "stdio" else 0.0

    def load_memory(collection: str | None = None) -> "AbstractAsyncContextManager[WebRAG]":
        own = {} if collection is None else {"collection": collection}
        return load() if load else _load_webrag(assembled.settings.model_copy(update=own))

    runtime = Runtime(load_memory, head_start_s=head_start_s)
    access = _access(settings, runtime, lambda name: partial(load_memory, name))
    entry = shared_entry(runtime) if access is None else access.entry
    tools = ResearchTools(
        entry,
        timeout_s=settings.mcp_tool_timeout,
        soft_deadline_s=settings.mcp_soft_deadline,
        longest_chars=settings.mcp_response_token_budget * _MOST_CHARS_PER_TOKEN,
        structured=settings.mcp_structured_output,
        may_forget=settings.mcp_enable_forget,
        token_budget=settings.mcp_response_token_budget,
        has_one_client=settings.mcp_transport == "stdio",
    )

    @asynccontextmanager
    async def lifespan(_server: MCPServer[Runtime]) -> AsyncIterator[Runtime]:
        runtime.start()
        try:
            yield runtime
        finally:
            if access is not None:
                await access.close()
            await runtime.close()
            logger.info("WebRAG MCP server stopped")

    server = PageServer(
        entry,
        title="WebRAG",
        icons=[Icon(src=_ICON, mime_type="image/svg+xml", sizes=["any"])],
        instructions=INSTRUCTIONS,
        version=version("webrag"),
        lifespan=lifespan,
        tools=tools.tools(),
    )
    add_resources(server, entry, token_budget=settings.mcp_response_token_budget)
    add_prompts(server)
    assembled = AssembledServer(server, runtime, tools.calls, settings, access)
    return assembled


def _access(
    settings: Settings, runtime: Runtime, load: Callable[[str], LoadMemory]
) -> "Access | None":
    if settings.mcp_transport == "stdio":
        return None
    # Imported here: over stdio there is one caller, who may do everything.
    from webrag.mcp_server.authorization.setup import authorize

    return authorize(settings, runtime, load)


def _load_webrag(settings: Settings) -> "AbstractAsyncContextManager[WebRAG]":
    # Imported here: LlamaIndex takes more than a second, and clients wait for the tool list.
    from webrag.app import WebRAG

    return WebRAG(
        settings,
        soft_deadline_s=settings.mcp_soft_deadline,
        reads_named_files=False,
        is_own_user=False,
        # Who has to show a token sees what is theirs.
        sees_collections=settings.mcp_transport == "stdio" or not settings.mcp_needs_token,
    )
