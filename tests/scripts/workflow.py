"""The loop inside a workflow of one's own, watched while it runs."""

from typing import Any

from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step

from webrag import OrchestrationResult, Question, Settings, WebRAG, WebRAGWorkflow


class Asked(StartEvent):
    question: str
    url: str


class Report(Workflow):
    def __init__(self, research: WebRAGWorkflow, **options: Any) -> None:
        super().__init__(**options)
        self._research = research

    @step
    async def ask(self, ctx: Context[Any], ev: Asked) -> StopEvent:
        question = Question.of(ev.question, urls=ev.url, research_mode="deep")
        handler = self._research.run(question=question)
        async for event in handler.stream_events():
            ctx.write_event_to_stream(event)
        result: OrchestrationResult = await handler
        return StopEvent(result=f"{result.confidence_band}: {len(result.chunks)}")


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        report = Report(WebRAGWorkflow(rag.components()), timeout=120)
        handler = report.run(
            start_event=Asked(question="How long does an idle connection stay open?", url=url)
        )
        seen = {type(event).__name__ async for event in handler.stream_events()}
        assert "ProgressEvent" in seen
        assert str(await handler).startswith("high")
