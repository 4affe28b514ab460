"""Puts the job queue and its workers together, where the extra they need is installed."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError, InputError
from webrag.extras import how_to_install
from webrag.wiring.embeddings import choose_embedding, load_embedder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from webrag.embedding.embedder import Embedder
    from webrag.jobs.models import Job, WorkerOptions
    from webrag.jobs.queue import JobQueue, Turn
    from webrag.jobs.worker import JobWorker, TurnEnd
    from webrag.postgres.database import Database
    from webrag.settings import Settings
    from webrag.wiring.components import Components

_PARTS = 16  # of a collection, embedded by as many workers at once


def require_workers() -> None:
    """Refuse what cannot work without the extra `workers`."""
    if find_spec("procrastinate") is None:
        raise ConfigurationError(
            "Jobs need the package procrastinate, which is not installed.",
            hint=how_to_install("workers"),
        )


def open_queue(database: "Database") -> "JobQueue":
    """The jobs of the database's collection."""
    require_workers()
    from webrag.jobs.queue import JobQueue

    return JobQueue(database)


def make_worker(
    settings: "Settings",
    queue: "JobQueue",
    current_parts: "Callable[[], Awaitable[Components]]",
    options: "WorkerOptions | None",
    on_turn: "Callable[[Turn, TurnEnd], None] | None",
) -> "JobWorker":
    """A worker for the collection, which takes the parts that fit it at each turn."""
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
        crawler, verifier = await asyncio.to_thread(lambda: (parts.crawler, parts.verifier))
        return Tools(crawler, parts.acquirer, verifier, load)

    return JobWorker(queue, tools, options or WorkerOptions(), on_turn=on_turn)


async def enqueue_reindex(
    database: "Database", settings: "Settings", *, force: bool = False
) -> "list[Job]":
    """Let workers embed the stored text again with the model that a new collection would get.

    As `WebRAG.enqueue_reindex`.
    """
    queue = open_queue(database)
    from webrag.corpus.maintenance.reembedding import chunk_ranges, prepare_reembedding
    from webrag.corpus.schema import update_schema

    found = await update_schema(database)
    choice = await asyncio.to_thread(choose_embedding, settings, found if force else None)
    wanted = (choice.name, choice.dimensions)
    if found == wanted and not force:
        return []
    under_way = await queue.unfinished_embedding() if found else None
    if under_way is None:
        await prepare_reembedding(database, wanted)
        return await queue.enqueue_embedding(wanted, await chunk_ranges(database, _PARTS))
    if under_way.request.embedding and under_way.request.embedding.wanted != wanted:
        raise InputError(
            f"Job {under_way.id} makes {under_way.request.subject}; it has not ended.",
            hint=f"Wait for it, or cancel it with `webrag jobs cancel {under_way.id}`.",
        )
    return [under_way]
