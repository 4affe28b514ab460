import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from webrag.embedding import bundled_model as word_tokens
from webrag.embedding.bundled_model import WordTokens

MARKS = ["<s>", "</s>", "<unk>", "\u2581", " ", "\n", "\t", "foo", "12", "\u00a0"]
SPECIAL = st.sampled_from(MARKS)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
    return Tokenizer.from_file(str(path))


def split(words: WordTokens, texts: Sequence[str]) -> list[list[int]]:
    ids, counts = words.ids(texts)
    rest = iter(ids.tolist())
    found = [[next(rest) for _ in range(count)] for count in counts.tolist()]
    assert next(rest, None) is None
    return found


def whole(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]


@settings(max_examples=200, deadline=None)
@given(
    texts=st.lists(
        st.one_of(st.text(max_size=60), st.lists(SPECIAL, max_size=12).map("".join)), max_size=6
    )
)
def test_tokens_are_those_of_the_tokenizer_whatever_the_texts(
    tokenizer: Tokenizer, texts: list[str]
) -> None:
    assert split(WordTokens(tokenizer), texts) == whole(tokenizer, texts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n",
        "How is `max_connections` set, and where?",
        "def f(x):\n    return x\n\n\nprint( f(1) )  ",
        "a\r\nb\tc \n d",
        "配置文件。如何更改端口",
        "x" * 5000,
        "a<s>b </s> c",
        "a\u2581 b \u2581c",
    ],
    ids=repr,
)
def test_known_words_give_the_same_tokens_again(tokenizer: Tokenizer, text: str) -> None:
    words = WordTokens(tokenizer)
    words.ids([text])

    assert split(words, [text, "and", text]) == whole(tokenizer, [text, "and", text])


def test_no_token_of_the_vocabulary_reaches_from_one_word_into_the_next(
    tokenizer: Tokenizer,
) -> None:
    vocabulary = tokenizer.get_vocab()

    assert not [token for token in vocabulary if "\u2581" in token.lstrip("\u2581")]
    assert not [token for token in vocabulary if "\n" in token and len(token) > 1]


def test_words_are_forgotten_before_they_are_too_many(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_tokens, "_REMEMBERED", 5)
    words = WordTokens(tokenizer)
    texts = ["one two three four", "four five six seven", "one five nine " + "long" * 20]

    remembered, found = [], []
    for text in texts:
        found.append(split(words, [text]))
        remembered.append(len(words._known))

    assert found == [whole(tokenizer, [text]) for text in texts]
    assert remembered == [4, 3, 5]


def test_threads_that_share_the_words_get_the_same_tokens(tokenizer: Tokenizer) -> None:
    texts = [f"word{n} of text{n % 7}" for n in range(300)]
    expected = whole(tokenizer, texts)
    words = WordTokens(tokenizer)
    results: list[list[list[int]]] = []
    threads = [
        threading.Thread(target=lambda: results.append(split(words, texts))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [expected] * 6
