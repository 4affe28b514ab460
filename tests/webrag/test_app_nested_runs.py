"""Runs inside another workflow end with it: nothing is stored afterwards and nothing is printed."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step
from workflows.errors import WorkflowCancelledByUser, WorkflowTimeoutError

from webrag import WebRAG, WebRAGWorkflow
from webrag.errors import InputError
from webrag.orchestration.events import DecisionEvent, ProgressEvent
from webrag.postgres.database import Database
from webrag.question import Question
from webrag.settings import Settings

QUESTION = "At which cone do glazes mature in salt kilns?"


class Manual:
    """A site that gives its first pages and keeps the reader waiting for the others.

    Attributes:
        has_asked: Set when a page is asked for that waits.
        go_on: Lets those pages come.
    """

    def __init__(self, start_site: Any) -> None:
        self.has_asked, self.go_on = threading.Event(), threading.Event()
        links = "".join(
            f'<p><a href="/kiln{n}">Kilns: glazes of cone {n}</a></p>' for n in range(5)
        )
        pages = {f"/kiln{n}": self._late(n) for n in range(5)}
        self.url = f"{start_site({'/': self._page('index', links), **pages})}/"

    def _page(self, name: str, links: str = "") -> str:
        text = f"<p>Page {name} is about kilns and the glazes that are fired in them.</p>"
        return f"<title>Kilns {name}</title><main><h1>Kilns {name}</h1>{text}{links}</main>"

    def _late(self, number: int) -> Any:
        def answer(_: Any) -> Any:
            self.has_asked.set()
            self.go_on.wait(60)
            return 200, {"Content-Type": "text/html"}, self._page(str(number))

        return answer

    async def wait_for_links(self) -> None:
        assert await asyncio.to_thread(self.has_asked.wait, 60)


@pytest.fixture
def manual(static_site: Any) -> Any:
    made = Manual(static_site)
    yield made
    made.go_on.set()


@pytest.fixture
async def rag(database: Database) -> AsyncIterator[WebRAG]:
    config = database.config
    settings = Settings(
        data_dir=config.data_dir, collection=config.collection, allow_hosts=["127.0.0.1"]
    )
    async with WebRAG(settings) as opened:
        yield opened


class Report(Workflow):
    """As the documentation has it; `fails` raises in the step, `leaves` stops to listen."""

    def __init__(self, rag: WebRAG, *, timeout: float | None = None, **ways: bool) -> None:
        super().__init__(timeout=timeout)
        self._rag, self._ways = rag, ways

    @step
    async def research(self, ctx: Context, ev: StartEvent) -> StopEvent:
        handler = self._rag.engine.start(Question.of(QUESTION, urls=ev.url, research_mode="deep"))
        try:
            async for event in handler.stream_events():
                ctx.write_event_to_stream(event)
                if "Scraping" in str(getattr(event, "detail", "")) and self._ways:
                    if self._ways.get("fails"):
                        raise LookupError("mine")
                    return StopEvent(result="left")
            return StopEvent(result=await handler)
        finally:
            if self._ways:
                await handler.cancel_run()


async def assert_it_is_over(
    rag: WebRAG, manual: Manual, capfd: Any, inner: WebRAGWorkflow | None = None
) -> None:
    # It is being ended, and a page that came meanwhile would rightly be stored.
    await (inner or rag.engine._workflow).settle()
    manual.go_on.set()
    await asyncio.sleep(1.5)
    status = await rag.status()
    await rag.close()
    assert status.documents <= 1
    assert capfd.readouterr().err == ""


async def test_timeout_of_the_outer_workflow(rag: WebRAG, manual: Manual, capfd: Any) -> None:
    outer = Report(rag, timeout=12)

    with pytest.raises(WorkflowTimeoutError):
        await outer.run(url=manual.url)

    assert manual.has_asked.is_set()
    await assert_it_is_over(rag, manual, capfd)


async def test_cancelled_outer_run(rag: WebRAG, manual: Manual, capfd: Any) -> None:
    handler = Report(rag).run(url=manual.url)
    await manual.wait_for_links()

    await handler.cancel_run()

    with pytest.raises(WorkflowCancelledByUser):
        await handler
    await assert_it_is_over(rag, manual, capfd)


class Composed(Workflow):
    """Runs a workflow composed of public parts in a step, and forgets to cancel it."""

    def __init__(self, rag: WebRAG, *, timeout: float | None = None) -> None:
        super().__init__(timeout=timeout)
        self.inner = WebRAGWorkflow(rag.components())

    @step
    async def research(self, ctx: Context, ev: StartEvent) -> StopEvent:
        handler = self.inner.run(question=Question.of(QUESTION, urls=ev.url, research_mode="deep"))
        async for event in handler.stream_events():
            ctx.write_event_to_stream(event)
        return StopEvent(result=await handler)


async def test_composed_workflow_ends_with_the_outer_run(
    rag: WebRAG, manual: Manual, capfd: Any
) -> None:
    composed = Composed(rag)
    handler = composed.run(url=manual.url)
    await manual.wait_for_links()

    await handler.cancel_run()

    with pytest.raises(WorkflowCancelledByUser):
        await handler
    await assert_it_is_over(rag, manual, capfd, composed.inner)


async def test_composed_workflow_streams_and_results_in_evidence(
    rag: WebRAG, manual: Manual
) -> None:
    manual.go_on.set()
    handler = Composed(rag).run(url=manual.url)

    kinds = {type(event) async for event in handler.stream_events()}

    assert {ProgressEvent, DecisionEvent} <= kinds
    assert (await handler).chunks


async def test_workflow_without_a_question_is_refused(rag: WebRAG) -> None:
    with pytest.raises(InputError, match=r"run\(question=Question.of"):
        WebRAGWorkflow(rag.components()).run()


async def test_error_of_the_outer_step(rag: WebRAG, manual: Manual, capfd: Any) -> None:
    with pytest.raises(LookupError, match="mine"):
        await Report(rag, fails=True).run(url=manual.url)

    await assert_it_is_over(rag, manual, capfd)


async def test_events_that_nobody_reads_any_more(rag: WebRAG, manual: Manual, capfd: Any) -> None:
    assert await Report(rag, leaves=True).run(url=manual.url) == "left"

    await assert_it_is_over(rag, manual, capfd)


@pytest.mark.parametrize("handled", [False, True], ids=["answer", "handler"])
async def test_cancelled_wait(rag: WebRAG, manual: Manual, capfd: Any, handled: bool) -> None:
    async def ask() -> object:
        if handled:
            return await rag.engine.start(
                Question.of(QUESTION, urls=manual.url, research_mode="deep")
            )
        return await rag.answer(manual.url, QUESTION, research_mode="deep")

    asking = asyncio.create_task(ask())
    await manual.wait_for_links()
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    await assert_it_is_over(rag, manual, capfd)


async def test_closing_while_a_run_goes_on(rag: WebRAG, manual: Manual, capfd: Any) -> None:
    handler = rag.engine.start(Question.of(QUESTION, urls=manual.url, research_mode="deep"))
    asking = asyncio.create_task(rag.answer(manual.url, QUESTION, research_mode="deep"))
    await manual.wait_for_links()

    await rag.close()

    with pytest.raises(WorkflowCancelledByUser):
        await handler
    with pytest.raises(InputError, match="was closed"):
        await asking
    assert capfd.readouterr().err == ""
