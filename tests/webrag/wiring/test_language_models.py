from typing import Any

import pytest
from llama_index.llms.openai_like import OpenAILike

from webrag.settings import load_settings
from webrag.wiring.language_models import choose_answer_llm, choose_orchestration_llm

OWN_SERVER = "http://127.0.0.1:11434/v1"
KEY = {"orchestration_llm_api_key": "sk-split"}


def orchestration_llm(**settings: Any) -> OpenAILike:
    model = choose_orchestration_llm(load_settings(**settings))
    assert isinstance(model, OpenAILike)
    return model


def answer_llm(**settings: Any) -> OpenAILike:
    model = choose_answer_llm(load_settings(**settings))
    assert isinstance(model, OpenAILike)
    return model


@pytest.mark.parametrize("choose", [choose_answer_llm, choose_orchestration_llm])
def test_no_language_model_is_chosen_without_key_and_server(choose: Any) -> None:
    assert choose(load_settings()) is None


def test_a_server_of_ones_own_needs_no_key() -> None:
    assert orchestration_llm(orchestration_llm_base_url=OWN_SERVER).api_base == OWN_SERVER


def test_answers_are_written_by_the_model_that_splits_questions_when_none_is_named() -> None:
    model = answer_llm(**KEY, orchestration_llm_model="small")

    assert (model.model, model.api_key) == ("small", "sk-split")


def test_answer_settings_win_over_those_for_splitting_questions() -> None:
    model = answer_llm(**KEY, answer_llm_model="large", answer_llm_api_key="sk-write")

    assert (model.model, model.api_key) == ("large", "sk-write")


def test_the_key_for_one_address_is_not_sent_to_another() -> None:
    assert answer_llm(**KEY, answer_llm_base_url=OWN_SERVER).api_key == "none"
