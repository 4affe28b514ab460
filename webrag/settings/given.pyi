# Made by docs/generate_configuration.py: what `load_settings` takes, for editors and type checkers.
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from pydantic import SecretStr

from webrag.answering.models import AnswerConfig
from webrag.ingestion.models import FetchConfig
from webrag.orchestration.models import OrchestrationConfig
from webrag.retrieval.models import RetrievalConfig

class Given(TypedDict, total=False):
    database_url: SecretStr | str | None
    data_dir: Path | str
    collection: str
    database_pool_size: int
    database_acquire_timeout: float
    database_statement_timeout: float
    allow_hosts: Sequence[str]
    allow_dirs: Sequence[str]
    allow_logins: Sequence[str]
    login_headers: SecretStr | str | None
    recrawl_after: float | None
    keep_versions: int
    user_agent: str
    browser: Literal["auto", "always", "never"]
    browser_path: Path | str | None
    firecrawl_api_key: SecretStr | str | None
    firecrawl_api_url: str
    proxy: SecretStr | str | None
    models: Literal["bundled", "small", "medium"] | None
    embedding_provider: Literal["auto", "bundled", "openai", "openai_compatible", "huggingface", "fastembed"]
    embedding_model: str | None
    embedding_dimensions: int | None
    embedding_base_url: str | None
    embedding_api_key: SecretStr | str | None
    openai_api_key: SecretStr | str | None
    embedding_tokenizer_kind: Literal["tiktoken", "huggingface"]
    embedding_tokenizer_name: str
    retrieval_full_context_threshold: int
    retrieval_context_budget: int
    retrieval_top_k_children_limit: int
    retrieval_similarity_floor: float
    retrieval_depth_decay_rate: float
    retrieval_depth_floor: float
    retrieval_hnsw_ef_search: int
    reranker_provider: Literal["auto", "zeroentropy", "cohere", "jina", "local", "cross_encoder", "none"]
    reranker_api_key: SecretStr | str | None
    zeroentropy_api_key: SecretStr | str | None
    cohere_api_key: SecretStr | str | None
    jina_api_key: SecretStr | str | None
    reranker_model: str | None
    reranker_timeout: float
    decomposition_mode: Literal["llm", "rule_based", "none"]
    orchestration_llm_base_url: str
    orchestration_llm_api_key: SecretStr | str | None
    orchestration_llm_model: str
    orchestration_timeout: float
    max_expansion_depth: int
    max_candidates_per_iteration: int
    max_pages_per_run: int
    max_bytes_per_run: int
    expansion_scope: Literal["same_site", "allow_list", "any"]
    expansion_allowed_domains: Sequence[str]
    expansion_iteration_timeout: float
    token_budget_saturation_ratio: float
    redundancy_ceiling: float
    mcp_transport: Literal["stdio", "streamable-http"]
    mcp_host: str | None
    mcp_port: int
    mcp_stateless: bool
    mcp_auth_token: SecretStr | str | None
    mcp_public_url: str | None
    mcp_allowed_hosts: Sequence[str]
    mcp_allowed_origins: Sequence[str]
    mcp_response_token_budget: int
    mcp_tool_timeout: float
    mcp_soft_deadline: float
    mcp_log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
    mcp_structured_output: bool
    mcp_enable_forget: bool
    mcp_tokens_file: Path | str | None
    mcp_oauth_issuer: str | None
    mcp_oauth_audience: Sequence[str]
    mcp_oauth_jwks_url: str | None
    collection_claim: str | None
    mcp_max_open_collections: int
    mcp_calls_per_minute: int | None
    mcp_calls_per_day: int | None
    mcp_pages_per_day: int | None
    mcp_bytes_per_day: int | None
    agent_rerank_recency_boost: float
    agent_reflection_temperature: float
    tracing: Literal["off", "langsmith", "opentelemetry", "both"]
    langsmith_api_key: SecretStr | str | None
    langsmith_endpoint: str
    langsmith_project: str
    otel_exporter_otlp_endpoint: str | None
    answering: AnswerConfig | Mapping[str, Any]
    fetching: FetchConfig | Mapping[str, Any]
    orchestration: OrchestrationConfig | Mapping[str, Any]
    retrieval: RetrievalConfig | Mapping[str, Any]
    score_thresholds: Mapping[str, float]
