"""Node postprocessors: rerankers with and without a service, and filters that need neither.

Each is imported when it is asked for: the packages of the services take seconds to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llama_index.postprocessor.webrag.adjacent_context import AdjacentContext
    from llama_index.postprocessor.webrag.age_and_depth import DepthDecay, RecencyBoost
    from llama_index.postprocessor.webrag.cohere_rerank import CohereRerank
    from llama_index.postprocessor.webrag.cross_encoder_rerank import CrossEncoderRerank
    from llama_index.postprocessor.webrag.jina_rerank import JinaRerank
    from llama_index.postprocessor.webrag.local_rerank import LocalRerank
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
    from llama_index.postprocessor.webrag.token_vectors import TokenEncoder
    from llama_index.postprocessor.webrag.zeroentropy_rerank import ZeroEntropyRerank

__all__ = [
    "AdjacentContext",
    "CohereRerank",
    "CrossEncoderRerank",
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

_HOMES = {
    "AdjacentContext": "adjacent_context",
    "CohereRerank": "cohere_rerank",
    "CrossEncoderRerank": "cross_encoder_rerank",
    "DepthDecay": "age_and_depth",
    "JinaRerank": "jina_rerank",
    "LocalRerank": "local_rerank",
    "RecencyBoost": "age_and_depth",
    "RedundancyFilter": "redundancy",
    "RemoteRerank": "remote_rerank",
    "ScaledScores": "scaled_scores",
    "TokenBudget": "token_budget",
    "TokenEncoder": "token_vectors",
    "ZeroEntropyRerank": "zeroentropy_rerank",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, 'rerank_errors')}")
    return getattr(home, name)
