"""Every setting with its type, range and default, in the order of the reference; no I/O.

A default that belongs to the configuration of a layer below is taken from there.
"""

from pathlib import Path
from typing import Literal

from pydantic import field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from webrag.answering.config import AnswerConfig
from webrag.ingestion.firecrawl.models import FirecrawlConfig
from webrag.ingestion.models import FetchConfig
from webrag.orchestration.config import LINK_SIGNALS, OrchestrationConfig
from webrag.orchestration.models import ScoreProfile
from webrag.postgres.config import DatabaseConfig
from webrag.presentation.brief.models import BriefConfig
from webrag.retrieval.models import RetrievalConfig
from webrag.settings.fields import (
    DIRECTORIES_TEXT,
    HOSTS_TEXT,
    HTTP_URL_TEXT,
    KEY_TEXT,
    LEVELS_TEXT,
    LOGIN_HEADERS_TEXT,
    SECURE_URL_TEXT,
    AbsolutePath,
    CommaList,
    DirectoryList,
    HostList,
    HttpUrl,
    LoginHeaders,
    LogLevel,
    OriginList,
    PostgresUrl,
    ProxyUrl,
    Seconds,
    SecondsOrNever,
    Secret,
    SecureUrl,
    Share,
    Weights,
    setting,
)
from webrag.settings.variables import user_folder

LOCAL_EMBEDDING_MODEL = "BAAI/bge-small-en-v1.5"
LOCAL_RERANKER_MODEL = "Xenova/ms-marco-MiniLM-L-6-v2"
OPENAI_EMBEDDING_MODEL = "text-embedding-3-small"
OPENAI_URL = "https://api.openai.com/v1"

_ANSWER = AnswerConfig()
_BRIEF = BriefConfig()
_DATABASE = DatabaseConfig(data_dir=Path())
_FETCH = FetchConfig()
_FIRECRAWL = FirecrawlConfig()
_LOOP = OrchestrationConfig()
_LINKS = _LOOP.expansion
_RETRIEVAL = RetrievalConfig()


def _limit(description: str) -> int | None:
    limit: int | None = setting(
        None,
        description,
        read_by="MCP server",
        allowed="a whole number from 1",
        default_text="no limit",
        ge=1,
        le=10**15,
    )
    return limit


def _of_profile(threshold: str) -> str:
    # The class's own thresholds are those of ZeroEntropy.
    value = ScoreProfile.model_fields[threshold].default
    return f"the score profile's (ZeroEntropy: `{value:g}`)"


