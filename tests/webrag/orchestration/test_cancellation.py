"""A hundred runs cancelled at random moments leave nothing behind; every part is real."""

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.llms.openai_like import OpenAILike

from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.postgres.database import Database
from webrag.question import Question

from .conftest import MANUAL, TWO_LINKS_AWAY, Lab
from .fake_services import FakeServices, running_services

RUNS = 100
AT_ONCE = 20
LATEST_S = 1.2
ANALYSIS = {
    "sub_queries": ["replica behind the leader", "expelled replica"],
    "query_type": "factual",
    "complexity": "moderate",
    "key_concepts": ["replica"],
}


class OpenRequests:
    """How many requests a site is answering."""

    def __init__(self) -> None:
        self.count = 0
        self.mutex = threading.Lock()

    def around(self, text: str) -> Callable[[Any], Any]:
        def route(_request: Any) -> Any:
            with self.mutex:
                self.count += 1
            time.sleep(0.01)
            with self.mutex:
                self.count -= 1
            return 200, {"Content-Type": "text/html"}, text

        return route


def numbered(text: str, run: int) -> str:
    """A page of a run's own: pages with the same text would be stored once."""
    return text.replace('href="/', f'href="/{run}/').replace("</h1>", f" {run}</h1>")


@pytest.fixture
def services() -> Iterator[FakeServices]:
    with running_services() as running:
        running.texts = [json.dumps(ANALYSIS)]
        running.delay_s = 0.02
        yield running


async def in_use(database: Database) -> dict[str, int]:
    """What the server holds for this collection, besides the connection that asks."""
    async with database.connection() as connection:
        cursor = await connection.execute(
            """
            select count(*) filter (where a.state <> 'idle'),
                   count(l.pid) filter (where l.locktype = 'advisory')
            from pg_stat_activity a left join pg_locks l using (pid)
            where a.pid <> pg_backend_pid() and position(%s in a.query) > 0
            """,
            (database.config.collection,),
        )
        row = await cursor.fetchone()
    assert row is not None
    return {"busy backends": row[0], "advisory locks": row[1]}


async def test_cancelled_runs_leave_no_task_connection_request_or_lock(
    lab: Lab, database: Database, static_site: Any, services: FakeServices
) -> None:
    opened = OpenRequests()
    site = static_site(
        {
            f"/{run}{path}": opened.around(numbered(text, run))
            for run in range(RUNS + 1)
            for path, text in MANUAL.items()
        }
    )
    llm = OpenAILike(model="m", api_base=services.url, api_key="none", is_chat_model=True)
    engine = lab.engine(analyzer=QueryAnalyzer(llm=llm))
    await engine.run(Question.of(TWO_LINKS_AWAY, urls=f"{site}/{RUNS}/", research_mode="deep"))
    moments = random.Random(11)
    before = asyncio.all_tasks()

    async def cancelled(number: int) -> str:
        run = asyncio.create_task(
            engine.run(Question.of(TWO_LINKS_AWAY, urls=f"{site}/{number}/", research_mode="deep"))
        )
        await asyncio.wait([run], timeout=moments.uniform(0, LATEST_S))
        run.cancel()
        outcome = (await asyncio.gather(run, return_exceptions=True))[0]
        return type(outcome).__name__

    ended: list[str] = []
    for first in range(0, RUNS, AT_ONCE):
        ended += await asyncio.gather(*(cancelled(first + n) for n in range(AT_ONCE)))

    pool = await database._pool()
    async with asyncio.timeout(10):
        while opened.count or services.open_requests or asyncio.all_tasks() - before:
            await asyncio.sleep(0.01)
        while pool.get_stats()["pool_available"] < pool.get_stats()["pool_size"]:
            await asyncio.sleep(0.01)
    assert set(ended) <= {"CancelledError", "OrchestrationResult"}
    assert ended.count("CancelledError") > RUNS / 4
    assert await in_use(database) == {"busy backends": 0, "advisory locks": 0}
    last = await engine.run(
        Question.of(TWO_LINKS_AWAY, urls=f"{site}/{RUNS}/", research_mode="deep")
    )
    assert last.chunks
    # Else the loop ends with its connections open, and the next test is told of them.
    await llm._get_aclient().close()
