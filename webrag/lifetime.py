"""Opens and closes what WebRAG works with, and gives it to the rest of WebRAG."""

import asyncio
import logging
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Self

from webrag.errors import InputError
from webrag.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.readers.base import BaseReader

    from webrag.ingestion.models import PageSource
    from webrag.orchestration.models import ScoreProfile
    from webrag.postgres.database import Database
    from webrag.wiring.assembly import Parts

__all__ = ["Lifetime"]

logger = logging.getLogger(__name__)


class Lifetime:
    """The part of WebRAG that is opened and closed; its arguments are WebRAG's."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        soft_deadline_s: float | None = None,
        page_source: "PageSource | BaseReader | None" = None,
        reranker: "BaseNodePostprocessor | None" = None,
        score_profile: "ScoreProfile | str | None" = None,
    ) -> None:
        self.settings = settings or load_settings()
        self._page_source = page_source
        self._reranker = (reranker, score_profile)
        self._soft_deadline_s = soft_deadline_s
        self._stack: AsyncExitStack | None = None
        self._parts: Parts | None = None
        self._reopening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Start what is needed; does nothing when already open.

        Raises:
            ConfigurationError: Settings contradict each other or the corpus.
            DatabaseUnavailableError: The database cannot be started or reached.
        """
        if self._parts is not None:
            return
        # The imports behind it take more than a second, which would stall the event loop.
        assembly = await asyncio.to_thread(import_module, "webrag.wiring.assembly")
        async with AsyncExitStack() as stack:
            self._parts = await assembly.assemble(
                self.settings,
                stack,
                soft_deadline_s=self._soft_deadline_s,
                page_source=self._page_source,
                reranker=self._reranker,
            )
            self._stack = stack.pop_all()
        if "IPython" in sys.modules:
            import_module("webrag.presentation.html.display").register_displays()

    async def close(self) -> None:
        """Release connections, worker processes and the database lease."""
        self._parts = None
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.aclose()

    @property
    def _open_parts(self) -> "Parts":
        if self._parts is None:
            raise InputError("WebRAG is not open: use it in an `async with` block, or call open().")
        return self._parts

    async def _current_parts(self) -> "Parts":
        """The parts that fit the collection, which another process may have reindexed."""
        from webrag.corpus.schema import corpus_embedding

        parts = self._open_parts
        found = await corpus_embedding(parts.database)
        if found in (None, (parts.embedding.name, parts.embedding.dimensions)):
            return parts
        assembly = await asyncio.to_thread(import_module, "webrag.wiring.assembly")
        async with self._reopening:
            if self._parts is parts and self._stack is not None:
                logger.info("The collection was reindexed with another model; opening it again.")
                # What calls under way use stays open until the end.
                self._parts = await assembly.assemble(
                    self.settings,
                    self._stack,
                    soft_deadline_s=self._soft_deadline_s,
                    page_source=self._page_source,
                    reranker=self._reranker,
                )
        return self._open_parts

    @asynccontextmanager
    async def _some_database(self) -> "AsyncIterator[Database]":
        """The open one, or one for this piece of work."""
        if self._parts is not None:
            yield self._parts.database
            return
        indexing = await asyncio.to_thread(_import_database)
        database = indexing(self.settings.database_config())
        try:
            yield database
        finally:
            await database.close()


def _import_database() -> "type[Database]":
    from webrag.postgres.database import Database

    return Database
