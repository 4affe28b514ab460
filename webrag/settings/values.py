"""Every setting with its type, range and default, in the order of the reference; no I/O.

What a configuration of a layer below declares is taken from there.
"""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from webrag.answering.models import AnswerConfig
from webrag.frozen import FrozenModel, Seconds, Share
from webrag.ingestion.models import FetchConfig, FirecrawlConfig
from webrag.orchestration.models import ExpansionConfig, OrchestrationConfig, ScoreProfile
from webrag.postgres.config import DatabaseConfig
from webrag.presentation.brief.models import BriefConfig
from webrag.retrieval.models import RetrievalConfig
from webrag.settings.variables import (
    AbsolutePath,
    CommaList,
    DirectoryList,
    HostList,
    HttpUrl,
    LoginHeaders,
    LogLevel,
    ModelName,
    OriginList,
    PathName,
    PostgresUrl,
    ProxyUrl,
    SecondsOrNever,
    Secret,
    SecureUrl,
    ServedModelName,
    setting,
    taken,
    user_folder,
)

if TYPE_CHECKING:
    from pydantic.config import JsonDict

LOCAL_EMBEDDING_MODEL = "BAAI/bge-small-en-v1.5"
LOCAL_RERANKER_MODEL = "Xenova/ms-marco-MiniLM-L-6-v2"
OPENAI_EMBEDDING_MODEL = "text-embedding-3-small"
OPENAI_URL = "https://api.openai.com/v1"

PARTS = ("answering", "fetching", "orchestration", "retrieval")
"""Settings that hold the fields of a configuration that no other setting fills."""

_FIRECRAWL = FirecrawlConfig()


def _limit(description: str) -> int | None:
    limit: int | None = setting(
        None, description, allowed="a whole number from 1", default_text="no limit", ge=1, le=10**15
    )
    return limit


def _part(default: FrozenModel) -> Any:
    """Declare the fields of a configuration that no setting fills; they are set in Python."""
    kind = type(default).__name__
    extra: JsonDict = {"part": True, "allowed": f"a {kind}, or a dictionary with fields of it"}
    return Field(default, description=type(default).__doc__, json_schema_extra=extra)


