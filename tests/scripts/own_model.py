"""A model of one's own writes the answers of `ask`."""

from typing import Any

from llama_index.core.llms import (
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_completion_callback

from webrag import ManagerResult, Settings, WebRAG


class Silent(CustomLLM):
    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="silent", context_window=8_000, num_output=100)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text="no sentence")

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        yield CompletionResponse(text="no sentence", delta="no sentence")


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings, llm=Silent()) as rag:
        result: ManagerResult = await rag.ask(
            "How long does an idle connection stay open?", url=url
        )
        assert all("95 seconds" not in part.text or part.citations for part in result.parts)
