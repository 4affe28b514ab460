"""Settings that are read and checked but that no component of this version acts on."""

__all__ = ["PLANNED"]

PLANNED = frozenset(
    {
        "orchestration_llm_api_key",
        "orchestration_llm_base_url",
        "orchestration_llm_model",
    }
)