class Values(BaseSettings):
    """Every setting; `begins` names the section of the reference that starts there."""

    model_config = SettingsConfigDict(defer_build=True)  # only `Settings` is ever made

    database_url: PostgresUrl | None = setting(
        None,
        "Postgres 15 or newer with pgvector 0.8 or newer to use instead of the embedded server.",
        begins="Storage and logging",
        read_by="database",
        allowed="a URL that starts with postgresql:// or postgres://",
        default_text="not set: embedded server",
        shared=True,
    )
    database_pool_size: int = setting(
        _DATABASE.pool_max_size,
        "Connections kept at most per event loop.",
        env="WEBRAG_DATABASE_POOL_SIZE",
        read_by="database",
        unit="connections",
        ge=1,
        le=100,
    )
    database_acquire_timeout: Seconds = setting(
        _DATABASE.acquire_timeout_s,
        "Longest wait for a free database connection.",
        env="WEBRAG_DATABASE_ACQUIRE_TIMEOUT",
        read_by="database",
        unit="seconds",
    )
    database_statement_timeout: Seconds = setting(
        _DATABASE.statement_timeout_s,
        "Longest time of one read or write, half of it waiting for others; what the server sets "
        "for the user or the database wins.",
        env="WEBRAG_DATABASE_STATEMENT_TIMEOUT",
        read_by="database",
        unit="seconds",
    )
    data_dir: AbsolutePath = setting(
        None,
        "Folder of the embedded server's files.",
        env="WEBRAG_DATA_DIR",
        read_by="database",
        allowed="a path",
        default_factory=lambda: user_folder("data"),
        default_text="the user's data folder, `$XDG_DATA_HOME/webrag` on Linux",
    )
    collection: str = setting(
        _DATABASE.collection,
        "Corpus to work on; each collection is a schema of its own.",
        env="WEBRAG_COLLECTION",
        read_by="database",
        allowed="1 to 48 lower-case letters, digits and underscores, not starting with a digit",
        pattern=r"^[a-z_][a-z0-9_]{0,47}$",
    )
    log_level: LogLevel = setting(
        "WARNING",
        "Least severe message that the command line prints on standard error.",
        env="WEBRAG_LOG_LEVEL",
        read_by="command line",
        allowed=LEVELS_TEXT,
    )

    allow_hosts: HostList = setting(
        _FETCH.allowed_hosts,
        "Hosts that may be contacted although their address is private; no politeness delays.",
        env="WEBRAG_ALLOW_HOSTS",
        begins="Fetching",
        read_by="fetcher",
        allowed=HOSTS_TEXT,
    )
    allow_dirs: DirectoryList = setting(
        (),
        "Folders whose files may be read without being named by the user, as over MCP.",
        env="WEBRAG_ALLOW_DIRS",
        read_by="file source",
        allowed=DIRECTORIES_TEXT,
    )
    allow_logins: HostList = setting(
        (),
        "Hosts whose logins are also used for others than who stored them: over MCP, in the"
        " browser's page and by workers.",
        env="WEBRAG_ALLOW_LOGINS",
        read_by="fetcher",
        allowed=HOSTS_TEXT,
    )
    login_headers: LoginHeaders | None = setting(
        None,
        "Headers that pages of a host are asked for with, as a login; sent to that host alone,"
        " over https.",
        env="WEBRAG_LOGIN_HEADERS",
        read_by="fetcher",
        allowed=LOGIN_HEADERS_TEXT,
    )
    recrawl_after: SecondsOrNever = setting(
        _FIRECRAWL.max_age_s,
        "Age from which a stored page is checked with its site before it is used.",
        env="WEBRAG_RECRAWL_AFTER",
        read_by="page acquirer",
        unit="seconds",
        allowed="a number of seconds from 0, or `never`",
        ge=0,
        allow_inf_nan=False,
    )
    keep_versions: int = setting(
        0,
        "Earlier texts kept of a page that changes, for `as_of` and `verify`.",
        env="WEBRAG_KEEP_VERSIONS",
        read_by="corpus",
        ge=0,
        le=1_000,
    )
    user_agent: str = setting(
        _FETCH.user_agent,
        "Sent with every request; name a contact of yours when you fetch much.",
        env="WEBRAG_USER_AGENT",
        read_by="fetcher",
        allowed="1 to 256 printable ASCII characters",
        pattern=r"^[ -~]{0,255}[!-~]$",
    )
    fetch_timeout: Seconds = setting(
        _FETCH.timeout_s,
        "Whole fetch of one page, redirects included.",
        env="WEBRAG_FETCH_TIMEOUT",
        read_by="fetcher",
        unit="seconds",
    )
    fetch_max_bytes: int = setting(
        _FETCH.max_wire_bytes,
        "Read from the network at most for one page.",
        env="WEBRAG_FETCH_MAX_BYTES",
        read_by="fetcher",
        unit="bytes",
        ge=1024,
        le=1_000_000_000,
    )
    fetch_max_decoded_bytes: int = setting(
        _FETCH.max_decoded_bytes,
        "Size of one page at most after decompression.",
        env="WEBRAG_FETCH_MAX_DECODED_BYTES",
        read_by="fetcher",
        unit="bytes",
        ge=1024,
        le=1_000_000_000,
    )
    fetch_max_redirects: int = setting(
        _FETCH.max_redirects,
        "Redirects followed for one page; each is checked like a first request.",
        env="WEBRAG_FETCH_MAX_REDIRECTS",
        read_by="fetcher",
        unit="redirects",
        ge=0,
        le=20,
    )
    fetch_prefer_markdown: bool = setting(
        _FETCH.prefer_markdown,
        "Whether the Markdown version that a page names is read in its place, at the cost of one "
        "more request.",
        env="WEBRAG_FETCH_PREFER_MARKDOWN",
        read_by="fetcher",
    )
    browser: Literal["auto", "always", "never"] = setting(
        "auto",
        "Which pages are drawn in a browser: `auto` those whose text scripts write, when the "
        "`browser` extra and Chromium are installed; `always` every page; `never` none.",
        env="WEBRAG_BROWSER",
        read_by="page sources",
    )
    browser_path: Path | None = setting(
        None,
        "The Chromium or Chrome that draws pages; without it the first one on the `PATH`.",
        env="WEBRAG_BROWSER_PATH",
        read_by="page sources",
        allowed="a path",
    )
    fetch_host_concurrency: int = setting(
        _FETCH.host_concurrency,
        "Requests under way at once to one host.",
        env="WEBRAG_FETCH_HOST_CONCURRENCY",
        read_by="fetcher",
        unit="requests",
        ge=1,
        le=64,
    )
    fetch_host_delay: float = setting(
        _FETCH.host_delay_s,
        "Least time between two requests to one host; robots.txt may ask for more.",
        env="WEBRAG_FETCH_HOST_DELAY",
        read_by="fetcher",
        unit="seconds",
        ge=0,
        le=3600,
        allow_inf_nan=False,
    )
    extraction_timeout: Seconds = setting(
        _FETCH.extraction_timeout_s,
        "Converting one page to text, in a worker process.",
        env="WEBRAG_EXTRACTION_TIMEOUT",
        read_by="extraction",
        unit="seconds",
    )
    firecrawl_api_key: Secret | None = setting(
        None,
        "Fetches through Firecrawl; the built-in fetcher serves while Firecrawl cannot.",
        read_by="Firecrawl client",
        allowed=KEY_TEXT,
        shared=True,
    )
    firecrawl_api_url: HttpUrl = setting(
        _FIRECRAWL.api_url,
        "Firecrawl server; another one than the default is used also without a key.",
        read_by="Firecrawl client",
        allowed=HTTP_URL_TEXT,
        shared=True,
    )
    firecrawl_timeout: Seconds = setting(
        _FIRECRAWL.timeout_s,
        "Whole fetch of one page through Firecrawl, retries included.",
        env="WEBRAG_FIRECRAWL_TIMEOUT",
        read_by="Firecrawl client",
        unit="seconds",
    )
    proxy: ProxyUrl | None = setting(
        None,
        "Proxy for every service that gets a key (Firecrawl, embeddings, language models, "
        "rerankers, tracing), but not for servers on this machine; `environment` takes what "
        "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say. Pages are always fetched directly.",
        env="WEBRAG_PROXY",
        read_by="clients of services",
        allowed="`environment`, or a URL that starts with http:// or https://",
        default_text="not set: direct connections, whatever the environment says",
    )

    models: Literal["bundled", "small", "medium"] | None = setting(
        None,
        "Embedding and reranker of this machine, chosen together: `webrag models` lists what each "
        "name stands for. Weights are downloaded once. `EMBEDDING_PROVIDER`, `EMBEDDING_MODEL`, "
        "`RERANKER_PROVIDER` and `RERANKER_MODEL` win over their part of it.",
        env="WEBRAG_MODELS",
        begins="Embedding and token counting",
        read_by="embedder, reranker",
    )
    embedding_provider: Literal[
        "auto", "bundled", "openai", "openai_compatible", "huggingface", "fastembed"
    ] = setting(
        "auto",
        "Where vectors come from; `auto` is OpenAI with a key, else the bundled model, and keeps "
        "to what an existing corpus was made with; `huggingface` and `fastembed` need the extra of "
        "that name.",
        read_by="embedder",
    )
    embedding_model: str | None = setting(
        None,
        "Model name at the provider; for `huggingface` and `fastembed` also a folder.",
        read_by="embedder",
        allowed="a model name",
        default_text=f"the provider's: `{OPENAI_EMBEDDING_MODEL}` for OpenAI and servers, "
        f"`{LOCAL_EMBEDDING_MODEL}` for models of this process",
        min_length=1,
        max_length=1000,
    )
    embedding_dimensions: int | None = setting(
        None,
        "Vector size to ask for.",
        read_by="embedder",
        unit="dimensions",
        default_text="the model's own",
        ge=1,
        le=4000,
    )
    embedding_base_url: HttpUrl | None = setting(
        None,
        "OpenAI-compatible server, such as Ollama, vLLM or TEI, for `openai_compatible`.",
        read_by="embedder",
        allowed=HTTP_URL_TEXT,
    )
    embedding_api_key: Secret | None = setting(
        None,
        "Key for the embedding server.",
        read_by="embedder",
        allowed=KEY_TEXT,
        default_text="`OPENAI_API_KEY`",
    )
    openai_api_key: Secret | None = setting(
        None,
        "Key for OpenAI, used wherever no narrower key is set.",
        read_by="embedder",
        allowed=KEY_TEXT,
        shared=True,
    )
    embedding_tokenizer_kind: Literal["tiktoken", "huggingface"] = setting(
        "tiktoken",
        "Library that counts tokens for chunks, budgets and requests.",
        read_by="node parser, embedder, brief",
    )
    embedding_tokenizer_name: str = setting(
        "cl100k_base",
        "For tiktoken `cl100k_base` or `o200k_base`, which need no download; for Hugging Face a "
        "tokenizer.json, its folder, or a name at the hub.",
        read_by="node parser, embedder, brief",
        allowed="a tokenizer name",
        min_length=1,
        max_length=1000,
    )

    retrieval_full_context_threshold: int = setting(
        _RETRIEVAL.full_context_threshold,
        "A corpus of at most this size is returned whole in `auto` mode; clamped to "
        "`RETRIEVAL_CONTEXT_BUDGET` with a warning.",
        begins="Retrieval",
        read_by="search",
        unit="tokens",
        ge=0,
        le=10_000_000,
    )
    retrieval_context_budget: int = setting(
        _RETRIEVAL.context_budget,
        "Parent text returned at most.",
        read_by="search",
        unit="tokens",
        ge=1,
        le=10_000_000,
    )
    retrieval_top_k_children_limit: int = setting(
        _RETRIEVAL.children_limit,
        "Candidates taken from each of the dense and lexical searches, and kept after fusion.",
        read_by="search",
        unit="chunks",
        ge=1,
        le=1000,
    )
    retrieval_similarity_floor: Share = setting(
        _RETRIEVAL.similarity_floor,
        "Least cosine of a candidate that only the dense search found.",
        read_by="search",
    )
    retrieval_depth_decay_rate: Share = setting(
        _RETRIEVAL.depth_decay_rate,
        "Share of the score lost per link of distance from a page you named.",
        read_by="search",
    )
    retrieval_depth_floor: Share = setting(
        _RETRIEVAL.depth_floor,
        "Least multiplier that distance can cause.",
        read_by="search",
    )
    retrieval_hnsw_ef_search: int = setting(
        _RETRIEVAL.hnsw_ef_search,
        "Graph entries visited per dense search: recall against time.",
        read_by="search",
        unit="entries",
        ge=1,
        le=1000,
    )
    fusion_method: Literal["score", "rrf"] = setting(
        _RETRIEVAL.fusion_method,
        "How dense and lexical results are merged: by score, or by reciprocal rank.",
        read_by="search",
    )

    reranker_provider: Literal[
        "auto", "zeroentropy", "cohere", "jina", "local", "cross_encoder", "none"
    ] = setting(
        "auto",
        "Who reranks; `auto` takes ZeroEntropy, Cohere or Jina when its key is set, else the "
        "local reranker; `cross_encoder` is a model of this process and needs the extra "
        "`fastembed` or `huggingface`.",
        begins="Reranking",
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
        "Model name at the provider; for `cross_encoder` also a folder.",
        read_by="reranker",
        allowed="a model name",
        default_text="`zerank-2`, `rerank-v3.5`, `jina-reranker-v2-base-multilingual` or "
        f"`{LOCAL_RERANKER_MODEL}`",
        min_length=1,
        max_length=1000,
    )
    reranker_timeout: Seconds = setting(
        5.0,
        "Time of a cross-encoder for one question: it reads as many passages as fit, the most "
        "promising first.",
        read_by="reranker",
        unit="seconds",
    )
    reranker_top_n: int = setting(
        _LOOP.reranker_top_n,
        "Results kept after reranking.",
        read_by="reranker",
        unit="chunks",
        ge=1,
        le=1000,
    )

    decomposition_mode: Literal["llm", "rule_based", "none"] = setting(
        "llm",
        "How questions are split; `llm` needs `ORCHESTRATION_LLM_API_KEY`, or a server of your own "
        "in `ORCHESTRATION_LLM_BASE_URL`, and is `rule_based` without.",
        begins="Question analysis and run limits",
        read_by="query analyser",
    )
    orchestration_llm_base_url: HttpUrl = setting(
        OPENAI_URL,
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
        _LOOP.timeout_s,
        "Whole run; what was found by then is returned.",
        read_by="engine",
        unit="seconds",
    )

    max_expansion_depth: int = setting(
        _LINKS.max_depth,
        "Rounds of the loop at most.",
        begins="Following links",
        read_by="evaluator",
        unit="rounds",
        ge=0,
        le=20,
    )
    max_candidates_per_iteration: int = setting(
        _LINKS.max_candidates_per_iteration,
        "Pages fetched in one round.",
        read_by="expander",
        unit="pages",
        ge=1,
        le=25,
    )
    candidates_to_score_per_iteration: int = setting(
        _LINKS.candidates_to_score_per_iteration,
        "Best-scored links kept per round, from which the pages to fetch are taken.",
        read_by="expander",
        unit="links",
        ge=1,
        le=1000,
    )
    expansion_map_limit: int = setting(
        _LINKS.map_limit,
        "Addresses asked from Firecrawl's map of a site.",
        read_by="Firecrawl client",
        unit="links",
        ge=1,
        le=5000,
    )
    expansion_min_candidate_score: Share = setting(
        _LINKS.min_candidate_score,
        "Links that score lower are never followed.",
        read_by="expander",
    )
    expansion_signal_weights: Weights = setting(
        {},
        "Weights of the signals that score a link, where they are not to be the built-in ones; "
        "0 leaves a signal out.",
        read_by="expander",
        allowed=f"comma-separated name=weight with weights from 0 to 10 and the names "
        f"{', '.join(LINK_SIGNALS)}",
        default_text="the built-in weights",
    )
    expansion_scope: Literal["same_site", "allow_list", "any"] = setting(
        _LINKS.scope,
        "Which links may be followed; `allow_list` means `EXPANSION_ALLOWED_DOMAINS`.",
        read_by="expander",
    )
    site_map_enabled: bool = setting(
        _LINKS.site_map.enabled,
        "Whether a site's own search index, inventory, index page or sitemap is read to find pages "
        "that no page links to.",
        read_by="expander",
    )
    site_map_max_bytes: int = setting(
        _LINKS.site_map.max_bytes,
        "A larger map of a site is not read.",
        read_by="expander",
        unit="bytes",
        ge=1,
        le=50_000_000,
    )
    site_map_timeout: Seconds = setting(
        _LINKS.site_map.timeout_s,
        "Reading the maps of a site in one round.",
        read_by="expander",
        unit="seconds",
    )
    site_map_recrawl_after: float = setting(
        _LINKS.site_map.fresh_s,
        "A map of a site is read again when it is older.",
        read_by="expander",
        unit="seconds",
        ge=0.1,
        le=1_000_000_000,
        allow_inf_nan=False,
    )
    expansion_allowed_domains: HostList = setting(
        _LINKS.allowed_domains,
        "Hosts that may be followed to, with their subdomains.",
        read_by="expander",
        allowed="comma-separated hosts without a scheme or path",
    )
    max_pages_per_run: int = setting(
        _LINKS.max_pages_per_run,
        "Pages obtained at most in one run after those you named.",
        read_by="expander",
        unit="pages",
        ge=0,
        le=25,
    )
    max_bytes_per_run: int = setting(
        _LINKS.max_bytes_per_run,
        "Read from the network at most in one run after the pages you named.",
        read_by="expander",
        unit="bytes",
        ge=1,
        le=10_000_000_000,
    )
    expansion_iteration_timeout: Seconds = setting(
        _LINKS.iteration_timeout_s,
        "One round of following links.",
        read_by="expander",
        unit="seconds",
    )
    locality_expansion_enabled: bool = setting(
        _LOOP.locality_enabled,
        "Whether neighbours of strong passages are added.",
        read_by="locality",
    )
    locality_expansion_radius: int = setting(
        _LOOP.locality_radius,
        "Neighbours added on each side.",
        read_by="locality",
        unit="passages",
        ge=0,
        le=10,
    )

    token_budget_saturation_ratio: float = setting(
        _LOOP.token_budget_saturation_ratio,
        "Share of the context budget that counts as filled.",
        begins="Judging evidence: when to stop and what to try next",
        read_by="evaluator",
        gt=0,
        le=1,
        allow_inf_nan=False,
    )
    redundancy_ceiling: Share = setting(
        _LOOP.redundancy_ceiling,
        "Similarity of two passages (Jaccard of word 3-shingles) from which one is a repetition.",
        read_by="evaluator, merger",
    )
    score_cliff_rank_k: int = setting(
        _LOOP.score_cliff_rank_k, "Rank compared with rank 1.", read_by="evaluator", ge=2, le=100
    )
    plateau_top_n: int = setting(
        _LOOP.plateau_top_n,
        "Scores that variance and mean are taken over.",
        read_by="evaluator",
        unit="scores",
        ge=3,
        le=100,
    )
    diminishing_return_delta: Share = setting(
        _LOOP.diminishing_return_delta,
        "Least relative growth of good passages that is worth another round.",
        read_by="evaluator",
    )
    score_cliff_threshold: Share | None = setting(
        None,
        "Gap between rank 1 and rank K that counts as a cliff.",
        read_by="evaluator",
        default_text=_of_profile("score_cliff_threshold"),
    )
    plateau_variance_threshold: Share | None = setting(
        None,
        "Variance of the top scores below which they form a plateau.",
        read_by="evaluator",
        default_text=_of_profile("plateau_variance_threshold"),
    )
    mediocre_score_floor: Share | None = setting(
        None,
        "Means below it are mediocre.",
        read_by="evaluator",
        default_text=_of_profile("mediocre_score_floor"),
    )
    confidence_floor: Share | None = setting(
        None,
        "Least mean confidence, for rerankers that give one.",
        read_by="evaluator",
        default_text=_of_profile("confidence_floor"),
    )
    near_top_delta: Share | None = setting(
        None,
        "Passages within this distance of the best score count as good.",
        read_by="evaluator",
        default_text=_of_profile("near_top_delta"),
    )
    answered_score: Share | None = setting(
        None,
        "Top score from which the evidence is taken to hold the answer.",
        read_by="evaluator",
        default_text=_of_profile("answered_score"),
    )

    mcp_transport: Literal["stdio", "streamable-http"] = setting(
        "stdio",
        "How clients reach the server.",
        begins="MCP server",
        read_by="MCP server",
        shared=True,
    )
    mcp_host: str | None = setting(
        None,
        "Address that Streamable HTTP listens on.",
        read_by="MCP server",
        allowed="a host name or address",
        default_text="`127.0.0.1`; `0.0.0.0` when requests must carry a token",
        shared=True,
        pattern=r"^[A-Za-z0-9._:-]{1,253}$",
    )
    mcp_port: int = setting(
        8765,
        "Port that Streamable HTTP listens on.",
        read_by="MCP server",
        shared=True,
        ge=1,
        le=65_535,
    )
    mcp_stateless: bool = setting(
        False,
        "Whether Streamable HTTP keeps no sessions, for several processes behind a balancer.",
        read_by="MCP server",
    )
    mcp_auth_token: Secret | None = setting(
        None, "Bearer token that HTTP requests must carry.", read_by="MCP server", allowed=KEY_TEXT
    )
    mcp_public_url: HttpUrl | None = setting(
        None,
        "Address of the server as clients see it, behind a proxy.",
        read_by="MCP server",
        allowed=HTTP_URL_TEXT,
    )
    mcp_allowed_hosts: HostList = setting(
        (),
        "Values of the Host header that are accepted besides the bind address.",
        read_by="MCP server",
        allowed=HOSTS_TEXT,
    )
    mcp_allowed_origins: OriginList = setting(
        (),
        "Values of the Origin header that are accepted.",
        read_by="MCP server",
        allowed="comma-separated origins such as https://app.example.com",
    )
    mcp_response_token_budget: int = setting(
        _BRIEF.token_budget,
        "Whole text of one response; a hard limit, as clients cut at 25,000.",
        read_by="brief",
        unit="tokens",
        ge=1000,
        le=1_000_000,
    )
    mcp_tool_timeout: Seconds = setting(
        120.0,
        "One tool call.",
        read_by="MCP server",
        unit="seconds",
        shared=True,
    )
    mcp_soft_deadline: Seconds = setting(
        50.0,
        "After it `answer` and `ingest` return what they have, marked as partial; clients give "
        "up at 60 s.",
        read_by="MCP server",
        unit="seconds",
    )
    mcp_log_level: LogLevel = setting(
        "INFO",
        "Least severe message that the MCP server writes to standard error.",
        read_by="MCP server",
        allowed=LEVELS_TEXT,
        shared=True,
    )
    mcp_structured_output: bool = setting(
        False,
        "Whether results also come as structured content; some clients then drop the text.",
        read_by="MCP server",
    )
    mcp_enable_forget: bool = setting(
        False, "Whether clients may delete stored pages.", read_by="MCP server"
    )

    mcp_tokens_file: Path | None = setting(
        None,
        "File with one named bearer token a line: name, scopes, token, and optionally a "
        "collection.",
        begins="Callers of the MCP server",
        read_by="MCP server",
        allowed="a path",
    )
    mcp_oauth_issuer: SecureUrl | None = setting(
        None,
        "Authorization server whose tokens are accepted, exactly as its tokens name it.",
        read_by="MCP server",
        allowed=SECURE_URL_TEXT,
    )
    mcp_oauth_audience: CommaList = setting(
        (),
        "Audiences of tokens that are meant for this server.",
        read_by="MCP server",
        allowed="comma-separated audiences",
        default_text="`MCP_PUBLIC_URL` and `/mcp`",
    )
    mcp_oauth_jwks_url: SecureUrl | None = setting(
        None,
        "Where the keys of the authorization server are.",
        read_by="MCP server",
        allowed=SECURE_URL_TEXT,
        default_text="what the issuer's metadata says",
    )
    mcp_oauth_introspection_url: SecureUrl | None = setting(
        None,
        "Where to ask about every token (RFC 7662), in place of checking its signature.",
        read_by="MCP server",
        allowed=SECURE_URL_TEXT,
    )
    mcp_oauth_client_id: str | None = setting(
        None,
        "Name under which this server asks about tokens.",
        read_by="MCP server",
        allowed="a client name without a colon",
        pattern=r"^[!-9;-~]{1,200}$",
    )
    mcp_oauth_client_secret: Secret | None = setting(
        None, "Secret that goes with it.", read_by="MCP server", allowed=KEY_TEXT
    )
    collection_claim: str | None = setting(
        None,
        "Claim of a caller's token that says whose collection is used; each value has its own.",
        read_by="MCP server",
        env="WEBRAG_COLLECTION_CLAIM",
        allowed="the name of a claim whose value is text, such as `sub` or `team`",
        default_text="all callers share `WEBRAG_COLLECTION`",
        pattern=r"^[A-Za-z0-9_.:/-]{1,200}$",
    )
    mcp_max_open_collections: int = setting(
        8,
        "Collections of callers kept open at once; the one unused for longest is closed first.",
        read_by="MCP server",
        ge=1,
        le=1000,
    )
    mcp_calls_per_minute: int | None = _limit("Calls of one caller within 60 seconds.")
    mcp_calls_per_day: int | None = _limit("Calls of one caller in one day (UTC).")
    mcp_pages_per_day: int | None = _limit("Pages requested for one caller in one day (UTC).")
    mcp_bytes_per_day: int | None = _limit(
        "Bytes of pages received for one caller in one day (UTC), as decoded."
    )

    answer_llm_base_url: HttpUrl | None = setting(
        None,
        "OpenAI-compatible server that writes answers.",
        begins="Answer manager",
        read_by="answer manager",
        allowed=HTTP_URL_TEXT,
        default_text="`ORCHESTRATION_LLM_BASE_URL`",
    )
    answer_llm_api_key: Secret | None = setting(
        None,
        "Key for that server.",
        read_by="answer manager",
        allowed=KEY_TEXT,
        default_text="`ORCHESTRATION_LLM_API_KEY`",
    )
    answer_llm_model: str | None = setting(
        None,
        "Model that writes answers.",
        read_by="answer manager",
        allowed="a model name",
        default_text="`ORCHESTRATION_LLM_MODEL`",
        min_length=1,
        max_length=200,
    )
    agent_rerank_recency_boost: Share = setting(
        _ANSWER.rerank_recency_boost,
        "Added to the normalised score of a page published today; less for older ones.",
        read_by="answer manager",
    )
    agent_recent_year_window: int = setting(
        _ANSWER.recent_year_window,
        "Years over which that falls to nothing.",
        read_by="answer manager",
        unit="years",
        ge=1,
        le=100,
    )
    agent_reflection_temperature: float = setting(
        _ANSWER.reflection_temperature,
        "Temperature of the model that judges an answer.",
        read_by="answer manager",
        ge=0,
        le=2,
        allow_inf_nan=False,
    )

    tracing: Literal["off", "langsmith", "opentelemetry", "both"] = setting(
        "off",
        "Where spans of the answer manager's steps go; needs `webrag[tracing]`.",
        begins="Tracing",
        read_by="answer manager",
        env="WEBRAG_TRACING",
    )
    langsmith_api_key: Secret | None = setting(
        None, "Key for LangSmith.", read_by="answer manager", allowed=KEY_TEXT, shared=True
    )
    langsmith_endpoint: HttpUrl = setting(
        "https://api.smith.langchain.com",
        "LangSmith server.",
        read_by="answer manager",
        allowed=HTTP_URL_TEXT,
        shared=True,
    )
    langsmith_project: str = setting(
        "webrag",
        "LangSmith project that runs are filed under.",
        read_by="answer manager",
        allowed="a project name",
        shared=True,
        min_length=1,
        max_length=200,
    )
    otel_exporter_otlp_endpoint: HttpUrl | None = setting(
        None,
        "Collector that spans are sent to over HTTP.",
        read_by="answer manager",
        allowed=HTTP_URL_TEXT,
        default_text="the tracer provider of the program",
        shared=True,
    )

    @field_validator("expansion_signal_weights")
    @classmethod
    def _only_known_signals(cls, weights: dict[str, float]) -> dict[str, float]:
        if unknown := set(weights) - set(LINK_SIGNALS):
            raise ValueError(f"no signal is called {min(unknown)!r}")
        return weights
