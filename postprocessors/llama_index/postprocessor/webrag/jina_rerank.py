"""Reranks nodes with Jina; the request's form is here, the policy is shared."""

from typing import Any, ClassVar

from llama_index.core.bridge.pydantic import Field
from llama_index.postprocessor.webrag.remote_rerank import RemoteRerank
from typing_extensions import override


class JinaRerank(RemoteRerank):
    """Orders nodes by Jina's relevance.

    The instruction is put before the question, as Jina has no field for it. Everything else is
    as `RemoteRerank` describes it.

    Example:
        >>> rerank = JinaRerank(api_key=key, top_n=5)
        >>> nodes = await rerank.apostprocess_nodes(nodes, query_str="how is the port changed?")
    """

    provider: ClassVar[str] = "Jina"
    path: ClassVar[str] = "/rerank"
    key_variable: ClassVar[str] = "JINAAI_API_KEY"

    model: str = Field(
        default="jina-reranker-v2-base-multilingual",
        min_length=1,
        description="Model name at Jina.",
    )
    base_url: str = Field(default="https://api.jina.ai/v1", description="Address before /rerank.")

    @classmethod
    @override
    def class_name(cls) -> str:
        return "JinaRerank"

    @override
    def _payload(self, query: str, documents: list[str], top_n: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "query": self._instructed(query),
            "documents": documents,
            "top_n": top_n,
            "return_documents": False,
        }
