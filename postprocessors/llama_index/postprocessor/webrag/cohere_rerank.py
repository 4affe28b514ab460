"""Reranks nodes with Cohere's second API; the request's form is here, the policy is shared."""

from typing import Any, ClassVar

from llama_index.core.bridge.pydantic import Field
from llama_index.postprocessor.webrag.remote_rerank import RemoteRerank
from typing_extensions import override

__all__ = ["CohereRerank"]


class CohereRerank(RemoteRerank):
    """Orders nodes by Cohere's relevance.

    The instruction is put before the question, as Cohere has no field for it. Everything else is
    as `RemoteRerank` describes it.

    Example:
        >>> rerank = CohereRerank(api_key=key, top_n=5)
        >>> nodes = await rerank.apostprocess_nodes(nodes, query_str="how is the port changed?")
    """

    provider: ClassVar[str] = "Cohere"
    path: ClassVar[str] = "/v2/rerank"

    model: str = Field(default="rerank-v3.5", min_length=1, description="Model name at Cohere.")
    base_url: str = Field(
        default="https://api.cohere.com", description="Address before /v2/rerank."
    )
    max_tokens_per_doc: int = Field(
        default=4096, ge=1, description="Tokens of one node that Cohere reads."
    )

    @classmethod
    @override
    def class_name(cls) -> str:
        return "CohereRerank"

    @override
    def _payload(self, query: str, documents: list[str], top_n: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "query": self._instructed(query),
            "documents": documents,
            "top_n": top_n,
            "max_tokens_per_doc": self.max_tokens_per_doc,
        }
