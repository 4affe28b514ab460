"""Chooses the language models that split questions and write answers; it makes no request."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llama_index.core.llms import LLM
    from pydantic import SecretStr

    from webrag.settings import Settings

_TIMEOUT_S = 30.0


def choose_orchestration_llm(settings: "Settings") -> "LLM | None":
    """The model that splits questions; None when neither a key nor a server of one's own is set."""
    base = str(settings.orchestration_llm_base_url)
    key = settings.orchestration_llm_api_key
    if key is None and _is_default(settings, "orchestration_llm_base_url"):
        return None
    return _served(settings, base, key, settings.orchestration_llm_model)


def choose_answer_llm(settings: "Settings") -> "LLM | None":
    """The model that writes answers: `ANSWER_LLM_*`, what is unset as for splitting questions.

    A key set for one address is never sent to another.

    Returns:
        None when neither a key nor a server of one's own is set.
    """
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
