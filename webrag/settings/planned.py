"""Settings that are read and checked but that no component of this version acts on."""

__all__ = ["PLANNED"]

PLANNED = frozenset(
    {
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
