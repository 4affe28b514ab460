"""Puts the job queue and its workers together, where the extra they need is installed."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError
from webrag.extras import how_to_install
from webrag.wiring.embeddings import choose_embedding, load_embedder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from webrag.embedding.embedder import Embedder
    from webrag.jobs.models import WorkerOptions
    from webrag.jobs.queue import JobQueue, Turn
    from webrag.jobs.worker import JobWorker, TurnEnd
    from webrag.postgres.database import Database
    from webrag.settings import Settings
    from webrag.wiring.assembly import Parts


def require_workers() -> None:
    """Refuse what cannot work.

    Raises:
        ConfigurationError: The extra `workers` is not installed.
    """
    if find_spec("procrastinate") is None:
        raise ConfigurationError(
            "Jobs need the package procrastinate, which is not installed.",
            hint=how_to_install("workers"),
        )


def open_queue(database: "Database") -> "JobQueue":
    """The jobs of the database's collection.

    Raises:
        ConfigurationError: The extra `workers` is not installed.
    """
    require_workers()
    from webrag.jobs.queue import JobQueue

    return JobQueue(database)


def make_worker(
    settings: "Settings",
    queue: "JobQueue",
    current_parts: "Callable[[], Awaitable[Parts]]",
    options: "WorkerOptions | None",
    on_turn: "Callable[[Turn, TurnEnd], None] | None",
) -> "JobWorker":
    """A worker for the collection, which takes the parts that fit it at each turn.

    Raises:
        ConfigurationError: The extra `workers` is not installed.
    """
    require_workers()
    from webrag.jobs.models import WorkerOptions
    from webrag.jobs.worker import JobWorker, Tools

    @asynccontextmanager
    async def load(wanted: "tuple[str, int]") -> "AsyncIterator[Embedder]":
        by_name = settings.model_copy(update={"embedding_provider": "auto"})
        choice = await asyncio.to_thread(choose_embedding, by_name, wanted)
        async with AsyncExitStack() as stack:
            yield (await load_embedder(settings, choice, stack))[0]

    async def tools() -> Tools:
        parts = await current_parts()
        crawler, verifier = await asyncio.to_thread(lambda: (parts.crawler(), parts.verifier()))
        return Tools(crawler, parts.acquirer, verifier, load)

    return JobWorker(queue, tools, options or WorkerOptions(), on_turn=on_turn)
