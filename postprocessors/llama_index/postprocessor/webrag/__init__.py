"""Node postprocessors: rerankers with and without a service, and filters that need neither."""

from llama_index.postprocessor.webrag.adjacent_context import AdjacentContext
from llama_index.postprocessor.webrag.cohere_rerank import CohereRerank
from llama_index.postprocessor.webrag.depth_decay import DepthDecay
from llama_index.postprocessor.webrag.jina_rerank import JinaRerank
from llama_index.postprocessor.webrag.local_rerank import LocalRerank
from llama_index.postprocessor.webrag.recency import RecencyBoost
from llama_index.postprocessor.webrag.redundancy import RedundancyFilter
from llama_index.postprocessor.webrag.remote_rerank import RemoteRerank
from llama_index.postprocessor.webrag.rerank_errors import (
    RerankCircuitOpenError,
    RerankError,
    RerankInputError,
    RerankRefusedError,
    RerankResponseError,
    RerankTimeoutError,
    RerankUnavailableError,
)
from llama_index.postprocessor.webrag.scaled_scores import ScaledScores
from llama_index.postprocessor.webrag.token_budget import TokenBudget
from llama_index.postprocessor.webrag.token_encoder import TokenEncoder
from llama_index.postprocessor.webrag.zeroentropy_rerank import ZeroEntropyRerank

__all__ = [
    "AdjacentContext",
    "CohereRerank",
    "DepthDecay",
    "JinaRerank",
    "LocalRerank",
    "RecencyBoost",
    "RedundancyFilter",
    "RemoteRerank",
    "RerankCircuitOpenError",
    "RerankError",
    "RerankInputError",
    "RerankRefusedError",
    "RerankResponseError",
    "RerankTimeoutError",
    "RerankUnavailableError",
    "ScaledScores",
    "TokenBudget",
    "TokenEncoder",
    "ZeroEntropyRerank",
]