class Values(BaseSettings):
    """Every setting; `begins` names the section of the reference that starts there."""

    # Only `Settings` is ever made.
    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", defer_build=True, validate_default=False
    )

    database_url: PostgresUrl | None = setting(
        None,
        "Postgres 15 or newer with pgvector 0.8 or newer to use instead of the embedded server.",
        begins="Storage",
        default_text="not set: embedded server",
        shared=True,
    )
    data_dir: AbsolutePath = setting(
        lambda: user_folder("data"),
        DatabaseConfig.model_fields["data_dir"].description or "",
        env="WEBRAG_DATA_DIR",
        default_text="the user's data folder, `$XDG_DATA_HOME/webrag` on Linux",
    )
    collection: str = taken(
        "collection",
        DatabaseConfig,
        env="WEBRAG_COLLECTION",
        allowed="1 to 48 lower-case letters, digits and underscores, not starting with a digit",
        pattern=r"^[a-z_][a-z0-9_]{0,47}$",
    )
    database_pool_size: int = taken("pool_max_size", DatabaseConfig, is_variable=False)
    database_acquire_timeout: float = taken("acquire_timeout_s", DatabaseConfig, is_variable=False)
    database_statement_timeout: float = taken(
        "statement_timeout_s", DatabaseConfig, is_variable=False
    )

    allow_hosts: HostList = taken(
        "allowed_hosts", FetchConfig, FirecrawlConfig, env="WEBRAG_ALLOW_HOSTS", begins="Fetching"
    )
    allow_dirs: DirectoryList = setting(
        (),
        "Folders whose files may be read without being named by the user, as over MCP.",
        env="WEBRAG_ALLOW_DIRS",
    )
    allow_logins: HostList = setting(
        (),
        "Hosts whose logins are also used for others than who stored them: over MCP, in the"
        " browser's page and by workers.",
        env="WEBRAG_ALLOW_LOGINS",
    )
    login_headers: LoginHeaders | None = setting(
        None,
        "Headers that pages of a host are asked for with, as a login; sent to that host alone,"
        " over https.",
        env="WEBRAG_LOGIN_HEADERS",
    )
    recrawl_after: SecondsOrNever = setting(
        _FIRECRAWL.max_age_s,
        "Age from which a stored page is checked with its site before it is used.",
        env="WEBRAG_RECRAWL_AFTER",
        ge=0,
        allow_inf_nan=False,
    )
    keep_versions: int = setting(
        0,
        "Earlier texts kept of a page that changes, for `as_of` and `verify`.",
        env="WEBRAG_KEEP_VERSIONS",
        ge=0,
        le=1_000,
    )
    user_agent: str = taken("user_agent", FetchConfig, env="WEBRAG_USER_AGENT")
    browser: Literal["auto", "always", "never"] = setting(
        "auto",
        "Which pages are drawn in a browser: `auto` those whose text scripts write, when the "
        "`browser` extra and Chromium are installed; `always` every page; `never` none.",
        env="WEBRAG_BROWSER",
    )
    browser_path: PathName | None = setting(
        None,
        "The Chromium or Chrome that draws pages; without it the first one on the `PATH`.",
        is_variable=False,
    )
    firecrawl_api_key: Secret | None = setting(
        None,
        "Fetches through Firecrawl; the built-in fetcher serves while Firecrawl cannot.",
        shared=True,
    )
    firecrawl_api_url: HttpUrl = setting(
        _FIRECRAWL.api_url,
        "Firecrawl server; another one than the default is used also without a key.",
        shared=True,
    )
    proxy: ProxyUrl | None = setting(
        None,
        "Proxy for every service that gets a key (Firecrawl, embeddings, language models, "
        "rerankers, tracing), but not for servers on this machine; `environment` takes what "
        "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say. Pages are always fetched directly.",
        env="WEBRAG_PROXY",
        default_text="not set: direct connections, whatever the environment says",
    )

    models: Literal["bundled", "small", "medium"] | None = setting(
        None,
        "Embedding and reranker of this machine, chosen together; docs/guide/providers.md lists "
        "what each name stands for. Weights are downloaded once. `EMBEDDING_PROVIDER`, "
        "`EMBEDDING_MODEL`, `RERANKER_PROVIDER` and `RERANKER_MODEL` win over their part of it.",
        env="WEBRAG_MODELS",
        begins="Embedding",
    )
    embedding_provider: Literal[
        "auto", "bundled", "openai", "openai_compatible", "huggingface", "fastembed"
    ] = setting(
        "auto",
        "Where vectors come from; `auto` is OpenAI with a key, else the bundled model, and keeps "
        "to what an existing corpus was made with; `huggingface` and `fastembed` need the extra of "
        "that name.",
    )
    embedding_model: ModelName | None = setting(
        None,
        "Model name at the provider; for `huggingface` and `fastembed` also a folder.",
        default_text=f"the provider's: `{OPENAI_EMBEDDING_MODEL}` for OpenAI and servers, "
        f"`{LOCAL_EMBEDDING_MODEL}` for models of this process",
    )
    embedding_dimensions: int | None = setting(
        None, "Vector size to ask for.", default_text="the model's own", ge=1, le=4000
    )
    embedding_base_url: HttpUrl | None = setting(
        None, "OpenAI-compatible server, such as Ollama, vLLM or TEI, for `openai_compatible`."
    )
    embedding_api_key: Secret | None = setting(
        None, "Key for the embedding server.", default_text="`OPENAI_API_KEY`"
    )
    openai_api_key: Secret | None = setting(
        None, "Key for OpenAI, used wherever no narrower key is set.", shared=True
    )
    embedding_tokenizer_kind: Literal["tiktoken", "huggingface"] = setting(
        "tiktoken",
        "Library that counts tokens for chunks, budgets and requests.",
        is_variable=False,
    )
    embedding_tokenizer_name: str = setting(
        "cl100k_base",
        "For tiktoken `cl100k_base` or `o200k_base`, which need no download; for Hugging Face a "
        "tokenizer.json, its folder, or a name at the hub.",
        is_variable=False,
        allowed="a tokenizer name",
        min_length=1,
        max_length=1000,
    )

    retrieval_full_context_threshold: int = taken(
        "full_context_threshold", RetrievalConfig, begins="Retrieval"
    )
    retrieval_context_budget: int = taken("context_budget", RetrievalConfig, OrchestrationConfig)
    retrieval_top_k_children_limit: int = taken(
        "children_limit", RetrievalConfig, OrchestrationConfig
    )
    retrieval_similarity_floor: float = taken(
        "similarity_floor",
        RetrievalConfig,
        OrchestrationConfig,
        ge=0,
        allowed="a number from 0 to 1",
    )
    retrieval_depth_decay_rate: float = taken("depth_decay_rate", RetrievalConfig)
    retrieval_depth_floor: float = taken("depth_floor", RetrievalConfig)
    retrieval_hnsw_ef_search: int = taken("hnsw_ef_search", RetrievalConfig)

    reranker_provider: Literal[
        "auto", "zeroentropy", "cohere", "jina", "local", "cross_encoder", "none"
    ] = setting(
        "auto",
        "Who reranks; `auto` takes ZeroEntropy, Cohere or Jina when its key is set, else the "
        "local reranker; `cross_encoder` is a model of this process and needs the extra "
        "`fastembed` or `huggingface`.",
        begins="Reranking",
    )
    reranker_api_key: Secret | None = setting(
        None,
        "Key for the provider named by `RERANKER_PROVIDER`.",
        default_text="the provider's own variable",
    )
    zeroentropy_api_key: Secret | None = setting(None, "Key for ZeroEntropy.", shared=True)
    cohere_api_key: Secret | None = setting(None, "Key for Cohere.", shared=True)
    jina_api_key: Secret | None = setting(None, "Key for Jina.", shared=True)
    reranker_model: ModelName | None = setting(
        None,
        "Model name at the provider; for `cross_encoder` also a folder.",
        default_text="`zerank-2`, `rerank-v3.5`, `jina-reranker-v2-base-multilingual` or "
        f"`{LOCAL_RERANKER_MODEL}`",
    )
    reranker_timeout: Seconds = setting(
        5.0,
        "Time of a cross-encoder for one question: it reads as many passages as fit, the most "
        "promising first.",
        is_variable=False,
    )

    decomposition_mode: Literal["llm", "rule_based", "none"] = setting(
        "llm",
        "How questions are split; `llm` needs `ORCHESTRATION_LLM_API_KEY`, or a server of your own "
        "in `ORCHESTRATION_LLM_BASE_URL`, and is `rule_based` without.",
        is_variable=False,
    )
    orchestration_llm_base_url: HttpUrl = setting(
        OPENAI_URL,
        "OpenAI-compatible server whose model splits questions and writes the answers of `ask`.",
        begins="Questions and how far they are followed",
    )
    orchestration_llm_api_key: Secret | None = setting(None, "Key for that server.")
    orchestration_llm_model: ServedModelName = setting("gpt-4o-mini", "Model of that server.")
    orchestration_timeout: float = taken("timeout_s", OrchestrationConfig)
    max_expansion_depth: int = taken("max_depth", ExpansionConfig)
    max_candidates_per_iteration: int = taken("max_candidates_per_iteration", ExpansionConfig)
    max_pages_per_run: int = taken("max_pages_per_run", ExpansionConfig)
    max_bytes_per_run: int = taken("max_bytes_per_run", ExpansionConfig)
    expansion_scope: Literal["same_site", "allow_list", "any"] = taken("scope", ExpansionConfig)
    expansion_allowed_domains: HostList = taken("allowed_domains", ExpansionConfig)
    expansion_iteration_timeout: float = taken("iteration_timeout_s", ExpansionConfig)
    token_budget_saturation_ratio: float = taken(
        "token_budget_saturation_ratio", OrchestrationConfig
    )
    redundancy_ceiling: float = taken("redundancy_ceiling", OrchestrationConfig)

    mcp_transport: Literal["stdio", "streamable-http"] = setting(
        "stdio", "How clients reach the server.", begins="MCP server", shared=True
    )
    mcp_host: str | None = setting(
        None,
        "Address that Streamable HTTP listens on.",
        allowed="a host name or address",
        default_text="`127.0.0.1`; `0.0.0.0` when requests must carry a token",
        shared=True,
        pattern=r"^[A-Za-z0-9._:-]{1,253}$",
    )
    mcp_port: int = setting(
        8765, "Port that Streamable HTTP listens on.", shared=True, ge=1, le=65_535
    )
    mcp_stateless: bool = setting(
        False, "Whether Streamable HTTP keeps no sessions, for several processes behind a balancer."
    )
    mcp_auth_token: Secret | None = setting(None, "Bearer token that HTTP requests must carry.")
    mcp_public_url: HttpUrl | None = setting(
        None, "Address of the server as clients see it, behind a proxy."
    )
    mcp_allowed_hosts: HostList = setting(
        (), "Values of the Host header that are accepted besides the bind address."
    )
    mcp_allowed_origins: OriginList = setting((), "Values of the Origin header that are accepted.")
    mcp_response_token_budget: int = setting(
        BriefConfig().token_budget,
        "Tokens of the whole text of one response; a hard limit, as clients cut at 25,000.",
        ge=1000,
        le=1_000_000,
    )
    mcp_tool_timeout: Seconds = setting(120.0, "One tool call.", shared=True)
    mcp_soft_deadline: Seconds = setting(
        50.0,
        "After it `answer` and `ingest` return what they have, marked as partial; clients give "
        "up at 60 s.",
    )
    mcp_log_level: LogLevel = setting(
        "INFO", "Least severe message that the MCP server writes to standard error.", shared=True
    )
    mcp_structured_output: bool = setting(
        False, "Whether results also come as structured content; some clients then drop the text."
    )
    mcp_enable_forget: bool = setting(False, "Whether clients may delete stored pages.")

    mcp_tokens_file: PathName | None = setting(
        None,
        "File with one named bearer token a line: name, scopes, token, and optionally a "
        "collection.",
        begins="Callers of the MCP server",
    )
    mcp_oauth_issuer: SecureUrl | None = setting(
        None, "Authorization server whose tokens are accepted, exactly as its tokens name it."
    )
    mcp_oauth_audience: CommaList = setting(
        (),
        "Audiences of tokens that are meant for this server.",
        allowed="comma-separated audiences",
        default_text="`MCP_PUBLIC_URL` and `/mcp`",
    )
    mcp_oauth_jwks_url: SecureUrl | None = setting(
        None, "Where the keys of the authorization server are, if not where its metadata says."
    )
    collection_claim: str | None = setting(
        None,
        "Claim of a caller's token that says whose collection is used; each value has its own.",
        env="WEBRAG_COLLECTION_CLAIM",
        allowed="the name of a claim whose value is text, such as `sub` or `team`",
        default_text="all callers share `WEBRAG_COLLECTION`",
        pattern=r"^[A-Za-z0-9_.:/-]{1,200}$",
    )
    mcp_max_open_collections: int = setting(
        8,
        "Collections of callers kept open at once; the one unused for longest is closed first.",
        is_variable=False,
        ge=1,
        le=1000,
    )
    mcp_calls_per_minute: int | None = _limit("Calls of one caller within 60 seconds.")
    mcp_calls_per_day: int | None = _limit("Calls of one caller in one day (UTC).")
    mcp_pages_per_day: int | None = _limit("Pages requested for one caller in one day (UTC).")
    mcp_bytes_per_day: int | None = _limit(
        "Bytes of pages received for one caller in one day (UTC), as decoded."
    )

    agent_rerank_recency_boost: float = taken(
        "rerank_recency_boost", AnswerConfig, begins="Answers and tracing"
    )
    agent_reflection_temperature: float = taken("reflection_temperature", AnswerConfig)
    tracing: Literal["off", "langsmith", "opentelemetry", "both"] = setting(
        "off",
        "Where spans of the answer manager's steps go; needs `webrag[tracing]`.",
        env="WEBRAG_TRACING",
    )
    langsmith_api_key: Secret | None = setting(None, "Key for LangSmith.", shared=True)
    langsmith_endpoint: HttpUrl = setting(
        "https://api.smith.langchain.com", "LangSmith server.", is_variable=False
    )
    langsmith_project: str = setting(
        "webrag", "LangSmith project that runs are filed under.", is_variable=False
    )
    otel_exporter_otlp_endpoint: HttpUrl | None = setting(
        None,
        "Collector that spans are sent to over HTTP.",
        default_text="the tracer provider of the program",
        shared=True,
    )

    answering: AnswerConfig = _part(AnswerConfig())
    fetching: FetchConfig = _part(FetchConfig())
    orchestration: OrchestrationConfig = _part(OrchestrationConfig())
    retrieval: RetrievalConfig = _part(RetrievalConfig())
    score_thresholds: dict[str, Share] = Field(
        default={},
        description="Thresholds that replace those of the reranker's score profile, by name.",
        json_schema_extra={"allowed": "names of thresholds, each with a number from 0 to 1"},
    )

    @field_validator("score_thresholds")
    @classmethod
    def _only_known_thresholds(cls, thresholds: dict[str, float]) -> dict[str, float]:
        if unknown := set(thresholds) - set(ScoreProfile.model_fields):
            raise ValueError(f"no threshold is called {min(unknown)!r}")
        return thresholds
