"""Reranks nodes with ZeroEntropy; the request's form is here, the policy is shared."""

from typing import Any, ClassVar, Literal

import httpx
from llama_index.core.bridge.pydantic import Field
from llama_index.postprocessor.webrag.remote_rerank import RemoteRerank
from llama_index.postprocessor.webrag.rerank_service import Send
from typing_extensions import override
from zeroentropy import AsyncZeroEntropy


class ZeroEntropyRerank(RemoteRerank):
    """Orders nodes by ZeroEntropy's calibrated relevance: .8 means relevant in 80 % of cases.

    The instruction is put before the question, as ZeroEntropy has no field for it. Everything else
    is as `RemoteRerank` describes it.

    Example:
        >>> rerank = ZeroEntropyRerank(api_key=key, top_n=5, instruction="Prefer code examples")
        >>> nodes = await rerank.apostprocess_nodes(nodes, query_str="how is the port changed?")
    """

    provider: ClassVar[str] = "ZeroEntropy"
    path: ClassVar[str] = "/models/rerank"
    key_variable: ClassVar[str] = "ZEROENTROPY_API_KEY"

    model: str = Field(
        default="zerank-2", min_length=1, description="zerank-2, zerank-1 or zerank-1-small."
    )
    base_url: str = Field(
        default="https://api.zeroentropy.dev/v1", description="Address before /models/rerank."
    )
    latency: Literal["fast", "slow"] | None = Field(
        default="fast",
        description="`fast` is refused beyond the rate limit rather than taking 10 s and more; "
        "None falls back to slow.",
    )
    instruction_field: str | None = Field(
        default=None,
        description="Field of the request for the instruction, where a service has one; the "
        "published interface has none.",
    )

    @override
    def _payload(self, query: str, documents: list[str], top_n: int) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self.model, "documents": documents, "top_n": top_n}
        if self.latency is not None:
            payload["latency"] = self.latency
        if self.instruction_field is None:
            return {**payload, "query": self._instructed(query)}
        if self.instruction:
            payload[self.instruction_field] = self.instruction
        return {**payload, "query": query}

    @override
    def _sender(self, payload: dict[str, Any]) -> Send:
        key = self.secret
        own = {name: value for name, value in payload.items() if name == self.instruction_field}
        published = {name: value for name, value in payload.items() if name not in own}

        async def send(client: httpx.AsyncClient) -> None:
            service = AsyncZeroEntropy(
                api_key=key, base_url=self.base_url, http_client=client, max_retries=0, timeout=None
            )
            await service.models.rerank(**published, extra_body=own or None)

        return send
