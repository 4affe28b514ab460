"""Chooses the language models that split questions and write answers; it makes no request."""

from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError

if TYPE_CHECKING:
    from llama_index.core.llms import LLM
    from pydantic import SecretStr

    from webrag.settings import Settings

_TIMEOUT_S = 30.0


def choose_orchestration_llm(settings: "Settings", own: "LLM | None" = None) -> "LLM | None":
    """The model that splits questions; None when neither a key nor a server of one's own is set.

    Args:
        settings: `ORCHESTRATION_LLM_*`.
        own: A program's own, used in place of what the settings name.

    Raises:
        ConfigurationError: `own` is no LlamaIndex LLM.
    """
    if own is not None:
        return _checked(own)
    base = str(settings.orchestration_llm_base_url)
    key = settings.orchestration_llm_api_key
    if key is None and _is_default(settings, "orchestration_llm_base_url"):
        return None
    return _served(settings, base, key, settings.orchestration_llm_model)


def choose_answer_llm(settings: "Settings", own: "LLM | None" = None) -> "LLM | None":
    """The model that writes answers: `ANSWER_LLM_*`, what is unset as for splitting questions.

    A key set for one address is never sent to another.

    Args:
        settings: What names it.
        own: A program's own, used in place of what the settings name.

    Returns:
        None when neither a key nor a server of one's own is set.

    Raises:
        ConfigurationError: `own` is no LlamaIndex LLM.
    """
    if own is not None:
        return _checked(own)
    base = str(settings.answer_llm_base_url or settings.orchestration_llm_base_url)
    key = settings.answer_llm_api_key
    if key is None and base == str(settings.orchestration_llm_base_url):
        key = settings.orchestration_llm_api_key
    unset = settings.answer_llm_base_url is None and _is_default(
        settings, "orchestration_llm_base_url"
    )
    if key is None and unset:
        return None
    model = settings.answer_llm_model or settings.orchestration_llm_model
    return _served(settings, base, key, model)


def _checked(own: "LLM") -> "LLM":
    from llama_index.core.llms import LLM

    if not isinstance(own, LLM):
        raise ConfigurationError(
            f"llm is {own!r:.80}; give a LlamaIndex LLM, such as OpenAI(model='gpt-4o-mini'), or "
            "leave it out and set ANSWER_LLM_API_KEY."
        )
    return own


def _is_default(settings: "Settings", name: str) -> bool:
    return bool(getattr(settings, name) == type(settings).model_fields[name].default)


def _served(settings: "Settings", base: str, key: "SecretStr | None", model: str) -> "LLM":
    from webrag.wiring.served_language_model import ServedLanguageModel

    return ServedLanguageModel(
        model=model,
        api_base=base,
        api_key=key.get_secret_value() if key else "none",
        is_chat_model=True,
        temperature=0.0,
        timeout=_TIMEOUT_S,
        max_retries=0,
        proxy=settings.service_proxy,
    )
