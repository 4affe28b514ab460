"""Node postprocessors: rerankers with and without a service, and filters that need neither.

Each is imported when it is asked for: the packages of the services take seconds to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llama_index.postprocessor.webrag.cohere_rerank import CohereRerank
    from llama_index.postprocessor.webrag.filters import (
        AdjacentContext,
        DepthDecay,
        RecencyBoost,
        RedundancyFilter,
        ScaledScores,
        TokenBudget,
    )
    from llama_index.postprocessor.webrag.local_rerank import CrossEncoderRerank, LocalRerank
    from llama_index.postprocessor.webrag.local_scoring import CrossEncoderScorer
    from llama_index.postprocessor.webrag.remote_rerank import JinaRerank, RemoteRerank
    from llama_index.postprocessor.webrag.rerank_service import (
        RerankCircuitOpenError,
        RerankError,
        RerankInputError,
        RerankRefusedError,
        RerankResponseError,
        RerankTimeoutError,
        RerankUnavailableError,
    )
    from llama_index.postprocessor.webrag.token_vectors import TokenEncoder
    from llama_index.postprocessor.webrag.zeroentropy_rerank import ZeroEntropyRerank

__all__ = [
    "AdjacentContext",
    "CohereRerank",
    "CrossEncoderRerank",
    "CrossEncoderScorer",
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
    "CohereRerank": "cohere_rerank",
    "CrossEncoderRerank": "local_rerank",
    "CrossEncoderScorer": "local_scoring",
    "JinaRerank": "remote_rerank",
    "LocalRerank": "local_rerank",
    "RemoteRerank": "remote_rerank",
    "TokenEncoder": "token_vectors",
    "ZeroEntropyRerank": "zeroentropy_rerank",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "rerank_service" if name.endswith("Error") else _HOMES.get(name, "filters")
    return getattr(import_module(f"{__name__}.{home}"), name)
