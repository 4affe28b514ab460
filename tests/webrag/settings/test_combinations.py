from typing import Any

import pytest
from fastembed import TextEmbedding
from fastembed.rerank.cross_encoder import TextCrossEncoder

from webrag.embedding.embedder import known_dimensions
from webrag.errors import ConfigurationError
from webrag.settings import load_settings
from webrag.settings.model import COMBINATIONS

PARTS = ("embedding_provider", "embedding_model", "reranker_provider", "reranker_model")
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def parts(**given: Any) -> tuple[Any, ...]:
    settings = load_settings(**given)
    return tuple(getattr(settings, name) for name in PARTS)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_models_of_combinations_are_among_those_that_fastembed_runs(name: str) -> None:
    chosen = COMBINATIONS[name]

    embeddings = {each["model"] for each in TextEmbedding.list_supported_models()}
    rerankers = {each["model"] for each in TextCrossEncoder.list_supported_models()}
    assert chosen.get("embedding_model") in {None, *embeddings}
    assert chosen.get("reranker_model") in {None, *rerankers}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_corpus_is_created_without_a_download_to_learn_the_vectors_size(name: str) -> None:
    embedding = COMBINATIONS[name].get("embedding_model")

    assert embedding is None or known_dimensions(embedding) == 384


def test_combination_chooses_both_parts() -> None:
    assert parts(models="small") == ("fastembed", MINILM, "local", None)
    assert parts(models="medium")[2:] == ("cross_encoder", "Xenova/ms-marco-MiniLM-L-6-v2")
    assert parts(models="bundled") == ("bundled", None, "local", None)


def test_provider_that_is_given_replaces_its_part() -> None:
    assert parts(models="medium", embedding_provider="bundled")[:2] == ("bundled", None)
    assert parts(models="medium", reranker_provider="none")[2:] == ("none", None)


def test_model_that_is_given_is_looked_for_at_the_combinations_provider() -> None:
    assert parts(models="small", embedding_model="./mine")[:2] == ("fastembed", "./mine")


def test_key_of_another_service_replaces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERE_API_KEY", "secret-key")

    assert parts(models="small")[2] == "local"


def test_value_says_that_it_came_with_the_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBRAG_MODELS", "small")

    settings = load_settings()

    assert settings.origin("embedding_model") == "WEBRAG_MODELS=small"
    assert settings.origin("models") == "WEBRAG_MODELS in the environment"


def test_misspelt_combination_names_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match="one of bundled, small, medium"):
        load_settings(models="smal")


def test_setting_allows_what_there_is() -> None:
    for name in COMBINATIONS:
        assert load_settings(models=name).models == name
