"""Reranks nodes with Cohere's second API; the request's form is here, the policy is shared."""

from typing import Any, ClassVar

import httpx
from cohere import AsyncClientV2
from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.postprocessor import cohere_rerank as stock
from llama_index.postprocessor.webrag.remote_rerank import RemoteRerank
from llama_index.postprocessor.webrag.rerank_service import Send
from typing_extensions import override


class CohereRerank(RemoteRerank, stock.CohereRerank):  # type: ignore[misc] # top_n may be None
    """Orders nodes by Cohere's relevance: LlamaIndex's class over Cohere's asynchronous client.

    The stock class (0.10.0) asks with a blocking client, which would hold the event loop, and
    retries ten times with pauses of four seconds and more. The instruction is put before the
    question, as Cohere has no field for it. Everything else is as `RemoteRerank` describes it.

    Example:
        >>> rerank = CohereRerank(api_key=key, top_n=5)
        >>> nodes = await rerank.apostprocess_nodes(nodes, query_str="how is the port changed?")
    """

    provider: ClassVar[str] = "Cohere"
    path: ClassVar[str] = "/v2/rerank"
    key_variable: ClassVar[str] = "COHERE_API_KEY"

    model: str = Field(default="rerank-v3.5", min_length=1, description="Model name at Cohere.")
    base_url: str = Field(
        default="https://api.cohere.com", description="Address before /v2/rerank."
    )
    max_tokens_per_doc: int = Field(
        default=4096, ge=1, description="Tokens of one node that Cohere reads."
    )

    # Asked for again by the policy of `RemoteRerank` alone.
    max_retries: int = Field(default=0, ge=0, le=0, description="Retries of the package: none.")

    def __init__(self, **fields: Any) -> None:
        # Not the stock class's, which makes a client from the environment.
        BaseNodePostprocessor.__init__(self, **fields)

    @override
    def _payload(self, query: str, documents: list[str], top_n: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "query": self._instructed(query),
            "documents": documents,
            "top_n": top_n,
            "max_tokens_per_doc": self.max_tokens_per_doc,
        }

    @override
    def _sender(self, payload: dict[str, Any]) -> Send:
        key = self.secret

        async def send(client: httpx.AsyncClient) -> None:
            service = AsyncClientV2(
                key,
                base_url=self.base_url,
                httpx_client=client,
                log_warning_experimental_features=False,
            )
            await service.rerank(**payload, request_options={"max_retries": 0})

        return send
