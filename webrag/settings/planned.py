"""Settings that are read and checked but that no component of this version acts on."""

__all__ = ["PLANNED"]

PLANNED = frozenset(
    {
        "agent_recent_year_window",
        "agent_reflection_temperature",
        "agent_rerank_recency_boost",
        "answer_llm_api_key",
        "answer_llm_base_url",
        "answer_llm_model",
        "mcp_allowed_hosts",
        "mcp_allowed_origins",
        "mcp_auth_token",
        "mcp_enable_forget",
        "mcp_host",
        "mcp_port",
        "mcp_public_url",
        "mcp_structured_output",
        "orchestration_llm_api_key",
        "orchestration_llm_base_url",
        "orchestration_llm_model",
    }
)
