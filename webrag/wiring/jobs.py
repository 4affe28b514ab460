"""Puts the job queue and its workers together, where the extra they need is installed."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webrag.jobs.models import WorkerOptions
    from webrag.jobs.queue import JobQueue, Turn
    from webrag.jobs.worker import JobWorker, TurnEnd
    from webrag.postgres.database import Database
    from webrag.wiring.assembly import Parts

__all__ = ["make_worker", "open_queue", "require_workers"]


def require_workers() -> None:
    """Refuse what cannot work.

    Raises:
        ConfigurationError: The extra `workers` is not installed.
    """
    if find_spec("procrastinate") is None:
        raise ConfigurationError(
            "Jobs need the package procrastinate, which is not installed.",
            hint="Install it with `pip install 'webrag[workers]'`.",
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
    parts: "Parts",
    options: "WorkerOptions | None",
    on_turn: "Callable[[Turn, TurnEnd], None] | None",
) -> "JobWorker":
    """A worker for the collection.

    Raises:
        ConfigurationError: The extra `workers` is not installed.
    """
    queue = parts.jobs()
    from webrag.jobs.models import WorkerOptions
    from webrag.jobs.worker import JobWorker

    return JobWorker(
        queue, parts.crawler(), parts.acquirer, options or WorkerOptions(), on_turn=on_turn
    )
