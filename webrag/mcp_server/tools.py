"""The MCP tools: what models are told about them, and how a call becomes a text."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from typing_extensions import override

from webrag.errors import InputError, WebRAGError
from webrag.indexing.models import AcquiredPage
from webrag.ingestion.links import canonical_url
from webrag.mcp_server.argument_log import described
from webrag.mcp_server.arguments import Arguments
from webrag.mcp_server.progress import ProgressReporter
from webrag.mcp_server.runtime import ResearchMemory, Runtime
from webrag.mcp_server.schemas import (
    DESCRIPTIONS,
    MAX_INGEST_URLS,
    RESEARCH_MODES,
    RETRIEVAL_MODES,
    SCHEMAS,
    TITLES,
)
from webrag.orchestration.models import OrchestrationResult, QueryType
from webrag.presentation.errors import failure_text, input_error_text, timeout_text
from webrag.presentation.status import format_ingest, format_status
from webrag.presentation.untrusted import one_line

__all__ = ["ResearchTools"]

logger = logging.getLogger(__name__)

_INTENTS: tuple[QueryType, ...] = get_args(QueryType)
# The soft deadline must come before the hard one for there to be anything left to report in.
_LATEST_SOFT_SHARE = 0.9


@dataclass(frozen=True)
class _Reply:
    text: str
    is_error: bool = False


Handler = Callable[[Arguments, ProgressReporter], Awaitable[_Reply]]


class _PlainTool(Tool):
    """A tool that receives its arguments as sent.

    The SDK's own validation parses question texts that look like JSON and answers with the
    internals of its validator.
    """

    @override
    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        """Run the tool; every failure becomes an error result."""
        return await self.fn(arguments, context)


class ResearchTools:
    """`answer`, `search`, `status` and `ingest` over one shared memory.

    Args:
        runtime: Gives the open memory.
        timeout_s: Longest call, waiting for the memory included.
        soft_deadline_s: After it `ingest` reports what is done; the memory keeps its own for
            `answer`.
    """

    def __init__(self, runtime: Runtime, *, timeout_s: float, soft_deadline_s: float) -> None:
        self._runtime = runtime
        self._timeout_s = timeout_s
        self._soft_deadline_s = min(soft_deadline_s, timeout_s * _LATEST_SOFT_SHARE)

    def tools(self) -> list[Tool]:
        """The tools, ready to be given to a server."""
        reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        stores = ToolAnnotations(
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=True,
        )
        return [
            self._tool("answer", self._answer, stores),
            self._tool("search", self._search, reads),
            self._tool("status", self._status, reads),
            self._tool("ingest", self._ingest, stores),
        ]

    def _tool(self, name: str, handler: Handler, annotations: ToolAnnotations) -> Tool:
        async def call(arguments: dict[str, Any], context: Context[Any, Any]) -> CallToolResult:
            return await self._call(name, handler, arguments, context)

        tool = _PlainTool.from_function(
            call,
            name=name,
            title=TITLES[name],
            description=DESCRIPTIONS[name],
            annotations=annotations,
            structured_output=False,
        )
        return tool.model_copy(update={"parameters": SCHEMAS[name]})

    async def _call(
        self, name: str, handler: Handler, arguments: dict[str, Any], context: Context[Any, Any]
    ) -> CallToolResult:
        logger.info("Tool %s called: %s", name, described(arguments, SCHEMAS[name]["properties"]))
        started = time.monotonic()
        progress = ProgressReporter(context.report_progress)
        heartbeat = asyncio.create_task(progress.keep_alive())
        try:
            reply = await self._reply(handler, Arguments(arguments), progress)
        finally:
            heartbeat.cancel()
        elapsed_ms = (time.monotonic() - started) * 1000
        logger.info("Tool %s: %d characters in %.0f ms", name, len(reply.text), elapsed_ms)
        content = TextContent(type="text", text=reply.text)
        return CallToolResult(content=[content], is_error=reply.is_error)

    async def _reply(
        self, handler: Handler, arguments: Arguments, progress: ProgressReporter
    ) -> _Reply:
        limit = asyncio.timeout(self._timeout_s)
        try:
            async with limit:
                return await handler(arguments, progress)
        except InputError as error:
            return _Reply(input_error_text(error), is_error=True)
        except WebRAGError as error:
            logger.warning("A tool failed: %s: %s", type(error).__name__, error)
            return _Reply(failure_text(error), is_error=True)
        except Exception as error:
            if limit.expired():
                logger.error("A tool timed out after %g s", self._timeout_s)  # noqa: TRY400
                return _Reply(timeout_text(self._timeout_s), is_error=True)
            logger.exception("A tool failed unexpectedly")
            return _Reply(failure_text(error), is_error=True)

    async def _memory(self, progress: ProgressReporter) -> ResearchMemory:
        if not self._runtime.is_ready:
            await progress("start", "Starting WebRAG (loading the index and the database)...")
        return await self._runtime.memory()

    async def _answer(self, arguments: Arguments, progress: ProgressReporter) -> _Reply:
        urls = arguments.texts("url", required=True) or []
        query = arguments.text("query")
        intent = arguments.choice("intent", _INTENTS)
        known_context = arguments.optional_text("known_context")
        constraints = arguments.texts("constraints")
        expansion_budget = arguments.integer("expansion_budget", minimum=0)
        research_mode = arguments.choice("research_mode", RESEARCH_MODES) or "fast"
        retrieval_mode = arguments.choice("retrieval_mode", RETRIEVAL_MODES) or "chunk"
        memory = await self._memory(progress)
        result = await memory.answer(
            urls,
            query,
            intent=intent,
            known_context=known_context,
            constraints=constraints,
            expansion_budget=expansion_budget,
            research_mode=research_mode,
            retrieval_mode=retrieval_mode,
            on_progress=progress,
        )
        return _brief(memory, result)

    async def _search(self, arguments: Arguments, progress: ProgressReporter) -> _Reply:
        query = arguments.text("query")
        source_urls = arguments.texts("source_urls") or None
        intent = arguments.choice("intent", _INTENTS)
        top_k = arguments.integer("top_k", minimum=1)
        memory = await self._memory(progress)
        result = await memory.search(
            query, source_urls=source_urls, intent=intent, top_k=top_k, on_progress=progress
        )
        return _brief(memory, result)

    async def _status(self, arguments: Arguments, progress: ProgressReporter) -> _Reply:
        source_url = arguments.optional_text("source_url")
        include_urls = arguments.flag("include_urls", default=True)
        memory = await self._memory(progress)
        return _Reply(format_status(await memory.status(source_url, include_urls=include_urls)))

    async def _ingest(self, arguments: Arguments, progress: ProgressReporter) -> _Reply:
        deadline = time.monotonic() + self._soft_deadline_s
        urls = _urls_to_ingest(arguments.texts("url", required=True) or [])
        refresh = arguments.flag("refresh", default=False)
        memory = await self._memory(progress)
        outcomes: dict[str, AcquiredPage | WebRAGError] = {}

        def on_page(url: str, outcome: AcquiredPage | WebRAGError) -> None:
            outcomes[url] = outcome
            progress.note(_page_progress(url, outcome, len(outcomes), len(urls)))

        await progress("ingest", f"Fetching and indexing {len(urls)} pages...")
        limit = asyncio.timeout(max(deadline - time.monotonic(), 0))
        try:
            async with limit:
                await memory.ingest(urls, refresh=refresh, on_page=on_page)
        except TimeoutError:
            if not limit.expired():
                raise
            logger.warning("Time ran out after %d of %d pages", len(outcomes), len(urls))
        await progress.flush()
        return _ingest_reply(urls, outcomes)


def _urls_to_ingest(named: Sequence[str]) -> list[str]:
    urls = list(dict.fromkeys(map(canonical_url, named)))
    if len(urls) > MAX_INGEST_URLS:
        raise InputError(
            f"url names {len(urls)} pages; one call takes at most {MAX_INGEST_URLS}: "
            "ingest the others with further calls."
        )
    return urls


def _page_progress(url: str, outcome: AcquiredPage | WebRAGError, done: int, total: int) -> str:
    verb = "Failed" if isinstance(outcome, WebRAGError) else outcome.outcome.capitalize()
    return f"{verb}: {one_line(url)} ({done}/{total})"


def _ingest_reply(
    urls: Sequence[str], outcomes: Mapping[str, AcquiredPage | WebRAGError]
) -> _Reply:
    known = [(url, outcomes[url]) for url in urls if url in outcomes]
    pages = [outcome for _, outcome in known if isinstance(outcome, AcquiredPage)]
    failed = {url: str(outcome) for url, outcome in known if isinstance(outcome, WebRAGError)}
    unfinished = [url for url in urls if url not in outcomes]
    text = format_ingest(pages, failed, unfinished)
    return _Reply(text, is_error=not pages and not unfinished)


def _brief(memory: ResearchMemory, result: OrchestrationResult) -> _Reply:
    if not result.chunks:
        logger.warning("Nothing was found for the question")
    return _Reply(memory.brief(result, include_guide=True, nonce=secrets.token_hex(4)))
