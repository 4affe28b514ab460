"""Chooses the language model that splits questions and writes answers; it makes no request."""

from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from webrag.settings import Settings

_TIMEOUT_S = 30.0


def uses_language_model(settings: "Settings") -> bool:
    """Whether the settings name a language model: by a key, or a server of one's own."""
    usual = type(settings).model_fields["orchestration_llm_base_url"].default
    has_key = settings.orchestration_llm_api_key is not None
    return has_key or settings.orchestration_llm_base_url != usual


def choose_language_model(settings: "Settings", own: "LLM | None" = None) -> "LLM | None":
    """The language model; None when neither a key nor a server of one's own is set.

    Raises:
        ConfigurationError: `own` is no LlamaIndex LLM.
    """
    if own is not None:
        from llama_index.core.llms import LLM

        if not isinstance(own, LLM):
            raise ConfigurationError(
                f"llm is {own!r:.80}; give a LlamaIndex LLM, such as OpenAI(model='gpt-4o-mini'),"
                " or leave it out and set ORCHESTRATION_LLM_API_KEY."
            )
        return own
    if not uses_language_model(settings):
        return None
    key = settings.orchestration_llm_api_key
    from webrag.wiring.served_language_model import ServedLanguageModel

    return ServedLanguageModel(
        model=settings.orchestration_llm_model,
        api_base=settings.orchestration_llm_base_url,
        api_key=key.get_secret_value() if key else "none",
        is_chat_model=True,
        temperature=0.0,
        timeout=_TIMEOUT_S,
        max_retries=0,
        proxy=settings.service_proxy,
    )
