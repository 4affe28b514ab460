"""Queues and workers of the real parts over real Postgres."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.webrag.crawling.crawl_lab import CrawlLab
from tests.webrag.ingestion.conftest import make_fetcher as make_fetcher
from tests.webrag.orchestration.conftest import gate as gate
from tests.webrag.orchestration.conftest import lab as lab
from webrag.crawling.crawl import SiteCrawler
from webrag.jobs.models import WorkerOptions
from webrag.jobs.queue import JobQueue
from webrag.jobs.worker import JobWorker, Tools
from webrag.postgres.database import Database

QUICK = WorkerOptions(heartbeat_s=0.5, stalled_s=20, poll_s=0.2, grace_s=5)


@pytest.fixture
def crawl_lab(lab: Any, database: Database) -> CrawlLab:
    return CrawlLab(lab, database)


@pytest.fixture
def queue(lab: Any, database: Database) -> JobQueue:
    return JobQueue(database)


@pytest.fixture
def make_worker(lab: Any, database: Database, queue: JobQueue) -> Callable[..., JobWorker]:
    """Makes workers: `make_worker(turn_s=1)`."""

    async def tools() -> Tools:
        return Tools(SiteCrawler(lab.acquirer, database), lab.acquirer)

    def make(**options: Any) -> JobWorker:
        return JobWorker(queue, tools, QUICK.model_copy(update=options))

    return make


@pytest.fixture
async def working(make_worker: Callable[..., JobWorker]) -> AsyncIterator[Callable[..., Any]]:
    """Starts workers that are stopped at the end of the test: `working(turn_s=1)`."""
    tasks: list[asyncio.Task[None]] = []

    def start(**options: Any) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(make_worker(**options).run()))
        return tasks[-1]

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
