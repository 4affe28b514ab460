"""Settings of what serves results: the MCP server and the answer manager. Values only; no I/O."""

from typing import Literal

from pydantic import BaseModel

from webrag.settings.fields import (
    HOSTS_TEXT,
    HTTP_URL_TEXT,
    KEY_TEXT,
    LEVELS_TEXT,
    HostList,
    HttpUrl,
    LogLevel,
    OriginList,
    Seconds,
    Secret,
    Share,
    setting,
)

__all__ = ["AnswerSettings", "McpSettings", "TracingSettings"]


class McpSettings(BaseModel):
    """MCP server."""

    mcp_transport: Literal["stdio", "streamable-http"] = setting(
        "stdio", "How clients reach the server.", read_by="MCP server", shared=True
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
        20_000,
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


class AnswerSettings(BaseModel):
    """Answer manager."""

    answer_llm_base_url: HttpUrl | None = setting(
        None,
        "OpenAI-compatible server that writes answers.",
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
        0.05,
        "Added to the normalised score of a page published today; less for older ones.",
        read_by="answer manager",
    )
    agent_recent_year_window: int = setting(
        3,
        "Years over which that falls to nothing.",
        read_by="answer manager",
        unit="years",
        ge=1,
        le=100,
    )
    agent_reflection_temperature: float = setting(
        0.0,
        "Temperature of the model that judges an answer.",
        read_by="answer manager",
        ge=0,
        le=2,
        allow_inf_nan=False,
    )


class TracingSettings(BaseModel):
    """Tracing."""

    tracing: Literal["off", "langsmith", "opentelemetry", "both"] = setting(
        "off",
        "Where spans of the answer manager's steps go; needs `webrag[tracing]`.",
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
