"""Events of LlamaIndex's instrumentation, heard while WebRAG works."""

from typing import Any

from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent
from llama_index_instrumentation import get_dispatcher

from webrag import Settings, WebRAG


class Scores(BaseEventHandler):
    heard: list[float | None] = []  # noqa: RUF012  a field of pydantic

    @classmethod
    def class_name(cls) -> str:
        return "Scores"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if isinstance(event, ReRankEndEvent):
            self.heard.extend(node.score for node in event.nodes)


async def main(settings: Settings, url: str) -> None:
    handler = Scores()
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        async with WebRAG(settings) as rag:
            await rag.query_engine(url).aquery("How long does an idle connection stay open?")
    finally:
        dispatcher.event_handlers.remove(handler)
    assert handler.heard
