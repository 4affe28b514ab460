"""An agent with WebRAG's tools; its model plays a script."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentOutput, FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM

from webrag import Settings, WebRAG, WebRAGToolSpec


async def main(settings: Settings, url: str) -> None:
    def play(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        if messages[-1].role == "tool":
            return ChatMessage(role="assistant", content=str(messages[-1].content))
        arguments = {"url": url, "query": "How long does an idle connection stay open?"}
        call = ToolCallBlock(tool_call_id="1", tool_name="answer", tool_kwargs=arguments)
        return ChatMessage(role="assistant", blocks=[call])

    async with WebRAG(settings) as rag:
        tools = WebRAGToolSpec(rag).to_tool_list(spec_functions=["answer", "read"])
        agent = FunctionAgent(
            tools=[*tools], llm=MockFunctionCallingLLM(response_generator=play), streaming=False
        )
        output = await agent.run("How long does an idle connection stay open?")
        assert isinstance(output, AgentOutput)
        assert "95 seconds" in str(output)
