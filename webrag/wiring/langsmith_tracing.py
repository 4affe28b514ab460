"""Sends the steps of an answer to LangSmith; imported only when that is asked for."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

from langsmith import Client, traceable
from langsmith.run_helpers import tracing_context
from llama_index.postprocessor.webrag.service_calls import session_proxies
from requests import Session  # noqa: TID251 - langsmith takes no other client

_KINDS: Final[dict[str, Literal["retriever", "llm"]]] = {
    "retrieve": "retriever",
    "synthesize": "llm",
    "reflect": "llm",
}
_FLUSH_S: Final = 5.0


class LangSmithTracer:
    """Wraps each step in LangSmith's `traceable`.

    Recorded are names, times, errors, questions and addresses, and of results only counts and
    scores: page text stays here.
    """

    def __init__(
        self, *, endpoint: str, api_key: str, project: str, proxy: str | None = None
    ) -> None:
        session = Session()
        session.trust_env, session.proxies = session_proxies(proxy)
        self._client = Client(
            api_url=endpoint, api_key=api_key, auto_batch_tracing=True, session=session
        )
        self._project = project

    async def run(
        self, step: str, work: Callable[[], Awaitable[Any]], inputs: Mapping[str, Any]
    ) -> Any:
        """What the work returns, in a span under that of the step around it."""

        @traceable(
            _KINDS.get(step, "chain"),
            name=f"webrag.{step}",
            client=self._client,
            project_name=self._project,
            process_outputs=_summary,
        )
        async def traced(**_: Any) -> Any:
            return await work()

        with tracing_context(enabled=True, client=self._client, project_name=self._project):
            return await traced(**inputs)

    async def aclose(self) -> None:
        """Send what is left, for five seconds at most."""
        # Not the client's close: it waits for ever when its sender has died, as langsmith 0.15's
        # does after an unexpected answer to its first request. The sender is a daemon thread.
        await asyncio.to_thread(self._client.flush, _FLUSH_S)


def _summary(outputs: Any) -> dict[str, Any]:
    """Numbers and labels of a step's result."""
    result = outputs.get("output") if isinstance(outputs, dict) else outputs
    known = ("confidence", "final_reason", "method", "gave_up", "coherence", "score", "state")
    parts = result if isinstance(result, tuple) else (result,)
    return {
        name: value
        for part in parts
        for name in known
        if isinstance(value := getattr(part, name, None), str | int | float | bool)
    }
