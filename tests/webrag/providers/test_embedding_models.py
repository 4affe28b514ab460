import pytest

from webrag.providers.embedding_models import known_dimensions, known_prefixes

SENTENCE = "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("intfloat/multilingual-e5-small", ("query: ", "passage: ")),
        ("/models/e5-large-v2", ("query: ", "passage: ")),
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


@pytest.mark.parametrize("model", ["nomic-embed-text:latest", "owner/nomic-embed-text"])
def test_size_is_known_with_and_without_owner_and_tag(model: str) -> None:
    assert known_dimensions(model) == 768
