from typing import Any

from llama_index.llms.openai_like import OpenAILike

from webrag.settings import load_settings
from webrag.wiring.language_models import choose_language_model

OWN_SERVER = "http://127.0.0.1:11434/v1"


def chosen(**settings: Any) -> OpenAILike:
    model = choose_language_model(load_settings(**settings))
    assert isinstance(model, OpenAILike)
    return model


def test_no_language_model_is_chosen_without_key_and_server() -> None:
    assert choose_language_model(load_settings()) is None


def test_a_server_of_ones_own_needs_no_key() -> None:
    model = chosen(orchestration_llm_base_url=OWN_SERVER)

    assert (model.api_base, model.api_key) == (OWN_SERVER, "none")


def test_key_chooses_the_model_that_is_named() -> None:
    model = chosen(orchestration_llm_api_key="sk-one", orchestration_llm_model="small")

    assert (model.model, model.api_key) == ("small", "sk-one")
