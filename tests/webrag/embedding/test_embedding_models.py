import json

import pytest

from webrag.embedding.embedder import known_dimensions, known_prefixes, saved_prefixes

SENTENCE = "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("intfloat/multilingual-e5-small", ("query: ", "passage: ")),
        ("/models/e5-large-v2", ("query: ", "passage: ")),
        ("C:\\models\\E5-large-v2", ("query: ", "passage: ")),
        ("BAAI/bge-small-en-v1.5", (SENTENCE, "")),
        ("nomic-ai/nomic-embed-text-v1.5", ("search_query: ", "search_document: ")),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", (SENTENCE, "")),
        ("sentence-transformers/all-MiniLM-L6-v2", ("", "")),
        ("BAAI/bge-m3", ("", "")),
        ("intfloat/multilingual-e5-large-instruct", ("", "")),
    ],
)
def test_model_cards_are_followed(model: str, expected: tuple[str, str]) -> None:
    assert known_prefixes(model, {}) == expected


@pytest.mark.parametrize("key", ["document", "passage"])
def test_prompts_saved_with_a_model_win(key: str) -> None:
    own = {"query": "ask: ", key: "read: "}

    assert known_prefixes("e5-large-v2", own) == ("ask: ", "read: ")


def test_empty_saved_prompts_say_nothing() -> None:
    own = {"query": "", "document": ""}

    assert known_prefixes("e5-large-v2", own) == ("query: ", "passage: ")


@pytest.mark.parametrize(
    "model",
    [
        "nomic-embed-text:latest",
        "owner/nomic-embed-text",
        "Owner/Nomic-Embed-Text",
        "D:\\models\\all-mpnet-base-v2",
    ],
)
def test_size_is_known_with_and_without_owner_and_tag(model: str) -> None:
    assert known_dimensions(model) == 768


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "paraphrase-multilingual-MiniLM-L12-v2"])
def test_size_is_known_of_a_name_with_capital_letters(name: str) -> None:
    assert known_dimensions(f"sentence-transformers/{name}") == 384


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ({"prompts": {"query": "ask: ", "document": "read: "}}, ("ask: ", "read: ")),
        ({"prompts": {"query": "ask: ", "passage": None}}, ("ask: ", "")),
        ({"prompts": {"query": "", "document": ""}}, ("query: ", "passage: ")),
        ({"prompts": None}, ("query: ", "passage: ")),
        ({"similarity_fn_name": "cosine"}, ("query: ", "passage: ")),
        ([], ("query: ", "passage: ")),
    ],
)
def test_prompts_are_read_from_what_is_saved_with_a_model(
    saved: object, expected: tuple[str, str]
) -> None:
    assert saved_prefixes("intfloat/e5-large-v2", json.dumps(saved)) == expected


def test_model_saved_without_prompts_gets_those_of_its_card() -> None:
    assert saved_prefixes("intfloat/e5-large-v2", None) == ("query: ", "passage: ")
