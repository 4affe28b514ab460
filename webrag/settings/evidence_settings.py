"""Settings of how evidence is found and judged. Values only; no I/O."""

from typing import Literal

from pydantic import BaseModel

from webrag.settings.fields import (
    HTTP_URL_TEXT,
    KEY_TEXT,
    HttpUrl,
    Seconds,
    Secret,
    Share,
    setting,
)

__all__ = [
    "AnalysisSettings",
    "RerankerSettings",
    "RetrievalSettings",
    "StoppingSettings",
]


class RetrievalSettings(BaseModel):
    """Retrieval."""

    retrieval_full_context_threshold: int = setting(
        30_000,
        "A corpus of at most this size is returned whole in `auto` mode; clamped to "
        "`RETRIEVAL_CONTEXT_BUDGET` with a warning.",
        read_by="search",
        unit="tokens",
        ge=0,
        le=10_000_000,
    )
    retrieval_context_budget: int = setting(
        40_000,
        "Parent text returned at most.",
        read_by="search",
        unit="tokens",
        ge=1,
        le=10_000_000,
    )
    retrieval_top_k_children_limit: int = setting(
        80,
        "Candidates taken from each of the dense and lexical searches, and kept after fusion.",
        read_by="search",
        unit="chunks",
        ge=1,
        le=1000,
    )
    retrieval_similarity_floor: Share = setting(
        0.3,
        "Least cosine of a candidate that only the dense search found.",
        read_by="search",
    )
    retrieval_depth_decay_rate: Share = setting(
        0.05,
        "Share of the score lost per link of distance from a page you named.",
        read_by="search",
    )
    retrieval_depth_floor: Share = setting(
        0.80,
        "Least multiplier that distance can cause.",
        read_by="search",
    )
    retrieval_hnsw_ef_search: int = setting(
        200,
        "Graph entries visited per dense search: recall against time.",
        read_by="search",
        unit="entries",
        ge=1,
        le=1000,
    )
    fusion_method: Literal["score", "rrf"] = setting(
        "score",
        "How dense and lexical results are merged: by score, or by reciprocal rank.",
        read_by="search",
    )


class RerankerSettings(BaseModel):
    """Reranking."""

    reranker_provider: Literal["auto", "zeroentropy", "cohere", "jina", "local", "none"] = setting(
        "auto",
        "Who reranks; `auto` takes ZeroEntropy, Cohere or Jina when its key is set, else the "
        "local reranker.",
        read_by="reranker",
    )
    reranker_api_key: Secret | None = setting(
        None,
        "Key for the provider named by `RERANKER_PROVIDER`.",
        read_by="reranker",
        allowed=KEY_TEXT,
        default_text="the provider's own variable",
    )
    zeroentropy_api_key: Secret | None = setting(
        None, "Key for ZeroEntropy.", read_by="reranker", allowed=KEY_TEXT, shared=True
    )
    cohere_api_key: Secret | None = setting(
        None, "Key for Cohere.", read_by="reranker", allowed=KEY_TEXT, shared=True
    )
    jina_api_key: Secret | None = setting(
        None, "Key for Jina.", read_by="reranker", allowed=KEY_TEXT, shared=True
    )
    reranker_model: str | None = setting(
        None,
        "Model name at the provider.",
        read_by="reranker",
        allowed="a model name",
        default_text="`zerank-2`, `rerank-v3.5` or `jina-reranker-v2-base-multilingual`",
        min_length=1,
        max_length=200,
    )
    reranker_top_n: int = setting(
        20, "Results kept after reranking.", read_by="reranker", unit="chunks", ge=1, le=1000
    )


class AnalysisSettings(BaseModel):
    """Question analysis and run limits."""

    decomposition_mode: Literal["llm", "rule_based", "none"] = setting(
        "llm",
        "How questions are split; `llm` needs `ORCHESTRATION_LLM_API_KEY`, or a server of your own "
        "in `ORCHESTRATION_LLM_BASE_URL`, and is `rule_based` without.",
        read_by="query analyser",
    )
    orchestration_llm_base_url: HttpUrl = setting(
        "https://api.openai.com/v1",
        "OpenAI-compatible server that splits questions.",
        read_by="query analyser",
        allowed=HTTP_URL_TEXT,
    )
    orchestration_llm_api_key: Secret | None = setting(
        None, "Key for that server.", read_by="query analyser", allowed=KEY_TEXT
    )
    orchestration_llm_model: str = setting(
        "gpt-4o-mini",
        "Model that splits questions.",
        read_by="query analyser",
        allowed="a model name",
        min_length=1,
        max_length=200,
    )
    orchestration_timeout: Seconds = setting(
        120.0,
        "Whole run; what was found by then is returned.",
        read_by="engine",
        unit="seconds",
    )


class StoppingSettings(BaseModel):
    """Judging evidence: when to stop and what to try next."""

    token_budget_saturation_ratio: float = setting(
        0.8,
        "Share of the context budget that counts as filled.",
        read_by="evaluator",
        gt=0,
        le=1,
        allow_inf_nan=False,
    )
    redundancy_ceiling: Share = setting(
        0.85,
        "Similarity of two passages (Jaccard of word 3-shingles) from which one is a repetition.",
        read_by="evaluator, merger",
    )
    score_cliff_rank_k: int = setting(
        5, "Rank compared with rank 1.", read_by="evaluator", ge=2, le=100
    )
    plateau_top_n: int = setting(
        10,
        "Scores that variance and mean are taken over.",
        read_by="evaluator",
        unit="scores",
        ge=3,
        le=100,
    )
    diminishing_return_delta: Share = setting(
        0.03,
        "Least relative growth of good passages that is worth another round.",
        read_by="evaluator",
    )
    score_cliff_threshold: Share | None = setting(
        None,
        "Gap between rank 1 and rank K that counts as a cliff.",
        read_by="evaluator",
        default_text="the score profile's (ZeroEntropy: `0.15`)",
    )
    plateau_variance_threshold: Share | None = setting(
        None,
        "Variance of the top scores below which they form a plateau.",
        read_by="evaluator",
        default_text="the score profile's (ZeroEntropy: `0.02`)",
    )
    mediocre_score_floor: Share | None = setting(
        None,
        "Means below it are mediocre.",
        read_by="evaluator",
        default_text="the score profile's (ZeroEntropy: `0.5`)",
    )
    confidence_floor: Share | None = setting(
        None,
        "Least mean confidence, for rerankers that give one.",
        read_by="evaluator",
        default_text="the score profile's (ZeroEntropy: `0.3`)",
    )
    near_top_delta: Share | None = setting(
        None,
        "Passages within this distance of the best score count as good.",
        read_by="evaluator",
        default_text="the score profile's (ZeroEntropy: `0.1`)",
    )
    answered_score: Share | None = setting(
        None,
        "Top score from which the evidence is taken to hold the answer.",
        read_by="evaluator",
        default_text="the score profile's (ZeroEntropy: `0.8`)",
    )
