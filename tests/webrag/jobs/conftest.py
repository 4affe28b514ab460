"""Queues and workers of the real parts over real Postgres."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from llama_index.core.bridge.pydantic import PrivateAttr

from tests.corpus_fixtures import CountingEmbedding
from tests.webrag.crawling.crawl_lab import CrawlLab
from tests.webrag.ingestion.conftest import make_fetcher as make_fetcher
from tests.webrag.orchestration.conftest import gate as gate
from tests.webrag.orchestration.conftest import lab as lab
from webrag.crawling.crawl import SiteCrawler
from webrag.crawling.queue import CrawlState
from webrag.embedding.embedder import Embedder
from webrag.errors import ConfigurationError
from webrag.jobs.models import WorkerOptions
from webrag.jobs.queue import JobQueue
from webrag.jobs.worker import JobWorker, Tools
from webrag.postgres.database import Database
from webrag.retrieval.citation_checks import Verifier

QUICK = WorkerOptions(heartbeat_s=0.5, stalled_s=20, poll_s=0.2, grace_s=5)


@pytest.fixture
def crawl_lab(lab: Any, database: Database) -> CrawlLab:
    return CrawlLab(lab, CrawlState(database))


@pytest.fixture
def queue(lab: Any, database: Database) -> JobQueue:
    return JobQueue(database)


class HeldEmbedding(CountingEmbedding):
    """Embeds as long as its gate is open."""

    _gate: threading.Event = PrivateAttr(default_factory=threading.Event)

    @property
    def gate(self) -> threading.Event:
        return self._gate

    def _get_text_embedding(self, text: str) -> Any:
        vector = super()._get_text_embedding(text)
        self._gate.wait(30)
        return vector


@pytest.fixture
def new_model() -> HeldEmbedding:
    """The model that workers embed stored text with again, 16 dimensions."""
    model = HeldEmbedding(model_name="new/model")
    model.gate.set()
    return model


@pytest.fixture
def make_worker(
    lab: Any, database: Database, queue: JobQueue, new_model: HeldEmbedding
) -> Callable[..., JobWorker]:
    """Makes workers: `make_worker(turn_s=1)`."""

    @asynccontextmanager
    async def load(wanted: tuple[str, int]) -> AsyncIterator[Embedder]:
        if wanted[0] == "unknown":
            raise ConfigurationError("No such model is known here.")
        yield Embedder(new_model, wanted[1])

    async def tools() -> Tools:
        crawler = SiteCrawler(lab.acquirer, CrawlState(database))
        verifier = Verifier(lab.corpus, lab.acquirer.ingestion)
        return Tools(crawler, lab.acquirer, verifier, load)

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
